#!/usr/bin/env python3
"""Fails if modules of a crate import each other in a circle, by file or by directory.

    .ci/checks/imports.py [-v] [CRATE...]      default: every crate; -v lists the imports inside each circle

An import is a `use` path or any other path that starts with `crate`, `super` or `self`, outside of tests. A path counts as an
import of the file that declares the longest module prefix of it; `pub use` counts too. Two files form a circle if each reaches the
other. For directories, every directory is looked at on its own: its files and subdirectories must form no circle.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST = re.compile(r"#\[cfg\([^\]]*\btest\b[^\]]*\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*(;|\{)")
NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(?P<hashes>\#*)".*?"(?P=hashes)|(?:\bb)?"(?:\\.|[^"\\])*"|(?:\bb)?'(?:\\(?:u\{\w+\}|x\w\w|.)|[^\\'\n])'""",
    re.S,
)


def without_noise(text):
    """The text without comments, the insides of strings and characters; lines stay."""

    def kept(match):
        left = "" if match[0].startswith("/") else '""'
        return left + "\n" * match[0].count("\n")

    return NOISE.sub(kept, text)


def block_end(text, start):
    """Where the block ends whose `{` is at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def without_tests(text):
    """The text without inline test modules, and the names of test modules in other files."""
    files = set()
    while match := TEST.search(text):
        if match[2] == ";":
            files.add(match[1])
            end = match.end()
        else:
            end = block_end(text, match.end() - 1)
        text = text[: match.start()] + "\n" * text[match.start() : end].count("\n") + text[end:]
    return text, files


def spread(tree):
    """The paths of a use tree: a::{b, c::{self, d}}."""
    tree = tree.strip()
    if "{" not in tree:
        return [re.sub(r"\s+as\s+\w+$", "", tree).replace(" ", "")]
    head, rest = tree.split("{", 1)
    rest = rest[: rest.rindex("}")]
    parts, depth, start = [], 0, 0
    for at, char in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(rest[start:at])
            start = at + 1
    parts.append(rest[start:])
    return [head.replace(" ", "").replace("\n", "") + path for part in parts if part.strip() for path in spread(part)]


class Crate:
    def __init__(self, source):
        self.source = source
        self.files = {}  # module path -> file
        self.texts = {}
        self.imports = {}  # (from, to) -> names
        tests = set()
        for file in sorted(source.rglob("*.rs")):
            text, test_files = without_tests(without_noise(file.read_text()))
            module = self.module(file)
            self.files[module] = file
            self.texts[module] = text
            tests |= {module + (name,) for name in test_files}
        is_test = lambda module: any(module[: len(test)] == test for test in tests)
        for module in [module for module in self.files if is_test(module)]:
            del self.files[module], self.texts[module]
        for module, text in self.texts.items():
            self.read(module, text)

    def module(self, file):
        parts = file.relative_to(self.source).with_suffix("").parts
        if parts[-1] in ("mod", "lib", "main"):
            parts = parts[:-1]
        return parts

    def read(self, module, text, scope=None):
        """Takes in the imports of a file's text; `scope` is the path of the inline module that it is of."""
        scope = module if scope is None else scope
        inline = re.compile(r"\bmod\s+(\w+)\s*\{")
        inner = set()
        while match := inline.search(text):
            end = block_end(text, match.end() - 1)
            inner.add(match[1])
            self.read(module, text[match.end() : end - 1], scope + (match[1],))
            text = text[: match.start()] + text[end:]
        uses = re.compile(r"\buse\s+([^;]+);")
        paths = [path for match in uses.finditer(text) for path in spread(match[1].replace("\n", " "))]
        rest = uses.sub("", text)
        # Macros name the crate by `$crate`.
        paths += [match[0] for match in re.finditer(r"(?<![\w:$])(?:crate|super|self)(?:::\w+)+", rest)]
        children = set(re.findall(r"\bmod\s+(\w+)\s*;", text))
        for path in paths:
            parts = [part for part in path.split("::") if part]
            base = scope
            if parts[:1] == ["crate"]:
                base, parts = (), parts[1:]
            elif parts[:1] == ["self"]:
                parts = parts[1:]
            elif parts[:1] == ["super"]:
                while parts[:1] == ["super"]:
                    base, parts = base[:-1], parts[1:]
            elif not parts or parts[0] not in children:
                continue
            target = base + tuple(parts)
            if parts and parts[0] in inner and base == scope:
                continue
            found = next(target[:n] for n in range(len(target), -1, -1) if target[:n] in self.files)
            if found != module:
                self.imports.setdefault((module, found), set()).add("::".join(target[len(found) :]) or "self")


def circles(nodes, edges):
    """The strongly connected components of more than one node (Tarjan)."""
    out = {node: [] for node in nodes}
    for one, other in edges:
        out[one].append(other)
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(root):
        work = [(root, iter(out[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(out[other])))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        other = stack.pop()
                        on.discard(other)
                        group.append(other)
                        if other == node:
                            break
                    if len(group) > 1:
                        found.append(sorted(group))

    for node in nodes:
        if node not in index:
            visit(node)
    return found


def main():
    verbose = "-v" in sys.argv
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    failed = False
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        name = manifest.parent.name
        if wanted and name not in wanted:
            continue
        crate = Crate(manifest.parent / "src")
        show = lambda module: "::".join(module) or "lib"
        levels = [("files", lambda module: module, list(crate.files), crate.imports)]
        for group in circles(crate.files, crate.imports):
            failed = True
            print(f"{name}: {len(group)} of {len(crate.files)} files import each other in a circle")
            for one, other in sorted(crate.imports) if verbose else []:
                if one in group and other in group:
                    print(f"    {show(one)} -> {show(other)}: {', '.join(sorted(crate.imports[one, other]))}")
        # Each directory: its files and its subdirectories. The file of a directory itself belongs to it.
        directories = {module[:n] for module in crate.files for n in range(len(module))}
        for directory in sorted(directories):
            depth = len(directory)
            child = lambda module: module[: depth + 1]
            inside = [module for module in crate.files if module[:depth] == directory and len(module) > depth]
            nodes = {child(module) for module in inside}
            edges = {}
            for (one, other), names in crate.imports.items():
                if one in inside and other in inside and child(one) != child(other):
                    edges.setdefault((child(one), child(other)), set()).add(f"{show(one)} -> {show(other)} ({', '.join(sorted(names))})")
            for group in circles(nodes, edges):
                failed = True
                print(f"{name}: in {show(directory)}/: {', '.join(show(node) for node in group)} import each other in a circle")
                for (one, other), names in sorted(edges.items()) if verbose else []:
                    if one in group and other in group:
                        for line in sorted(names):
                            print(f"    {line}")
    if failed:
        sys.exit("imports must go one way: move what both need into a module below both")
    print("imports go one way")


if __name__ == "__main__":
    main()
