"""The backend for NetworkX: `nx.connected_components(G, backend="graphmill")`.

NetworkX converts its graphs by `convert_from_nx`, and calls the function of the same name here. What a function cannot do raises
`NotImplementedError`, or is refused by `can_run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import networkx as nx

from graphmill.graph import Graph, from_arrays

Node = Hashable

_EXACT = 1 << 53  # integers below it are floats without rounding


class NetworkXGraph:
    """A graph of NetworkX, as Graphmill stores it: the node of number `n` is `nodes[n]`."""

    __networkx_backend__ = "graphmill"

    def __init__(
        self, nodes: list[Node], edges: tuple[list[int], list[int]], weights: list[Any] | None, directed: bool, multigraph: bool
    ) -> None:
        self.nodes = nodes
        self._edges = edges
        self._weights = weights
        self._directed = directed
        self._multigraph = multigraph
        self._numbers: dict[Node, int] | None = None
        self._stored: dict[str, Graph] = {}

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether two nodes may have several edges."""
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.numbers

    @property
    def numbers(self) -> dict[Node, int]:
        """The number of each node."""
        if self._numbers is None:
            self._numbers = {node: number for number, node in enumerate(self.nodes)}
        return self._numbers

    def plain(self) -> Graph:
        """The stored graph without weights."""
        return self._store("plain", lambda: (*self._edges, None))

    def reversed(self) -> Graph:
        """The stored graph with every edge turned round."""
        return self._store("reversed", lambda: (self._edges[1], self._edges[0], None)) if self._directed else self.plain()

    def weighted(self) -> Graph:
        """The stored graph with weights, which are checked."""
        return self._store("weighted", lambda: (*self._edges, self._checked_weights()))

    @property
    def is_weighted(self) -> bool:
        """Whether NetworkX has converted weights."""
        return self._weights is not None

    def _checked_weights(self) -> list[float]:
        """The weights as floats."""
        weights = self._weights or []
        for weight in weights:
            is_number = isinstance(weight, (int, float)) and -_EXACT <= weight <= _EXACT
            if not is_number or not weight >= 0:
                raise NotImplementedError(f"weights are numbers from 0 to 2^53, not {weight!r}")
        return [float(weight) for weight in weights]

    @property
    def are_weights_integers(self) -> bool:
        """Whether all weights are integers, and so all distances."""
        return self._weights is None or all(isinstance(weight, int) for weight in self._weights)

    def _store(self, form: str, arrays: Callable[[], tuple[list[int], list[int], list[float] | None]]) -> Graph:
        if form not in self._stored:
            sources, targets, weights = arrays()
            self._stored[form] = from_arrays(
                sources, targets, weights, vertices=len(self.nodes), directed=self._directed, progress=False
            )
        return self._stored[form]


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> NetworkXGraph:
    """Converts a graph of NetworkX, with the weights of one attribute of its edges."""
    if isinstance(graph, NetworkXGraph):
        return graph
    nodes = list(graph)
    numbers = {node: number for number, node in enumerate(nodes)}
    sources, targets, weights = [], [], None
    if edge_attrs:
        if len(edge_attrs) > 1:
            raise NotImplementedError("edges with several attributes")
        ((attribute, default),) = edge_attrs.items()
        weights = []
        for source, target, weight in graph.edges(data=attribute, default=1 if default is None else default):
            sources.append(numbers[source])
            targets.append(numbers[target])
            weights.append(weight)
    else:
        for source, target in graph.edges():
            sources.append(numbers[source])
            targets.append(numbers[target])
    converted = NetworkXGraph(nodes, (sources, targets), weights, graph.is_directed(), graph.is_multigraph())
    converted._numbers = numbers
    return converted


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Results are objects of Python already."""
    if isinstance(result, NetworkXGraph):
        raise NotImplementedError("a graph of Graphmill does not become one of NetworkX")
    return result


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether the backend can run a call; else why not."""
    weight = kwargs.get("weight", args[3] if name == "single_source_dijkstra_path_length" and len(args) > 3 else None)
    return "weights by a function" if callable(weight) else True


