#!/usr/bin/env python3
"""Fails if a Markdown file, a comment or a script names a file of this project that is not there.

    .ci/checks/links.py

It follows relative links of Markdown, with their anchors, and paths in backquotes that begin with a directory at the top.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("docs", "crates", "tests", "bench", "examples", "fuzz", ".ci")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:%s)/[\w./-]+)`|\b(docs/[\w/-]+\.md)\b" % "|".join(map(re.escape, TOPS)))


def anchors(file):
    """The anchors of a Markdown file's headings."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main():
    dead = []
    for file in sorted(ROOT.rglob("*")):
        parts = file.relative_to(ROOT).parts
        if file.suffix not in (".md", ".rs", ".py", ".sh", ".toml") or parts[0] in ("target", ".git") or "edges_as_found" in parts:
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            places = [(match[1] or match[2], ROOT, None) for match in PATH.finditer(line)]
            for link in LINK.findall(line) if file.suffix == ".md" else []:
                path, _, anchor = link.partition("#")
                if not re.match(r"\w+:", link):
                    places.append((path or file.name, file.parent, anchor))
            for path, base, anchor in places:
                target = base / path
                if not target.exists():
                    dead.append(f"{file.relative_to(ROOT)}:{number}: {path} is not there")
                elif anchor and anchor not in anchors(target):
                    dead.append(f"{file.relative_to(ROOT)}:{number}: {path} has no heading #{anchor}")
    print("\n".join(dead) or "all files that are named are there")
    sys.exit(1 if dead else 0)


if __name__ == "__main__":
    main()
