#!/usr/bin/env python3
"""Writes python/graphmill/_algorithms.py: a method for each algorithm that `graphmill algorithms --json` lists.

    python/algorithms.py < algorithms.json > python/graphmill/_algorithms.py
"""
import json
import sys
import textwrap

HEAD = '''"""The algorithms as methods of a graph. Written by python/algorithms.py from `graphmill algorithms --json`."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from typing import Any, Literal, Unpack, overload

from graphmill._runs import Limits, Runs
from graphmill._words import ids
from graphmill.job import Job
from graphmill.result import Result, VertexId


class Algorithms(Runs):
    """Each method returns a `Result`; with `background=True` it returns a `Job` at once.

    All take the keywords of `Limits`, and raise the errors of `graphmill.errors`. Where an option is a file with values of vertices, a mapping from
    ids to values serves too; where it is a file with a set of vertices, a collection of ids.
    """
'''

TYPES = {
    "flag": "bool",
    "vertex": "VertexId",
    "vertices": "Iterable[VertexId]",
    "vertex-set": "str | PathLike[str] | Collection[VertexId]",
    "vertex-values": "str | PathLike[str] | Mapping[Any, float]",
    "vertex-probabilities": "str | PathLike[str] | Mapping[Any, float]",
}
INTEGERS = {"N", "NUMBER"}


def kind(option):
    """The Python type of an option."""
    if option["kind"] in TYPES:
        return TYPES[option["kind"]]
    if "|" in option["value"]:
        return f"Literal[{', '.join(json.dumps(word) for word in option['value'].split('|'))}]"
    if "," in option["value"]:
        return "str"
    return "int" if option["value"] in INTEGERS else "float"


def in_python(text):
    """A help text with options as keywords."""
    words = []
    for word in text.split(" "):
        at = word.find("--")
        if at in (0, 1) and word[at + 2 :][:1].isalpha():
            name = word[at + 2 :]
            end = next((i for i, c in enumerate(name) if not (c.isalnum() or c == "-")), len(name))
            word = f"{word[:at]}`{name[:end].replace('-', '_')}`{name[end:]}"
        words.append(word)
    return " ".join(words)


def method(algorithm):
    """The overloads and the method of an algorithm."""
    name = algorithm["name"]
    options = sorted(algorithm["options"], key=lambda option: not option["required"])
    parameters, names, passed, lines = [], [], [], []
    for option in options:
        python = option["name"].replace("-", "_")
        if option["required"]:
            parameters.append(f"{python}: {kind(option)}")
        elif option["kind"] == "flag":
            parameters.append(f"{python}: bool = False")
        else:
            parameters.append(f"{python}: {kind(option)} | None = None")
        names.append(python)
        value = python
        if option["kind"] == "vertices":
            value = f"None if {python} is None else ids({python})"
        passed.append(f'"{option["name"]}": {value}')
        default = f" By default {option['default']}." if option["default"] else ""
        lines.append(f"{python}: {in_python(option['help'])}.{default}")
    required = [p for p, option in zip(parameters, options) if option["required"]]
    others = [p for p, option in zip(parameters, options) if not option["required"]]

    def signature(background, result, ends=""):
        inner = ["self", *required, "*", *others, background, "**limits: Unpack[Limits]"]
        body = "".join(f"        {part},\n" for part in inner)
        return f"    def {name}(\n{body}    ) -> {result}:{ends}\n"

    text = "\n    @overload\n" + signature("background: Literal[False] = False", "Result", " ...")
    text += "\n    @overload\n" + signature("background: Literal[True]", "Job[Result]", " ...")
    text += "\n" + signature("background: bool = False", "Result | Job[Result]")
    summary = in_python(algorithm["summary"]).rstrip(".")
    wrap = lambda text, indent, rest: textwrap.fill(text, 118, initial_indent=indent, subsequent_indent=rest)
    text += wrap(f'"""{summary}.', " " * 8, " " * 8) + "\n"
    if lines:
        text += "\n        Args:\n" + "".join(wrap(line, " " * 12, " " * 16) + "\n" for line in lines)
    text += '        """\n'
    return text + f"        return self._run(\"{name}\", {{{', '.join(passed)}}}, background, limits)\n"


def main():
    algorithms = json.load(sys.stdin)
    sys.stdout.write(HEAD + "".join(method(algorithm) for algorithm in algorithms))


main()