def _groups(G: NetworkXGraph, strong: bool) -> list[list[int]]:
    """The numbers of the nodes of each component, in order."""
    if len(G) == 0:
        return []
    groups: dict[int, list[int]] = {}
    graph = G.plain()
    for node, component in graph.scc() if strong else graph.wcc():
        groups.setdefault(component, []).append(node)
    return list(groups.values())


def _components(G: NetworkXGraph, strong: bool = False) -> Iterator[set[Node]]:
    for group in _groups(G, strong):
        yield {G.nodes[node] for node in group}


def _is_one(G: NetworkXGraph, strong: bool = False) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return len(_groups(G, strong)) == 1


def connected_components(G: NetworkXGraph) -> Iterator[set[Node]]:
    """The connected components, each as a set of nodes."""
    return _components(G)


def number_connected_components(G: NetworkXGraph) -> int:
    """The number of connected components."""
    return len(_groups(G, False))


def is_connected(G: NetworkXGraph) -> bool:
    """Whether the graph is one component."""
    return _is_one(G)


def node_connected_component(G: NetworkXGraph, n: Node) -> set[Node]:
    """The component of a node."""
    number = G.numbers[n]
    return next({G.nodes[node] for node in group} for group in _groups(G, False) if number in group)


def weakly_connected_components(G: NetworkXGraph) -> Iterator[set[Node]]:
    """The weakly connected components."""
    return _components(G)


def number_weakly_connected_components(G: NetworkXGraph) -> int:
    """The number of weakly connected components."""
    return len(_groups(G, False))


def is_weakly_connected(G: NetworkXGraph) -> bool:
    """Whether the graph is one weakly connected component."""
    return _is_one(G)


def strongly_connected_components(G: NetworkXGraph) -> Iterator[set[Node]]:
    """The strongly connected components."""
    return _components(G, strong=True)


def number_strongly_connected_components(G: NetworkXGraph) -> int:
    """The number of strongly connected components."""
    return len(_groups(G, True))


def is_strongly_connected(G: NetworkXGraph) -> bool:
    """Whether the graph is one strongly connected component."""
    return _is_one(G, strong=True)


def _distances(G: NetworkXGraph, rows: Any, cutoff: float | None, integers: bool) -> dict[Node, Any]:
    """The nodes that are reached, by distance; the source is, whatever the cutoff."""
    most = math.inf if cutoff is None else max(cutoff, 0)
    found = [(distance, node) for node, distance in rows if distance is not None and distance <= most]
    return {G.nodes[node]: int(distance) if integers else distance for distance, node in sorted(found)}


def _levels(cutoff: float | None) -> float | None:
    """The levels of a search of NetworkX, which goes through the first one beyond a fraction."""
    return cutoff if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)


def _number(G: NetworkXGraph, node: Node, text: str) -> int:
    if node not in G:
        raise nx.NodeNotFound(text)
    return G.numbers[node]


def single_source_shortest_path_length(G: NetworkXGraph, source: Node, cutoff: float | None = None) -> dict[Node, int]:
    """The edges from a source to each node that is reached."""
    number = _number(G, source, f"Source {source} is not in G")
    return _distances(G, G.plain().bfs(number), _levels(cutoff), integers=True)


def single_target_shortest_path_length(G: NetworkXGraph, target: Node, cutoff: float | None = None) -> dict[Node, int]:
    """The edges from each node that reaches it to a target."""
    number = _number(G, target, f"Target {target} is not in G")
    return _distances(G, G.reversed().bfs(number), _levels(cutoff), integers=True)


def single_source_dijkstra_path_length(
    G: NetworkXGraph, source: Node, cutoff: float | None = None, weight: str | None = "weight"
) -> dict[Node, float]:
    """The length of the shortest path from a source to each node that is reached."""
    number = _number(G, source, f"Node {source} not found in graph")
    # A graph that NetworkX converted before may have weights that this call has no use for.
    if weight is None or not G.is_weighted:
        return _distances(G, G.plain().bfs(number), cutoff, integers=True)
    return _distances(G, G.weighted().sssp(number), cutoff, G.are_weights_integers)
