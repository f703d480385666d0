"""The same edges from each kind of source, and ids of each type: `pytest python/tests/sources.py`."""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphmill as gm

numpy = pytest.importorskip("numpy")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

EDGES = 1_000_000
BATCH = 8_000


class Sources:
    """A million edges between integers, as a table, in files, and as the graph of the TSV file."""

    def __init__(self, folder: Path) -> None:
        random = numpy.random.default_rng(1)
        self.folder = folder
        self.source, self.target = random.integers(0, 300_000, (2, EDGES))
        self.table = pyarrow.table({"day": ["monday"] * EDGES, "who": self.source, "whom": self.target})
        with open(folder / "edges.tsv", "w") as lines:
            lines.writelines(f"{one}\t{other}\n" for one, other in zip(self.source.tolist(), self.target.tolist()))
        parquet.write_table(self.table, folder / "edges.parquet", row_group_size=70_000)
        self.stored = stored(gm.read_edges(folder / "edges.tsv", to=folder / "wanted"))

    def batches(self) -> Iterator[object]:
        yield from self.table.to_batches(max_chunksize=BATCH)


def stored(graph: gm.Graph) -> dict[str, object]:
    """The bytes of all files of a graph. Of `graph.json` it leaves out the line about the input, and the checksum."""
    files: dict[str, object] = {}
    for path in sorted(graph.path.rglob("*")):
        if path.is_file():
            files[str(path.relative_to(graph.path))] = path.read_bytes()
    about = json.loads((graph.path / "graph.json").read_text())
    about["options"].pop("read", None)
    del about["checksum"]
    return files | {"graph.json": about}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("sources"))


