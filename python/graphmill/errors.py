"""What can go wrong: a class for each kind of error, all below `GraphmillError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re


class GraphmillError(Exception):
    """An error of Graphmill: what failed, where, and what to do."""


class UsageError(GraphmillError, ValueError):
    """The request is wrong: another one may succeed."""


class MemoryBudgetError(GraphmillError, MemoryError):
    """The memory that was given (`memory=`) is too small; the text names an amount that is enough."""


class DiskError(GraphmillError, OSError):
    """A disk is full or fails, or a file cannot be opened."""


class InputError(GraphmillError, ValueError):
    """A file is not what it should be: the text names the file and the line, row or byte."""


class RankError(GraphmillError, RuntimeError):
    """Another rank failed, or the ranks of a job do not do the same work."""


class Cancelled(GraphmillError):
    """A job was cancelled; the text says whether it can resume."""


class GraphmillWarning(UserWarning):
    """The result may be another one than was meant."""


def in_python(text: str) -> str:
    """The text of an error with options as keywords: `memory="64M"` instead of `--memory 64M`."""

    # A call with `checkpoint=` resumes by itself.
    text = text.replace("the same command with --resume", "the same call").replace("the same command", "the same call")
    text = text.replace("--checkpoint-dir", "--checkpoint")
    for end in ("source", "target", "weight"):
        text = text.replace(f"--{end}-column", f"--{end}")

    import re  # imported where it is needed, since `import graphmill` is to be quick

    def keyword(option: re.Match[str]) -> str:
        name, value = option[1].replace("-", "_"), option[2] or ""
        is_number = re.fullmatch(r"-?(0|[1-9][0-9]*)|[0-9.]+e-[0-9]+", value)
        return f"{name}={value if is_number or not value else repr(value)}"

    # What is a value and not the next word: it has digits, or a colon follows.
    value = r"[0-9.]+e-[0-9]+|[a-z]*[0-9][\w.]*|skip|string|[^\s:]+(?=: )"
    return re.sub(rf"(?<![\w-])--([a-z][a-z-]*[a-z])(?:[ =]({value}))?", keyword, text)
