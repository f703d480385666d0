"""From keyword arguments to the words of a command line, which the native module parses as the command does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath


def words(options: Mapping[str, object]) -> list[str]:
    """The options that are given: `None` and `False` are not; `True` is a flag."""
    line = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        name = "--" + name.replace("_", "-")
        line.append(name if value is True else f"{name}={_text(value)}")
    return line


def _text(value: object) -> str:
    if isinstance(value, PathLike):
        path: str = fspath(value)
        return path
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(item)}" for key, item in value.items())
    return str(value)


def ids(vertices: Iterable[object]) -> str:
    """A list of ids with commas between; a backslash escapes what would end an id or be cut off."""
    if isinstance(vertices, (str, bytes)):
        raise TypeError(f"a list of ids, such as [{vertices!r}], not one text")
    return ",".join("".join(f"\\{c}" if c in ",\\" or c.isspace() else c for c in str(id)) for id in vertices)
