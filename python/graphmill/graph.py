"""Stored graphs, and what makes them."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from graphmill import _graphmill
from graphmill._algorithms import Algorithms
from graphmill._words import words
from graphmill.job import Job
from graphmill.result import Result


class Graph(Algorithms):
    """A stored graph. Each algorithm is a method.

    A graph without a directory of its own (`read_edges` without `to`) is deleted with the object.
    """

    def __init__(self, path: str | PathLike[str], info: dict[str, Any]) -> None:
        self.path = Path(path)
        """The directory of the stored graph."""
        self.info = info
        """What `graphmill info` says of it."""

    @property
    def vertices(self) -> int:
        """The number of vertices."""
        return int(self.info["vertices"])

    @property
    def arcs(self) -> int:
        """The number of stored arcs: an undirected edge is two."""
        return int(self.info["arcs"])

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return bool(self.info["directed"])

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<graphmill.Graph of {self.vertices:,} vertices and {self.arcs:,} arcs, {kind}: {self.path}>"

    def _start(self, algorithm: str, options: Mapping[str, object], limits: Mapping[str, object]) -> Job[Result]:
        """Starts a run of an algorithm on this graph."""
        limits = dict(limits)
        progress = limits.pop("progress", None)
        if (checkpoint := limits.pop("checkpoint", None)) is not None:
            limits |= {"checkpoint_dir": checkpoint, "resume": True}
        line = [*words(options), *words(limits), "--", str(self.path)]
        native = _graphmill.start_run(algorithm, line)
        return Job(native, lambda result: Result(result, self), progress if isinstance(progress, bool) else None)


def open(path: str | PathLike[str]) -> Graph:
    """Opens the stored graph in the directory `path`."""
    return Graph(path, json.loads(_graphmill.info(fspath(path))))


Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


def read_edges(
    paths: Paths,
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    directed: bool = True,
    to: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Graph:
    """Reads files of edges into a stored graph.

    Args:
        paths: A file, a directory or a pattern such as `pairs/*.parquet`, or some of these. Files are Parquet, CSV, TSV, text or pairs of
            integers, also compressed.
        source: The column of the sources, by name or by number from 1.
        target: The column of the targets.
        weight: The column of the weights, which are kept with 64 bits.
        directed: Whether an edge goes one way.
        to: The directory of the stored graph, which must not exist. A killed import with `to` resumes. Without it the graph is
            temporary.
        progress: Whether a line on standard error shows progress; by default at a terminal and in a notebook.
        **options: The options of `graphmill import`, such as `memory="1G"`, `threads=2`, `ids="string"` or `duplicates="first"`.
    """
    paths = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    columns = {"source_column": source, "target_column": target, "weight_column": weight}
    folder = None
    if to is None:
        import tempfile

        folder = tempfile.mkdtemp(prefix="graphmill-", dir=options.get("tmp"))
        to = Path(folder) / "graph"
        options.setdefault("checkpoints", 0)
    line = [*words(columns), *words({"undirected": not directed, "output": to, **options}), "--", *(fspath(path) for path in paths)]
    try:
        native = _graphmill.start_import(line)
        Job(native, json.loads, progress)._wait()
        graph = open(to)
    except BaseException:
        if folder is not None:
            _remove(folder)
        raise
    if folder is not None:
        weakref.finalize(graph, _remove, folder)
    return graph


def _remove(folder: str) -> None:
    """Deletes a temporary directory."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
