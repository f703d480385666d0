"""The backend of NetworkX gives what NetworkX gives."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

nx = pytest.importorskip("networkx")

from graphmill import _networkx_graphs, networkx as backend  # noqa: E402

BACKEND = {"backend": "graphmill"}
nx.config.warnings_to_ignore.add("cache")  # it warns of the first use of a converted graph


def graphs() -> Iterable[Any]:
    """Graphs of every class, small and odd."""
    draw = random.Random(5)
    for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph):
        yield kind()
        lonely = kind()
        lonely.add_nodes_from(["b", "a", ("c", 1)])
        yield lonely
        for count, edges in ((2, 3), (12, 9), (30, 45)):
            graph = kind()
            graph.add_nodes_from(draw.sample(range(1000), count))
            nodes = list(graph)
            for _ in range(edges):
                graph.add_edge(draw.choice(nodes), draw.choice(nodes), weight=draw.choice([1, 2, 0.5, 7]))
            yield graph


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the class and the text of its error."""
    try:
        value = function(*args, **kwargs)
        return value if isinstance(value, (bool, int, dict, set)) else list(value)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("of", ["connected", "weakly_connected", "strongly_connected"])
def test_components_are_the_same(of: str) -> None:
    for graph in graphs():
        for name in (f"{of}_components", f"number_{of}_components", f"is_{of}"):
            function = getattr(nx, name)
            wanted, found = outcome(function, graph), outcome(function, graph, **BACKEND)
            if of == "strongly_connected" and isinstance(wanted, list):
                wanted, found = ({frozenset(group) for group in groups} for groups in (wanted, found))
            assert found == wanted, (name, graph)
    graph = nx.path_graph(4)
    assert nx.node_connected_component(graph, 2, **BACKEND) == {0, 1, 2, 3}


@pytest.mark.parametrize("cutoff", [None, 0, 1, 1.5, 3, -1])
def test_distances_are_the_same(cutoff: float | None) -> None:
    for graph in graphs():
        for node in [*list(graph)[:3], "no such node"]:
            for name in ("single_source_shortest_path_length", "single_target_shortest_path_length"):
                function = getattr(nx, name)
                wanted = outcome(function, graph, node, cutoff)
                assert outcome(function, graph, node, cutoff, **BACKEND) == wanted, (name, graph)
            function = nx.single_source_dijkstra_path_length
            for weight in ("weight", None, "nothing"):
                wanted = outcome(function, graph, node, cutoff, weight=weight)
                assert outcome(function, graph, node, cutoff, weight=weight, **BACKEND) == wanted, (weight, graph)


def same_ranks(found: Any, wanted: Any) -> bool:
    """Whether two outcomes are the same ranks in the same order, or the same errors."""
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return bool(found == wanted)
    return list(found) == list(wanted) and all(abs(found[node] - wanted[node]) < 1e-12 for node in wanted)


def test_ranks_are_the_same() -> None:
    pytest.importorskip("scipy")
    draw = random.Random(6)
    for graph in graphs():
        some = {node: draw.random() for node in graph if draw.random() < 0.5}
        vectors = [None, some, dict.fromkeys(graph, 2), {"no such node": 1.0}]
        for trial in range(12):
            options = {
                "personalization": draw.choice(vectors),
                "dangling": draw.choice(vectors),
                "nstart": draw.choice(vectors),
                "weight": draw.choice(["weight", None, "nothing"]),
                "alpha": draw.choice([0.85, 0, 0.5, 1]),
                "max_iter": draw.choice([100, 3, 0]),
                "tol": draw.choice([1e-6, 1e-10, 0]),
            }
            for name in ("nstart", "dangling"):
                if options[name] in ({}, {"no such node": 1.0}):
                    options[name] = None  # NetworkX divides by 0 and computes NaN
            wanted = outcome(nx.pagerank, graph, **options)
            found = outcome(nx.pagerank, graph, **options, **BACKEND)
            assert same_ranks(found, wanted), (graph, trial, options, found, wanted)


def test_lengths_of_integers_are_integers() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=3)
    lengths = nx.single_source_dijkstra_path_length(graph, "a", **BACKEND)
    assert lengths == {"a": 0, "b": 3} and all(type(length) is int for length in lengths.values())


def test_what_the_backend_cannot_do_is_left_to_networkx() -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=-1)
    with pytest.raises(NotImplementedError, match="graphmill"):
        nx.single_source_dijkstra_path_length(graph, 0, **BACKEND)
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra_path_length(graph, 0, weight=lambda *_: 1, **BACKEND)
    with pytest.raises(NotImplementedError):
        nx.betweenness_centrality(graph, **BACKEND)


LINES = """# a comment
1 2 0.5
2 3 1.5
3 1 2.0
3 3 1.0
5 1 0.25
"""


