"""What the methods of all algorithms share: the limits of a run, and how it is started."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal, TypedDict

from graphmill.job import Job
from graphmill.result import Result


class Limits(TypedDict, total=False):
    """What any run can be told, with the same names as on the command line."""

    memory: str | int
    """The memory budget: bytes, or a text such as `"2G"` or `"25%"`. By default half of the memory."""
    threads: int
    """Worker threads; by default one for each processor."""
    ranks: int
    """Ranks of this process, each with its share of memory and threads."""
    place: str | Mapping[str, str]
    """Where data lies, such as `{"edges": "dram", "rows": "stream"}`."""
    tmp: str | PathLike[str]
    """The directory for temporary files; by default beside the graph."""
    checkpoint: str | PathLike[str]
    """A directory for checkpoints. A run that finds one there resumes from it. It is deleted when the result is closed."""
    checkpoint_every: str | int
    """Passes between checkpoints, or seconds as in `"30s"`."""
    progress: bool
    """Whether a line on standard error shows progress; by default at a terminal and in a notebook."""
    executor: Literal["auto", "column", "stream", "bucket"]
    """Which executor runs passes over edges."""


class Runs:
    """A graph, as its algorithms see it."""

    def _start(self, algorithm: str, options: Mapping[str, object], limits: Mapping[str, Any]) -> Job[Result]:
        """Starts a run of an algorithm."""
        raise NotImplementedError

    def _run(
        self, algorithm: str, options: Mapping[str, object], background: bool, limits: Mapping[str, Any]
    ) -> Result | Job[Result]:
        """Runs an algorithm; in the background it is only started."""
        job = self._start(algorithm, options, limits)
        return job if background else job._wait()