def of_partitions(sources: Sources) -> gm.Graph:
    folder = sources.folder / "partitions"
    for number, start in enumerate(range(0, EDGES, EDGES // 4)):
        part = sources.table.slice(start, EDGES // 4)
        (folder / f"year=202{number}" / "day=1").mkdir(parents=True)
        parquet.write_table(part, folder / f"year=202{number}" / "day=1" / "part-0.parquet")
    return gm.read_edges(folder, source="who", target="whom", to=sources.folder / "graph")


def from_stream(sources: Sources, data: object) -> gm.Graph:
    return gm.from_arrow(data, source="who", target="whom", to=sources.folder / "graph")


def of_polars(sources: Sources) -> gm.Graph:
    return from_stream(sources, pytest.importorskip("polars").from_arrow(sources.table))


def of_lazy_polars(sources: Sources) -> gm.Graph:
    polars = pytest.importorskip("polars")
    frame = polars.scan_parquet(sources.folder / "edges.parquet").filter(polars.col("day") == "monday")
    return from_stream(sources, frame)


def of_pandas(sources: Sources) -> gm.Graph:
    pytest.importorskip("pandas")
    return from_stream(sources, sources.table.to_pandas())


def of_duckdb(sources: Sources) -> gm.Graph:
    duckdb = pytest.importorskip("duckdb")
    query = f"SELECT whom, who, day FROM '{sources.folder / 'edges.parquet'}'"
    return from_stream(sources, duckdb.sql(query))


def of_networkx(sources: Sources) -> gm.Graph:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(300_000))
    graph.add_edges_from(zip(sources.source.tolist(), sources.target.tolist()))
    return gm.from_networkx(graph, to=sources.folder / "graph")


SOURCES: dict[str, Callable[[Sources], gm.Graph]] = {
    "parquet": lambda of: gm.read_edges(of.folder / "edges.parquet", source="who", target=3, to=of.folder / "graph"),
    "partitions": of_partitions,
    "pyarrow": lambda of: from_stream(of, of.table),
    "batch": lambda of: from_stream(of, of.table.combine_chunks().to_batches()[0]),
    "generator": lambda of: from_stream(of, of.batches()),
    "polars": of_polars,
    "lazy polars": of_lazy_polars,
    "pandas": of_pandas,
    "duckdb": of_duckdb,
    "numpy": lambda of: gm.from_arrays(of.source, of.target, to=of.folder / "graph"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_give_the_same_graph(sources: Sources, name: str) -> None:
    graph = SOURCES[name](sources)
    try:
        assert stored(graph) == sources.stored
    finally:
        shutil.rmtree(graph.path)


def test_rows_of_a_sparse_matrix_are_the_vertices(sources: Sources) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    ends = (sources.source, sources.target)
    matrix = sparse.coo_array((numpy.ones(EDGES), ends), shape=(300_000, 300_000))
    graph = gm.from_scipy(matrix, weighted=False, ids="int64", to=sources.folder / "graph")
    wanted = gm.read_edges(sources.folder / "edges.tsv", vertices_below=300_000, to=sources.folder / "below")
    assert graph.vertices == 300_000 and stored(graph) == stored(wanted)
    shutil.rmtree(graph.path)
    with pytest.raises(ValueError, match="square"):
        gm.from_scipy(sparse.coo_array((2, 3)))
    weighted = gm.from_scipy(sparse.csr_array([[0.0, 0.5], [2.5, 0.0]]))
    assert weighted.sssp(0)[1] == 0.5 and weighted.sssp(1)[0] == 2.5


def test_graph_of_networkx_has_its_components(sources: Sources) -> None:
    # NetworkX keeps edges by their source, in another order than the file.
    graph = of_networkx(sources)
    assert (graph.vertices, graph.arcs) == (300_000, EDGES)
    wanted = gm.open(sources.folder / "wanted")
    assert dict(graph.wcc()).items() >= dict(wanted.wcc()).items()
    shutil.rmtree(graph.path)


def test_memory_of_the_reader_does_not_change_the_graph(sources: Sources) -> None:
    for threads in (1, 4):
        limits: dict[str, Any] = {"memory": "64M", "threads": threads}
        graph = gm.from_arrow(sources.batches(), source="who", target="whom", to=sources.folder / "graph", **limits)
        assert stored(graph) == sources.stored
        shutil.rmtree(graph.path)


IDS: dict[str, list[Any]] = {
    "int32": [-(2**31), -1, 0, 2**31 - 1],
    "int64": [-(2**63), 5, 6, 2**63 - 1],
    "uint32": [0, 7, 2**31, 2**32 - 1],
    "uint64": [0, 7, 2**63, 2**64 - 1],
    "string": ["007", "7", "a", "\N{SNOWMAN}"],
    "uuid": [uuid.UUID(int=number) for number in (0, 7, 2**64, 2**128 - 1)],
}


def column(name: str, vertices: list[Any]) -> Any:
    if name != "uuid":
        return pyarrow.array(vertices, getattr(pyarrow, name)())
    stored = pyarrow.array([vertex.bytes for vertex in vertices], pyarrow.binary(16))
    return pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), stored)


@pytest.mark.parametrize("name", IDS)
def test_ids_keep_their_type(tmp_path: Path, name: str) -> None:
    vertices = IDS[name]
    ring = vertices[1:] + vertices[:1]
    table = pyarrow.table({"source": column(name, vertices), "target": column(name, ring)})
    kind = table.schema.field("source").type
    parquet.write_table(table, tmp_path / "edges.parquet")
    (tmp_path / "edges.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in zip(vertices, ring)))
    graphs = [
        gm.read_edges(tmp_path / "edges.parquet", to=tmp_path / "parquet"),
        gm.read_edges(tmp_path / "edges.tsv", ids=name, to=tmp_path / "tsv"),
        gm.from_arrow(table),
        gm.from_arrow(table.to_batches(max_chunksize=1), to=tmp_path / "stream"),
    ]
    if name not in ("string", "uuid"):
        graphs.append(gm.from_arrays(*(numpy.array(ids, name) for ids in (vertices, ring))))
    elif name == "string":
        graphs.append(gm.from_arrays(vertices, ring))
    for graph in graphs:
        assert graph.info["id_type"] == {"string": "text"}.get(name, name)
        result = graph.wcc()
        rows = list(result)
        assert sorted(row[0] for row in rows) == sorted(vertices) and len({row[1] for row in rows}) == 1
        assert {type(row[0]) for row in rows} == {type(row[1]) for row in rows} == {type(vertices[0])}
        arrow = result.to_arrow()
        assert arrow.schema.field("vertex").type == arrow.schema.field("component").type == kind
        assert arrow["vertex"].to_pylist() == [row[0] for row in rows]
        assert set(result.to_numpy()[0]) == set(vertices)
        result.write(tmp_path / "rows.parquet")
        assert parquet.read_table(tmp_path / "rows.parquet").equals(arrow)
        assert graph.bfs(vertices[2])[vertices[3]] == graph.bfs(str(vertices[2]))[str(vertices[3])] == 1
        assert result.top(1) == [(rows[0][0], 4)]
    assert stored(graphs[0]) == stored(graphs[1]) == stored(graphs[3])


@pytest.mark.parametrize("kind", ["dictionary", "large_string", "string_view"])
def test_texts_of_other_layouts_are_read(kind: str) -> None:
    texts = [f"vertex {number % 7}" for number in range(20)] + [None]
    if kind == "dictionary":
        array = pyarrow.array(texts).dictionary_encode()
    else:
        array = pyarrow.array(texts, getattr(pyarrow, kind)())
    table = pyarrow.table({"source": array[:-1], "target": array[:-1]})
    assert gm.from_arrow(table).vertices == 7
    table = pyarrow.table({"source": array, "target": array})
    with pytest.raises(gm.InputError, match="row 21: column source is null"):
        gm.from_arrow(table)
    assert gm.from_arrow(table, on_error="skip").vertices == 7


def test_negative_ids_far_into_a_stream(tmp_path: Path) -> None:
    ids = numpy.arange(500_000)
    ids[-1] = -5
    graph = gm.from_arrow(pyarrow.table({"source": ids, "target": ids[::-1]}))
    lines = tmp_path / "edges.tsv"
    lines.write_text("".join(f"{one}\t{other}\n" for one, other in zip(ids.tolist(), ids[::-1].tolist())))
    wanted = gm.read_edges(lines, ids="int64")
    assert next(iter(graph.wcc()))[0] == -5
    assert graph.wcc().to_arrow().equals(wanted.wcc().to_arrow())


def test_weights_of_a_stream_are_kept() -> None:
    table = pyarrow.table({"a": [1, 2, 1], "b": [2, 3, 3], "cost": [0.5, 0.25, 9.0]})
    graph = gm.from_arrow(table, source="a", target="b", weight="cost")
    assert dict(graph.sssp(1)) == {1: 0.0, 2: 0.5, 3: 0.75}


def test_what_is_no_stream_of_edges_is_refused() -> None:
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        gm.from_arrow(7)
    with pytest.raises(gm.UsageError, match="leave out ranks"):
        gm.from_arrow(pyarrow.table({"x": [1], "y": [1]}), ranks=2)
    with pytest.raises(TypeError, match="without __arrow_c_stream__"):
        gm.from_arrow([7])
    with pytest.raises(ValueError, match="no batch"):
        gm.from_arrow(iter(()))
    with pytest.raises(gm.InputError, match="column x holds floats"):
        gm.from_arrow(pyarrow.table({"x": [0.5], "y": [1]}), source="x", target="y")
    with pytest.raises(gm.InputError, match="nothing"):
        gm.from_arrow(pyarrow.table({"x": [1], "y": [1]}), source="nothing", target="y")

    def broken() -> Iterator[object]:
        yield pyarrow.table({"x": [1], "y": [1]})
        raise RuntimeError("the disk is gone")

    with pytest.raises(gm.InputError, match="the disk is gone"):
        gm.from_arrow(broken())
    with pytest.raises(gm.InputError, match="a batch has the columns"):
        gm.from_arrow(iter([pyarrow.table({"x": [1], "y": [1]}), pyarrow.table({"x": [1], "z": [1]})]))
