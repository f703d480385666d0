#!/usr/bin/env python3
"""Counts the lines of code of each crate: without blank lines, comments, docs and tests.

    .ci/checks/lines.py [DIRECTORY]

Fails if a file has more than 600 lines as it stands in the editor, or a function more than 100.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from imports import ROOT, without_noise, without_tests

FILE_LINES_MAX, FUNCTION_LINES_MAX = 600, 100


def functions(text):
    """Yields (name, lines) of each function of a text without comments and strings."""
    for match in re.finditer(r"\bfn (\w+)", text):
        at = match.end()
        while at < len(text) and text[at] not in "{;":
            at += 1
        if at == len(text) or text[at] == ";":
            continue
        depth, end = 0, at
        while end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        yield match[1], text[match.start() : end].count("\n") + 1


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    sums, long = {}, []
    for source in sorted(root.glob("crates/*/src")):
        tests, texts = set(), {}
        for file in sorted(source.rglob("*.rs")):
            text, names = without_tests(without_noise(file.read_text()))
            folder = file.parent if file.stem in ("mod", "lib", "main") else file.with_suffix("")
            tests |= {folder / name for name in names}
            texts[file] = text
        count = 0
        for file, text in texts.items():
            if any(test in (file.with_suffix(""), *file.parents) for test in tests):
                continue
            lines = sum(1 for line in text.splitlines() if line.strip())
            count += lines
            name = file.relative_to(root)
            if len(file.read_text().splitlines()) > FILE_LINES_MAX:
                long.append(f"{name}: {len(file.read_text().splitlines())} lines")
            for function, of in functions(text):
                if of > FUNCTION_LINES_MAX:
                    long.append(f"{name}: {function} has {of} lines")
        sums[source.parent.name] = count
    for crate, count in sums.items():
        print(f"{count:7,} {crate}")
    print(f"{sum(sums.values()):7,} in all")
    for what in long:
        print(what)
    if long:
        sys.exit("divide them by subject")


if __name__ == "__main__":
    main()
