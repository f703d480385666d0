"""The result of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from graphmill import _graphmill
from graphmill.job import Job

if TYPE_CHECKING:
    import numpy as _numpy
    import pandas as _pandas
    import polars as _polars
    import pyarrow as _pyarrow

VertexId = int | str | UUID
"""What the user calls a vertex."""


class Result:
    """The rows of a finished run, in ascending order of ids.

    Most algorithms give one value a vertex: the columns `vertex` and, for example, `pagerank`. A vertex without a value, such as
    one that a search does not reach, has `None`. `mst` gives edges: `source`, `destination`, `weight`. `conductance` gives one row of
    numbers.

    The rows stay with the run, in its memory or in its temporary files, and can be read any number of times. `close`, the end of a
    `with` block or the end of the object frees them.

    Any library that reads the Arrow C stream interface takes a result as it is, a block of rows at a time:
    `polars.DataFrame(result)`, `pyarrow.table(result)`, `duckdb.sql("SELECT * FROM result")`.
    """

    def __init__(self, native: _graphmill.NativeResult, graph: object) -> None:
        self._native = native
        # A temporary graph lives as long as its results.
        self._graph = graph
        self._vertices, names, self._class_of_ids = native.shape()
        self.columns: list[str] = names
        """The names of the columns."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule of the Arrow C stream interface with all rows."""
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> _pyarrow.Table:
        """All rows as a `pyarrow.Table`."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def to_polars(self) -> _polars.DataFrame:
        """All rows as a `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> _pandas.DataFrame:
        """All rows as a `pandas.DataFrame`; needs pandas and pyarrow."""
        return self.to_arrow().to_pandas()

    def to_numpy(self) -> tuple[_numpy.ndarray[Any, Any], ...]:
        """The columns as NumPy arrays.

        Texts are Python objects. Integers become floats if some are missing, with NaN in their place; raises `OverflowError` if a float does not
        hold one.
        """
        return tuple(self._native.to_numpy())

    def write(self, path: str | PathLike[str]) -> int:
        """Writes all rows to a file, and returns the number of its bytes.

        The name gives the format: `.parquet`, `.csv`, `.tsv`, `.csv.gz` or `.tsv.gz`. With a slash at the end the path is a directory,
        to which each rank writes a file. The file appears when it is complete.
        """
        job: Job[int] = Job(self._native.start_write(fspath(path)), int, None)
        return job._wait()

    def summary(self, count: int = 5) -> dict[str, Any]:
        """The result in a few numbers, with its `count` highest values or largest groups under `top`."""
        summary, _ = self._summary(count)
        return summary

    def top(self, count: int = 10) -> list[tuple[Any, ...]]:
        """The rows with the highest values; of components and communities, the largest with their sizes.

        Of equal values the smallest id comes first. Values that are not a number, and vertices without a value, are left out. A 32-bit
        float has the digits that a text file has, such as 0.1.
        """
        summary, (key, value) = self._summary(count)
        return [tuple(row[name] for name in (key, "destination", value) if name in row) for row in summary.get("top", [])]

    def _summary(self, count: int) -> tuple[dict[str, Any], tuple[str, str]]:
        """The summary, and the names of the first and the last column of its rows."""
        job: Job[tuple[dict[str, Any], tuple[str, str]]] = Job(self._native.start_summary(count), json.loads, None)
        summary, names = job._wait()
        of_text = {"int": int, "str": str, "UUID": UUID}[self._class_of_ids]
        for row in summary.get("top", []):
            for name in (names[0], "destination"):
                if name in row:
                    row[name] = of_text(row[name])
            if isinstance(row[names[1]], str):
                row[names[1]] = float(row[names[1]])  # JSON has no infinity
        return summary, names

    def __getitem__(self, vertex: VertexId) -> Any:
        """The value of a vertex; `None` if it has none. Raises `KeyError` if the graph has no such vertex."""
        if len(self.columns) != 2:
            raise TypeError(f"the rows have the columns {', '.join(self.columns)}, not one value for each vertex")
        row = self._native.row(vertex)
        if row is None:
            raise KeyError(vertex)
        return row[1]

    def __contains__(self, vertex: object) -> bool:
        """Whether the graph has a vertex of this id."""
        if not isinstance(vertex, (int, str, UUID)) or isinstance(vertex, bool):
            return False
        if isinstance(vertex, int) and not -(1 << 63) <= vertex < 1 << 64:
            return False
        return self._native.row(vertex) is not None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples, in ascending order of ids."""
        place = 0
        while place < self._vertices:
            rows, place = self._native.rows(place)
            yield from rows

    @property
    def metrics(self) -> dict[str, Any]:
        """What the run took: seconds, bytes, passes; as `graphmill run --metrics` writes it."""
        metrics: dict[str, Any] = json.loads(self._native.metrics())
        return metrics

    def close(self) -> None:
        """Frees the memory and the temporary files of the run, and deletes the checkpoints of `checkpoint=`."""
        self._native.close()

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<graphmill.Result of {self._vertices:,} vertices: {', '.join(self.columns)}>"
