#!/usr/bin/env python3
"""Fails if a type name is declared twice in the product's crates: one word has one meaning.

    .ci/checks/names.py

Structs, enums, traits and unions outside of tests count; so do type aliases that are not associated types. Names that stand for the
same idea in several places, each with its reason, are in JUSTIFIED: at most ten.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from imports import ROOT, without_noise, without_tests

JUSTIFIED = {"PlainCell": "loom and other builds each declare it; a build compiles one of the two"}
DECLARED = re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|trait|union|type)\s+(\w+)", re.M)


def main():
    found = defaultdict(list)
    for source in sorted(ROOT.glob("crates/*/src")):
        tests, texts = set(), {}
        for file in sorted(source.rglob("*.rs")):
            text, names = without_tests(without_noise(file.read_text()))
            folder = file.parent if file.stem in ("mod", "lib", "main") else file.with_suffix("")
            tests |= {folder / name for name in names}
            texts[file] = text
        for file, text in texts.items():
            if any(test in (file.with_suffix(""), *file.parents) for test in tests):
                continue
            for match in DECLARED.finditer(text):
                line = text[: match.start()].count("\n") + 1
                found[match[1]].append(f"{file.relative_to(ROOT)}:{line}")
    twice = {name: places for name, places in found.items() if len(places) > 1 and name not in JUSTIFIED}
    for name, places in sorted(twice.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{name}: {', '.join(places)}")
    if len(JUSTIFIED) > 10:
        sys.exit(f"{len(JUSTIFIED)} names are justified: ten are the most")
    if twice:
        sys.exit(f"{len(twice)} of {len(found)} names are declared more than once: rename all but one")
    print(f"{len(found)} type names, each declared once")


if __name__ == "__main__":
    main()
