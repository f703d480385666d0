"""Graphs as the backend for NetworkX has them: converted from Python, or stored, with no graph of Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, ValuesView
from functools import lru_cache
from importlib import import_module
from typing import Any

from graphmill import _graphmill
from graphmill.graph import Graph, from_arrays
from graphmill.result import Result

Node = Hashable

_PYTHON_MAX = 10_000_000  # arcs of a stored graph that becomes one of Python
_EXACT = 1 << 53  # integers below it are floats without rounding


class BackendGraph:
    """A graph of the backend."""

    __networkx_backend__ = "graphmill"
    limits: Mapping[str, Any] = {}
    """The keywords of each run, such as `memory`."""

    def __init__(self, directed: bool, multigraph: bool) -> None:
        self._directed = directed
        self._multigraph = multigraph

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether two nodes may have several edges."""
        return self._multigraph

    def __len__(self) -> int:
        raise NotImplementedError

    def __contains__(self, node: object) -> bool:
        raise NotImplementedError

    def vertex(self, node: Node) -> Any:
        """The id of a node of the graph."""
        raise NotImplementedError

    def node(self, vertex: Any) -> Node:
        """The node of an id."""
        raise NotImplementedError

    def plain(self) -> Graph:
        """The stored graph, whose weights do not count."""
        raise NotImplementedError

    def reversed(self) -> Graph:
        """The stored graph with every edge turned round."""
        raise NotImplementedError

    def weighted(self, weight: str | None) -> Graph | None:
        """The stored graph with these weights, which are checked; `None` if edges have none of this name."""
        raise NotImplementedError

    @property
    def are_weights_integers(self) -> bool:
        """Whether all weights are integers, and so all distances."""
        return False

    def values(self, result: Result) -> Mapping[Node, Any]:
        """The values of all nodes."""
        return {self.node(vertex): value for vertex, value in result}

    def to_python(self) -> Any:
        """The graph as one of NetworkX."""
        raise NotImplementedError("only a stored graph becomes one of Python")


class NetworkXGraph(BackendGraph):
    """A graph of NetworkX, as Graphmill stores it: the node of number `n` is `nodes[n]`."""

    def __init__(
        self, nodes: list[Node], edges: tuple[list[int], list[int]], weights: list[Any] | None, directed: bool, multigraph: bool
    ) -> None:
        super().__init__(directed, multigraph)
        self.nodes = nodes
        self._edges = edges
        self._weights = weights
        self._numbers: dict[Node, int] | None = None
        self._attribute: str | None = None
        self._stored: dict[str, Graph] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.numbers

    def vertex(self, node: Node) -> int:
        return self.numbers[node]

    def node(self, vertex: int) -> Node:
        return self.nodes[vertex]

    @property
    def numbers(self) -> dict[Node, int]:
        """The number of each node."""
        if self._numbers is None:
            self._numbers = {node: number for number, node in enumerate(self.nodes)}
        return self._numbers

    def plain(self) -> Graph:
        return self._store("plain", lambda: (*self._edges, None))

    def reversed(self) -> Graph:
        return self._store("reversed", lambda: (self._edges[1], self._edges[0], None)) if self._directed else self.plain()

    def weighted(self, weight: str | None) -> Graph | None:
        # NetworkX has converted the weights of that name; a graph that it converted before may have some that do not count.
        if weight is None or self._weights is None:
            return None
        if weight != self._attribute:
            raise NotImplementedError(f"the graph was converted with the attribute {self._attribute!r}, not {weight!r}")
        return self._store("weighted", lambda: (*self._edges, self._checked_weights()))

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
        return self._weights is None or all(isinstance(weight, int) for weight in self._weights)

    def _store(self, form: str, arrays: Callable[[], tuple[list[int], list[int], list[float] | None]]) -> Graph:
        if form not in self._stored:
            sources, targets, weights = arrays()
            stored: Callable[..., Graph] = _imported if len(sources) > _SMALL else _imported_before
            self._stored[form] = stored(
                tuple(sources), tuple(targets), None if weights is None else tuple(weights), len(self.nodes), self._directed
            )
        return self._stored[form]


def _imported(
    sources: tuple[int, ...], targets: tuple[int, ...], weights: tuple[float, ...] | None, vertices: int, directed: bool
) -> Graph:
    return from_arrays(sources, targets, weights, vertices=vertices, directed=directed, progress=False)


