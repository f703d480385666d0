"""Stored graphs, and what makes them."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from os import PathLike, fspath, getpid
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from graphmill import _graphmill
from graphmill._algorithms import Algorithms
from graphmill._ranks import rank
from graphmill._runs import Limits
from graphmill._words import words
from graphmill.job import Job
from graphmill.program import EdgeProgram, spec
from graphmill.result import Result


class Graph(Algorithms):
    """A stored graph. Each algorithm is a method.

    A graph without a directory of its own (`read_edges` without `to`) is deleted with the object.
    """

    def __init__(
        self, path: str | PathLike[str], info: dict[str, Any], memory: _graphmill.MemoryGraph | None = None
    ) -> None:
        self.path = Path(path)
        """The directory of the stored graph; of a graph in memory there is none."""
        self.info = info
        """What `graphmill info` says of it."""
        self._memory = memory

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
        place = self.path if self._memory is None else "in memory"
        return f"<graphmill.Graph of {self.vertices:,} vertices and {self.arcs:,} arcs, {kind}: {place}>"

    def plan(self, algorithm: str = "pagerank", **options: Any) -> dict[str, Any]:
        """What a run on this graph would take: memory, bytes read, written and sent, and seconds.

        Args:
            algorithm: The name of the algorithm.
            **options: Options of `graphmill estimate`, such as `ranks=4`, `memory="8G"` or `network_rate="10gbit"`.
        """
        if self._memory is not None:
            raise ValueError("a graph in memory is not planned: give it a directory with `to`")
        line = words({"algorithm": algorithm, **options})
        plan: dict[str, Any] = json.loads(_graphmill.estimate([*line, "--", str(self.path)]))
        return plan

    @overload
    def run(
        self, program: EdgeProgram, *, iterations: int | None = None, background: Literal[False] = False, **limits: Unpack[Limits]
    ) -> Result: ...

    @overload
    def run(
        self, program: EdgeProgram, *, iterations: int | None = None, background: Literal[True], **limits: Unpack[Limits]
    ) -> Job[Result]: ...

    def run(
        self, program: EdgeProgram, *, iterations: int | None = None, background: bool = False, **limits: Unpack[Limits]
    ) -> Result | Job[Result]:
        """Runs a program of one's own; its result is one of its columns.

        Args:
            program: An instance of a subclass of `EdgeProgram`.
            iterations: The greatest number of passes; by default the run ends when no vertex sends, or when the program says so.
            background: Whether to return a job at once.
            **limits: As for all algorithms (`Limits`).
        """
        _refuse(limits, _OF_COMMAND, "an option of the command")
        described = spec(program, iterations)

        def start(line: list[str]) -> _graphmill.NativeJob:
            return _graphmill.start_program(described, line, self._memory)

        job = self._job(start, {}, limits)
        return job if background else job._wait()

    def _start(self, algorithm: str, options: Mapping[str, object], limits: Mapping[str, object]) -> Job[Result]:
        """Starts a run of an algorithm on this graph."""
        _refuse(limits, _OF_COMMAND, "an option of the command")
        return self._job(lambda line: _graphmill.start_run(algorithm, line, self._memory), options, limits)

    def _job(
        self, start: Callable[[list[str]], _graphmill.NativeJob], options: Mapping[str, object], limits: Mapping[str, Any]
    ) -> Job[Result]:
        """The job of a run that `start` starts."""
        limits = dict(limits)
        progress = limits.pop("progress", None)
        if (checkpoint := limits.pop("checkpoint", None)) is not None:
            limits |= {"checkpoint_dir": checkpoint, "resume": True}
        options, folder = _with_files(options, limits.get("tmp"))
        try:
            line = [*words(options), *words(limits), "--", str(self.path)]
            native = start(line)
        except BaseException:
            if folder is not None:
                _remove(folder)
            raise
        job = Job(native, lambda result: Result(result, self), progress if isinstance(progress, bool) else None)
        if folder is not None:
            weakref.finalize(job, _remove, folder, getpid())
        return job


_OF_COMMAND = {
    "output": "use Result.write",
    "top": "use Result.top",
    "metrics": "use Result.metrics",
    "json": "use Result.summary",
    "quiet": "use progress=False",
}
_OF_FILES = dict.fromkeys(
    ("format", "delimiter", "header", "quote", "comments", "source_column", "target_column", "weight_column", "edge_data"),
    "arrays have no columns",
)


def _refuse(options: Mapping[str, object], names: Mapping[str, str], what: str) -> None:
    """Refuses options that would have no effect."""
    for name in options:
        if name in names:
            raise TypeError(f"{name}= is {what}: {names[name]}")


def _with_files(options: Mapping[str, object], tmp: object) -> tuple[Mapping[str, object], str | None]:
    """Options with a file in the place of each mapping or collection, and the directory of these files."""
    values = {name: value for name, value in options.items() if isinstance(value, Collection) and not isinstance(value, str)}
    if not values:
        return options, None
    import csv
    import tempfile

    made = tempfile.mkdtemp(prefix="graphmill-", dir=tmp if isinstance(tmp, (str, PathLike)) else None) if rank() == 0 else ""
    try:
        for name, value in values.items() if made else ():
            with (Path(made) / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                rows = csv.writer(file)
                if isinstance(value, Mapping):
                    rows.writerow(["vertex", "value"])
                    rows.writerows((vertex, float(number)) for vertex, number in value.items())
                else:
                    rows.writerow(["vertex"])
                    rows.writerows((vertex,) for vertex in value)
    except BaseException:
        _remove(made)
        raise
    # All ranks of a job name the files of rank 0.
    folder = Path(_graphmill.text_of_first(made))
    return {**options, **{name: folder / f"{name}.csv" for name in values}}, made or None


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
    line = words({**columns, "undirected": not directed, **options})

    def start(graph: str) -> _graphmill.NativeJob:
        return _graphmill.start_import([*line, f"--output={graph}", "--", *(fspath(path) for path in paths)])

    return _stored(start, to, options.get("tmp"), progress)


def from_arrays(
    sources: object,
    targets: object,
    weights: object | None = None,
    *,
    vertices: int | None = None,
    directed: bool = True,
    to: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Graph:
    """Makes a graph of arrays of edges.

    Args:
        sources: The sources: a NumPy array or a sequence of integers with at most 64 bits, also negative ones, or a sequence of texts.
        targets: The targets, as many.
        weights: A number for each edge, or nothing.
        vertices: If it is given, the vertices are the integers below it, also those without edges.
        directed: Whether an edge goes one way.
        to: The directory of the stored graph, which must not exist. Without it the graph is temporary: a small one is in memory.
        progress: Whether a line on standard error shows progress; by default at a terminal and in a notebook.
        **options: Options of `graphmill import`, such as `memory="1G"` or `duplicates="sum"`.
    """
    def start(line: list[str], memory: _graphmill.MemoryGraph | None) -> _graphmill.NativeJob:
        return _graphmill.start_import_arrays(line, sources, targets, weights, vertices, memory)

    _refuse(options, _OF_FILES, "an option of files")
    if (below := options.pop("vertices_below", None)) is not None:
        vertices = below if vertices is None else vertices
    if options.get("ids") == "string":
        sources, targets = _texts(sources), _texts(targets)
    count = len(sources)  # type: ignore[arg-type]
    return _made(start, count, {"undirected": not directed, **options}, to, progress)


def _texts(ids: Any) -> list[str]:
    """Ids of an array or a sequence as texts."""
    return [str(id) for id in (ids.tolist() if hasattr(ids, "tolist") else ids)]


def from_arrow(
    data: object,
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    vertices: int | None = None,
    directed: bool = True,
    to: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Graph:
    """Makes a graph of a table or a stream of edges.

    The edges are read as a stream, once: a block of rows at a time, and only the columns that are named.

    Args:
        data: What has `__arrow_c_stream__` or `__arrow_c_array__`, such as a frame of Polars or pandas, a table of pyarrow or a relation of
            DuckDB; a lazy frame of Polars; or an iterable of such objects, all with the same columns.
        source: The column of the sources, by name or by number from 1. It holds integers, text or UUIDs, also in a dictionary.
        target: The column of the targets.
        weight: The column of the weights, which are kept with 64 bits.
        vertices: If it is given, the vertices are the integers below it, also those without edges.
        directed: Whether an edge goes one way.
        to: The directory of the stored graph, which must not exist. Without it the graph is temporary: a small one is in memory.
        progress: Whether a line on standard error shows progress; by default at a terminal and in a notebook.
        **options: Options of `graphmill import`, such as `memory="1G"`, `ids="string"` or `on_error="skip"`.
    """
    lazy = getattr(data, "collect_batches", None)
    batches = data if lazy is None else lazy()
    columns = {"source_column": source, "target_column": target, "weight_column": weight, "vertices_below": vertices}

    def start(line: list[str], memory: _graphmill.MemoryGraph | None) -> _graphmill.NativeJob:
        return _graphmill.start_import_stream(line, batches, memory)

    # The length of a list is not that of its batches.
    is_table = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    count = len(data) if is_table and isinstance(data, Sized) else None
    return _made(start, count, {**columns, "undirected": not directed, **options}, to, progress)


def from_scipy(
    matrix: Any,
    *,
    weighted: bool = True,
    directed: bool = True,
    to: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Graph:
    """Makes a graph of a sparse matrix of SciPy: an entry in row `i` and column `j` is an edge from `i` to `j`.

    Args:
        matrix: A square sparse array or matrix. Its rows are the vertices.
        weighted: Whether the entries are the weights of the edges.
        directed: Whether an edge goes one way. If not, the matrix has each edge once.
        to: As for `from_arrays`.
        progress: As for `from_arrays`.
        **options: As for `from_arrays`.
    """
    rows, columns = matrix.shape
    if rows != columns:
        raise ValueError(f"the matrix of a graph is square, and this one has {rows} rows and {columns} columns")
    entries = matrix.tocoo()
    weights = entries.data.astype("float64") if weighted else None
    return from_arrays(
        entries.row, entries.col, weights, vertices=rows, directed=directed, to=to, progress=progress, **options
    )


def from_networkx(
    graph: Any,
    *,
    weight: str | None = None,
    to: str | PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Graph:
    """Makes a graph of one of NetworkX, whose nodes are all integers or all texts.

    Nodes without edges are left out, unless the nodes are the integers from 0 on.

    Args:
        graph: A graph of NetworkX, of any of its four classes.
        weight: The attribute of edges that is their weight; an edge without it has the weight 1.
        to: As for `from_arrays`.
        progress: As for `from_arrays`.
        **options: As for `from_arrays`.
    """
    sources, targets, weights = [], [], []
    for source, target, value in graph.edges(data=weight, default=1):
        sources.append(source)
        targets.append(target)
        weights.append(value)
    count = len(graph)
    is_dense = all(isinstance(node, int) and 0 <= node < count for node in graph)
    return from_arrays(
        sources,
        targets,
        None if weight is None else weights,
        vertices=count if is_dense else None,
        directed=graph.is_directed(),
        to=to,
        progress=progress,
        **options,
    )


def _made(
    start: Callable[[list[str], _graphmill.MemoryGraph | None], _graphmill.NativeJob],
    count: int | None,
    options: dict[str, Any],
    to: str | PathLike[str] | None,
    progress: bool | None,
) -> Graph:
    """The graph of an import that `start` starts, of `count` edges if that is known."""
    if count is not None and count <= _SMALL:
        options = {"threads": 1, **options}
    line = words(options)
    if to is None and count is not None and count <= _IN_MEMORY:
        memory = _graphmill.MemoryGraph()
        Job(start([*line, f"--output={memory.path}"], memory), json.loads, progress)._wait()
        return Graph(memory.path, json.loads(_graphmill.info(memory.path, memory)), memory)
    return _stored(lambda graph: start([*line, f"--output={graph}"], None), to, options.get("tmp"), progress)


_SMALL = 1 << 16  # edges that one thread imports as soon as two
_IN_MEMORY = 1 << 22  # edges of a temporary graph that stays in memory


def _stored(
    start: Callable[[str], _graphmill.NativeJob],
    to: str | PathLike[str] | None,
    tmp: str | None,
    progress: bool | None,
) -> Graph:
    """The graph of an import to `to`, or to a temporary directory; `start` starts the import."""
    folder = None
    if to is None:
        import tempfile

        # The ranks of a job have one graph, which rank 0 deletes.
        made = tempfile.mkdtemp(prefix="graphmill-", dir=tmp) if rank() == 0 else ""
        to = Path(_graphmill.text_of_first(made)) / "graph"
        folder = made or None
    try:
        Job(start(fspath(to)), json.loads, progress)._wait()
        graph = open(to)
    except BaseException:
        if folder is not None:
            _remove(folder)
        raise
    if folder is not None:
        weakref.finalize(graph, _remove, folder, getpid())
    return graph


def _remove(folder: str, process: int | None = None) -> None:
    """Deletes a temporary directory, unless it is of the process that this one was forked from."""
    import shutil

    if process in (None, getpid()):
        shutil.rmtree(folder, ignore_errors=True)
