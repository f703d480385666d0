"""The backend of NetworkX gives what NetworkX gives."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

nx = pytest.importorskip("networkx")

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