_SMALL = 256  # edges of a graph whose import is kept: it takes longer than a run
_imported_before = lru_cache(maxsize=256)(_imported)


class StoredGraph(BackendGraph):
    """A stored graph whose nodes are the ids: integers or texts, in ascending order."""

    def __init__(self, graph: Graph, attribute: str | None, multigraph: bool, limits: Mapping[str, Any]) -> None:
        super().__init__(graph.directed, multigraph)
        self.graph = graph
        self.limits = limits
        self._attribute = attribute
        self._ids: Result | None = None

    def __len__(self) -> int:
        return self.graph.vertices

    def __contains__(self, node: object) -> bool:
        if self._ids is None:
            self._ids = self.graph.cdlp(iterations=0, **self.limits)
        is_text = self.graph.info["id_type"] == "text"
        return isinstance(node, str if is_text else int) and node in self._ids

    def vertex(self, node: Node) -> Any:
        return node

    def node(self, vertex: Any) -> Node:
        return vertex  # type: ignore[no-any-return]

    def plain(self) -> Graph:
        return self.graph

    def reversed(self) -> Graph:
        if not self._directed:
            return self.graph
        raise NotImplementedError("a stored graph is not turned round: import its edges with source and target exchanged")

    def weighted(self, weight: str | None) -> Graph | None:
        if weight is None or weight != self._attribute:
            return None
        found = self.graph.info.get("weights") or {}
        if not all(0 <= float(found.get(name, 0)) < math.inf for name in ("least", "greatest")):
            raise NotImplementedError("weights are finite numbers of 0 or more")
        return self.graph

    def values(self, result: Result) -> Mapping[Node, Any]:
        return ResultMapping(result, len(self))

    def to_python(self) -> Any:
        if self.graph.arcs > _PYTHON_MAX:
            raise NotImplementedError(
                f"a stored graph of {self.graph.arcs:,} arcs does not become one of Python, which would take {self.graph.arcs >> 21} GiB or more: "
                "use functions that the backend has, or algorithms of graphmill (`.graph`)"
            )
        nx = import_module("networkx")
        kinds = {(False, False): nx.Graph, (True, False): nx.DiGraph, (False, True): nx.MultiGraph, (True, True): nx.MultiDiGraph}
        made = kinds[self._directed, self._multigraph]()
        nodes = [vertex for vertex, _ in self.graph.cdlp(iterations=0, **self.limits)]
        made.add_nodes_from(nodes)
        sources, targets, weights = _graphmill.edges(self.graph.path, self.graph._memory)
        ends = [(nodes[source], nodes[target]) for source, target in zip(sources, targets)]
        if weights is None or self._attribute is None:
            made.add_edges_from(ends)
        else:
            made.add_weighted_edges_from(((*pair, weight) for pair, weight in zip(ends, weights)), self._attribute)
        return made

    def __repr__(self) -> str:
        return repr(self.graph)


class ResultMapping(Mapping[Node, Any]):
    """The values of the nodes of a stored graph, in ascending order of nodes. They stay in the result."""

    def __init__(self, result: Result, count: int) -> None:
        self.result = result
        self._count = count

    def __getitem__(self, node: Node) -> Any:
        if not isinstance(node, (int, str)) or node not in self:
            raise KeyError(node)
        return self.result[node]

    def __contains__(self, node: object) -> bool:
        is_text = self.result._class_of_ids == "str"
        return isinstance(node, str if is_text else int) and node in self.result

    def __iter__(self) -> Iterator[Node]:
        return (vertex for vertex, _ in self.result)

    def values(self) -> Any:
        """The values, a block at a time."""
        return _Values(self)

    def __len__(self) -> int:
        return self._count

    def items(self) -> Any:
        """The nodes with their values, a block at a time."""
        return _Items(self)

    def __repr__(self) -> str:
        return f"<values of {self._count:,} nodes>"


class _Values(ValuesView[Any]):
    """The values of a result, for any number of loops over them."""

    def __init__(self, mapping: ResultMapping) -> None:
        super().__init__(mapping)
        self._result = mapping.result

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._result)


class _Items:
    """The items of a result, for any number of loops over them."""

    def __init__(self, mapping: ResultMapping) -> None:
        self._mapping = mapping

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._mapping.result)

    def __len__(self) -> int:
        return len(self._mapping)
