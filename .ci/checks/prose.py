#!/usr/bin/env python3
"""Fails on the idioms that CONTRIBUTING lists, and on summaries of items that are over 100 characters.

    .ci/checks/prose.py [-c] [PATH...]      default: crates, docs, tests and the files at the top; -c counts by file

It looks at comments, rustdoc, errors (`#[error("...")]`), and Markdown outside of code. A line that has to quote an idiom ends with
`prose: quoted`.
"""
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IDIOMS = re.compile(
    r"\b(?:(?:go|goes|gone|going|went) on\b(?! disk)|comes? to (?:its|an|the) end|(?:is|are|was|were) told|makes? room|so many|so much|"
    r"of which|whoever|nobody|what is|those of|as far as|at hand|by then|to be had|lets? go of|(?:is|are) looked at|"
    r"takes? note|has had|have had|anew|besides\b)",
    re.I,
)
SUMMARY_MAX = 100


def comments(text):
    """Lines of comments and error texts: number, text, whether a summary of an item."""
    before_is_doc = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        doc = re.match(r"//[/!] ?(.*)", stripped)
        if doc:
            yield number, doc[1], not before_is_doc and stripped.startswith("///")
            before_is_doc = True
            continue
        before_is_doc = False
        if stripped.startswith("//"):
            yield number, stripped[2:], False
        elif match := re.search(r'#\[error\("(.*)"', stripped):
            yield number, match[1], False


def markdown(text):
    """Lines outside of code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line), False


def main():
    counts = Counter()
    wanted = [Path(path).resolve() for path in sys.argv[1:] if not path.startswith("-")]
    wanted = wanted or [ROOT / name for name in ("crates", "docs", "tests", "bench", "fuzz/fuzz_targets", "fuzz/src")] + sorted(ROOT.glob("*.md"))
    files = [file for path in wanted for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    for file in files:
        if file.suffix not in (".rs", ".md") or "edges_as_found" in file.parts and file.suffix != ".md":
            continue
        lines = comments(file.read_text()) if file.suffix == ".rs" else markdown(file.read_text())
        for number, line, is_summary in lines:
            if line.rstrip().endswith("prose: quoted"):
                continue
            said = [f"“{match[0]}”" for match in IDIOMS.finditer(line)]
            if is_summary and len(line) > SUMMARY_MAX:
                said.append(f"a summary of {len(line)} characters")
            if said:
                counts[file.relative_to(ROOT)] += 1
                if "-c" not in sys.argv:
                    print(f"{file.relative_to(ROOT)}:{number}: {', '.join(said)}")
    if "-c" in sys.argv:
        for file, count in counts.most_common():
            print(f"{count:5} {file}")
    if counts:
        sys.exit(f"{sum(counts.values())} lines: see the style guide in CONTRIBUTING.md")
    print("prose is plain")


if __name__ == "__main__":
    main()