@pytest.mark.parametrize("kind", [None, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("nodetype", [int, None])
def test_files_of_edges_are_never_graphs_of_python(tmp_path: Path, kind: Any, nodetype: Any) -> None:
    pytest.importorskip("scipy")
    path = tmp_path / "edges.txt"
    path.write_text(LINES)
    options = {"create_using": kind, "nodetype": nodetype}
    wanted = nx.read_weighted_edgelist(path, **options)
    found = nx.read_weighted_edgelist(path, **options, memory="64M", **BACKEND)
    assert type(found).__name__ == "StoredGraph" and len(found) == len(wanted) and set(wanted) == {n for n in (1, 2, 3, 5, "1", "2", "3", "5") if n in found}
    for call in ({}, {"weight": None}, {"personalization": dict.fromkeys(list(wanted)[:2], 1)}):
        ranks, expected = nx.pagerank(found, **call), nx.pagerank(wanted, **call)
        assert len(ranks) == len(expected) and list(ranks) == sorted(expected)
        assert all(abs(ranks[node] - rank) < 1e-12 for node, rank in expected.items())
        assert dict(ranks) == dict(ranks.items())
    with pytest.raises(KeyError):
        nx.pagerank(found)["no such node"]
    source = list(wanted)[0]
    assert nx.single_source_dijkstra_path_length(found, source) == nx.single_source_dijkstra_path_length(wanted, source)
    if kind in (None, nx.MultiGraph):
        assert list(nx.connected_components(found)) == [set(wanted)]
    with pytest.raises(NotImplementedError):
        nx.betweenness_centrality(found)


def test_frames_and_arrays_become_stored_graphs() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("scipy")
    frame = pandas.DataFrame({"n": [0.5, 2.0, 1.0], "a": ["x", "y", "z"], "b": ["y", "z", "x"]})
    for edge_attr in (None, "n"):
        for kind in (nx.Graph, nx.DiGraph):
            wanted = nx.from_pandas_edgelist(frame, "a", "b", edge_attr, create_using=kind)
            found = nx.from_pandas_edgelist(frame, "a", "b", edge_attr, create_using=kind, **BACKEND)
            options = {"weight": edge_attr}
            assert dict(nx.pagerank(found, **options)) == pytest.approx(nx.pagerank(wanted, **options))
            array = nx.to_scipy_sparse_array(wanted, weight=edge_attr)
            again = nx.from_scipy_sparse_array(array, create_using=kind, **BACKEND)
            expected = nx.pagerank(nx.from_scipy_sparse_array(array, create_using=kind))
            assert dict(nx.pagerank(again)) == pytest.approx(expected)


def test_edges_that_networkx_would_read_in_another_way_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("1 2 0.5\n1 2 1.5\n")
    for function, options, problem in [
        (nx.read_weighted_edgelist, {}, "parallel"),
        (nx.read_edgelist, {}, "more columns"),
        (nx.read_edgelist, {"nodetype": float}, "nodes are texts"),
    ]:
        with pytest.raises(NotImplementedError) as error:
            function(path, **options, **BACKEND)
        assert problem in str(error.value.__cause__)
    assert len(nx.read_edgelist(path, data=False, **BACKEND)) == 2


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_small_stored_graphs_become_graphs_of_python(tmp_path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("3 1 0.5\n1 2 2\n2 2 4\n9 3 1\n7 3 1\n" + ("3 1 0.5\n" if kind().is_multigraph() else ""))
    options: dict[str, Any] = {"nodetype": int, "create_using": kind}
    expected = nx.read_weighted_edgelist(path, **options)
    stored = nx.read_weighted_edgelist(path, backend="graphmill", **options)
    found = backend.convert_to_nx(stored)
    assert type(found) is kind and list(found) == sorted(expected)
    edges = [
        sorted((*(pair if of.is_directed() else sorted(pair)), weight) for *pair, weight in of.edges(data="weight")) for of in (found, expected)
    ]
    assert edges[0] == edges[1]
    monkeypatch.setattr(_networkx_graphs, "_PYTHON_MAX", 3)
    with pytest.raises(NotImplementedError, match="arcs does not become one of Python"):
        backend.convert_to_nx(stored)


@pytest.mark.parametrize(
    ("text", "how"),
    [("1 2#foo\n", {}), (" # c d\n1 2\n", {}), ("% x\n1 2\n", {}), ("\ufeff1 2\n", {}), ("1\xa02\n", {}), ("a  b\n", {"delimiter": " "}), ("1 2 3 4\n", {"data": (("weight", float),)})],
)
def test_files_that_networkx_reads_in_another_way_are_refused(tmp_path: Path, text: str, how: dict[str, Any]) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NotImplementedError):
        backend.read_edgelist(path, **how)


def test_blanks_and_comments_are_read_as_networkx_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("# a # b\na\tb\nb c\n#\n  c   a\n")
    expected = nx.read_edgelist(path)
    read = nx.read_edgelist(path, **BACKEND)
    assert set(read.graph.wcc()) and sorted(expected) == sorted(vertex for vertex, _ in read.graph.wcc())
    assert read.graph.arcs == 2 * expected.number_of_edges()


def test_nodes_that_are_not_there_are_key_errors(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n2 3\n")
    graph = backend.read_edgelist(path, nodetype=int)
    with pytest.raises(KeyError):
        backend.node_connected_component(graph, "missing")
    ranks = backend.pagerank(graph)
    for node in ("1", True, 1 << 70, 9):
        with pytest.raises(KeyError):
            ranks[node]
    assert list(ranks.values()) == [ranks[node] for node in ranks]


def test_distances_that_floats_round_are_refused() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 1 << 53), (1, 2, 1)])
    with pytest.raises(NotImplementedError, match="2\\^53"):
        backend.single_source_dijkstra_path_length(backend.convert_from_nx(graph, edge_attrs={"weight": 1}), 0)
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    with pytest.raises(NotImplementedError, match="converted with the attribute"):
        backend.single_source_dijkstra_path_length(converted, 0, weight="cost")
