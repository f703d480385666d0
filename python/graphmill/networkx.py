"""The backend for NetworkX: `nx.connected_components(G, backend="graphmill")`.

NetworkX converts its graphs by `convert_from_nx`, and calls the function of the same name here. What a function cannot do raises
`NotImplementedError`, or is refused by `can_run`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from os import PathLike
from typing import Any

import networkx as nx

from graphmill.errors import GraphmillWarning
from graphmill._networkx_graphs import BackendGraph, NetworkXGraph, Node, StoredGraph
from graphmill.graph import Graph, from_arrow, from_scipy, read_edges


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
) -> BackendGraph:
    """Converts a graph of NetworkX, with the weights of one attribute of its edges."""
    if isinstance(graph, BackendGraph):
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
    converted._attribute = next(iter(edge_attrs)) if edge_attrs else None
    return converted


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """A stored graph as one of Python, if it is not too large; results are objects of Python already."""
    return result.to_python() if isinstance(result, BackendGraph) else result


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """Whether the backend can run a call; else why not."""
    place = {"pagerank": 6, "single_source_dijkstra_path_length": 3}.get(name)
    weight = kwargs.get("weight")
    if place is not None and len(args) > place:
        weight = args[place]
    return "weights by a function" if callable(weight) else True


_EXPECTED = {
    "test_condensation_mapping_and_members": "components come in the order of their first nodes, not of Tarjan's search",
}


def on_start_tests(items: list[Any]) -> None:
    """Marks the tests of NetworkX that are expected to fail; `docs/guide/python.md` lists them."""
    pytest = import_module("pytest")
    for item in items:
        if (reason := _EXPECTED.get(item.name)) is not None:
            item.add_marker(pytest.mark.xfail(reason=reason))


def _stored(create_using: Any, options: dict[str, Any]) -> tuple[bool, bool, dict[str, Any]]:
    """Whether the graph has directed and parallel edges, and the options of its import."""
    kind = nx.empty_graph(0, create_using)
    if len(kind):
        raise NotImplementedError("edges are not added to a graph that is there")
    directed, multigraph = kind.is_directed(), kind.is_multigraph()
    return directed, multigraph, options if multigraph else {"duplicates": "first", **options}


def _graph(graph: Graph, attribute: str | None, multigraph: bool, options: Mapping[str, Any]) -> StoredGraph:
    """The graph of an import."""
    if attribute is not None and not multigraph and any(graph.info["dropped"].values()):
        raise NotImplementedError("of parallel edges NetworkX keeps the last weight: use a multigraph (create_using), or leave out the weights")
    limits = {name: options[name] for name in ("memory", "threads", "tmp") if name in options}
    return StoredGraph(graph, attribute, multigraph, limits)


def read_edgelist(
    path: Any,
    comments: str | None = "#",
    delimiter: str | None = None,
    create_using: Any = None,
    nodetype: type | None = None,
    data: Any = True,
    edgetype: type | None = None,
    encoding: str = "utf-8",
    **options: Any,
) -> StoredGraph:
    """Reads a file of edges into a stored graph, which is no graph of Python.

    Takes the options of `graphmill.read_edges`. Runs on the graph get `memory`, `threads` and `tmp` too.
    """
    attributes = [] if isinstance(data, bool) else list(data)
    is_one = len(attributes) == 1 and attributes[0][1] in (int, float)
    if attributes and not is_one:
        raise NotImplementedError("edges have one attribute, a number")
    if nodetype not in (None, str, int):
        raise NotImplementedError("nodes are texts (str) or integers (int)")
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "ascii") or edgetype is not None:
        raise NotImplementedError("texts are UTF-8, and edges have no type of their own")
    if not isinstance(path, (str, PathLike)):
        # NetworkX has opened the file.
        if not isinstance(getattr(path, "name", None), str) or path.tell():
            raise NotImplementedError("edges are read from a file with a name, from its start")
        path = path.name
    _refuse_other_reading(path, comments, delimiter)
    directed, multigraph, imported = _stored(create_using, options)
    columns = {"source": 1, "target": 2, "weight": 3} if attributes else {"source": 1, "target": 2}
    graph = read_edges(
        path,
        **columns,  # type: ignore[arg-type]
        directed=directed,
        format="text",
        header="no",
        quote="none",
        comments=comments or "none",
        delimiter="space" if delimiter in (None, " ") else "tab" if delimiter == "\t" else delimiter,
        ids="int64" if nodetype is int else "string",
        **imported,
    )
    if data is not False and any("ignored" in line for line in graph.info["read"]):
        raise NotImplementedError("the lines have more columns: say what the third is with data=, or leave all out with data=False")
    return _graph(graph, attributes[0][0] if attributes else None, multigraph, options)


def _refuse_other_reading(path: str | PathLike[str], comments: str | None, delimiter: str | None) -> None:
    """Refuses a file that NetworkX reads in another way: it looks at bytes, which takes a fraction of the import."""
    name = str(path)
    opener = {".gz": "gzip", ".bz2": "bz2"}.get(name[name.rfind(".") :]) if "." in name else None
    mark = (comments or "").encode()
    blanks = [bytes([code]) for code in (11, 12, 28, 29, 30, 31)] + [b"\xc2\x85", b"\xc2\xa0", b"\xe1\x9a\x80", b"\xe2\x80", b"\xe3\x80\x80"]
    separator = (delimiter or "").encode()
    odd = [separator * 2, b"\n" + separator, separator + b"\n", b"\t" if delimiter == " " else b""] if separator else []
    with (import_module(opener) if opener else import_module("io")).open(name, "rb") as file:
        before, in_comment = b"\n", False
        while block := file.read(1 << 20):
            # What a block begins with may be the end of something.
            text = before + block
            if before == b"\n" and block[:3] == b"\xef\xbb\xbf" or any(blank in text for blank in blanks):
                raise NotImplementedError("the file has a byte order mark or blanks that are not ASCII")
            if b"%" in text and b"\n%" in text and mark != b"%":
                raise NotImplementedError("the file has lines that begin with %")
            if any(part and part in text for part in odd):
                raise NotImplementedError("the file has empty columns")
            at = len(before) - len(mark) + 1
            while mark and at >= 0:
                if not in_comment and (at := text.find(mark, at)) >= 0:
                    if text[at - 1 : at] not in (b"\n", b"\r"):
                        raise NotImplementedError(f"the file has {comments} within a line")
                    in_comment = True
                if in_comment and (at := text.find(b"\n", at)) >= 0:
                    in_comment = False
            before = text[-4:]


def read_weighted_edgelist(
    path: Any,
    comments: str | None = "#",
    delimiter: str | None = None,
    create_using: Any = None,
    nodetype: type | None = None,
    encoding: str = "utf-8",
    **options: Any,
) -> StoredGraph:
    """Reads a file of edges with weights into a stored graph."""
    data = (("weight", float),)
    return read_edgelist(path, comments, delimiter, create_using, nodetype, data, None, encoding, **options)


def from_pandas_edgelist(
    df: Any,
    source: str | int = "source",
    target: str | int = "target",
    edge_attr: Any = None,
    create_using: Any = None,
    edge_key: Any = None,
    **options: Any,
) -> StoredGraph:
    """Makes a stored graph of a frame of pandas, or of any other that `graphmill.from_arrow` reads."""
    if edge_key is not None or not (edge_attr is None or isinstance(edge_attr, (str, int))) or isinstance(edge_attr, bool):
        raise NotImplementedError("edges have one attribute, a number, and no keys")
    directed, multigraph, imported = _stored(create_using, options)
    names = list(df.columns)
    if edge_attr is not None and edge_attr not in names:
        raise nx.NetworkXError(f"Invalid edge_attr argument: {edge_attr}")
    for name in (source, target):
        if name not in names:
            raise KeyError(name)
    if edge_attr is not None and getattr(df[edge_attr].dtype, "kind", "f") not in "iufb":
        raise NotImplementedError("the attribute of edges is a number")
    if len({_kind_of_ids(df[name]) for name in (source, target)}) > 1:
        raise NotImplementedError("nodes are all integers or all texts")
    wanted = [source, target] if edge_attr is None else [source, target, edge_attr]
    frame = df[wanted]
    if hasattr(frame, "set_axis"):  # pandas, whose names need not be texts
        frame = frame.set_axis([f"column {number}" for number in range(len(wanted))], axis=1)
    graph = from_arrow(
        frame,
        source=1,
        target=2,
        weight=None if edge_attr is None else 3,
        directed=directed,
        **imported,
    )
    return _graph(graph, None if edge_attr is None else str(edge_attr), multigraph, options)


def _kind_of_ids(column: Any) -> str:
    """Names the type of the ids in a column; a column of objects may hold several types, and all are named."""
    kind: str = getattr(column.dtype, "kind", None) or str(column.dtype)
    if kind != "O":
        return "integer" if kind in "iu" else kind
    return ",".join(sorted({type(value).__name__ for value in column}))


def from_scipy_sparse_array(
    A: Any, parallel_edges: bool = False, create_using: Any = None, edge_attribute: str = "weight", **options: Any
) -> StoredGraph:
    """Makes a stored graph of a sparse array, whose entries are the weights of its edges."""
    if A.shape[0] != A.shape[1]:
        raise nx.NetworkXError(f"Adjacency matrix not square: nx,ny={A.shape}")
    directed, multigraph, imported = _stored(create_using, options)
    if parallel_edges:
        raise NotImplementedError("entries are weights, not numbers of edges")
    if not directed:
        if multigraph or (A != A.T).nnz:
            raise NotImplementedError("the array of an undirected graph is symmetric, and its edges are not parallel")
        A = import_module("scipy.sparse").triu(A)
    graph = from_scipy(A, directed=directed, **imported)
    return _graph(graph, edge_attribute, multigraph, options)


def _groups(G: BackendGraph, strong: bool) -> list[list[int]]:
    """The numbers of the nodes of each component, in order."""
    if len(G) == 0:
        return []
    groups: dict[int, list[int]] = {}
    graph = G.plain()
    for node, component in graph.scc(**G.limits) if strong else graph.wcc(**G.limits):
        groups.setdefault(component, []).append(node)
    return list(groups.values())


def _components(G: BackendGraph, strong: bool = False) -> Iterator[set[Node]]:
    for group in _groups(G, strong):
        yield {G.node(node) for node in group}


def _is_one(G: BackendGraph, strong: bool = False) -> bool:
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return len(_groups(G, strong)) == 1


def connected_components(G: BackendGraph) -> Iterator[set[Node]]:
    """The connected components, each as a set of nodes."""
    return _components(G)


def number_connected_components(G: BackendGraph) -> int:
    """The number of connected components."""
    return len(_groups(G, False))


def is_connected(G: BackendGraph) -> bool:
    """Whether the graph is one component."""
    return _is_one(G)


def node_connected_component(G: BackendGraph, n: Node) -> set[Node]:
    """The component of a node."""
    if n not in G:
        raise KeyError(n)
    number = G.vertex(n)
    return next({G.node(node) for node in group} for group in _groups(G, False) if number in group)


def weakly_connected_components(G: BackendGraph) -> Iterator[set[Node]]:
    """The weakly connected components."""
    return _components(G)


def number_weakly_connected_components(G: BackendGraph) -> int:
    """The number of weakly connected components."""
    return len(_groups(G, False))


def is_weakly_connected(G: BackendGraph) -> bool:
    """Whether the graph is one weakly connected component."""
    return _is_one(G)


def strongly_connected_components(G: BackendGraph) -> Iterator[set[Node]]:
    """The strongly connected components."""
    return _components(G, strong=True)


def number_strongly_connected_components(G: BackendGraph) -> int:
    """The number of strongly connected components."""
    return len(_groups(G, True))


def is_strongly_connected(G: BackendGraph) -> bool:
    """Whether the graph is one strongly connected component."""
    return _is_one(G, strong=True)


def _distances(G: BackendGraph, rows: Any, cutoff: float | None, integers: bool) -> dict[Node, Any]:
    """The nodes that are reached, by distance; the source is, whatever the cutoff."""
    most = math.inf if cutoff is None else max(cutoff, 0)
    found = [(distance, node) for node, distance in rows if distance is not None and distance <= most]
    if integers and any(distance >= 1 << 53 for distance, _ in found):
        raise NotImplementedError("distances of 2^53 or more, which floats round")
    return {G.node(node): int(distance) if integers else distance for distance, node in sorted(found)}


def _levels(cutoff: float | None) -> float | None:
    """The levels of a search of NetworkX, which goes through the first one beyond a fraction."""
    return cutoff if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)


def _number(G: BackendGraph, node: Node, text: str) -> Any:
    if node not in G:
        raise nx.NodeNotFound(text)
    return G.vertex(node)


def single_source_shortest_path_length(G: BackendGraph, source: Node, cutoff: float | None = None) -> dict[Node, int]:
    """The edges from a source to each node that is reached."""
    number = _number(G, source, f"Source {source} is not in G")
    return _distances(G, G.plain().bfs(number, **G.limits), _levels(cutoff), integers=True)


def single_target_shortest_path_length(G: BackendGraph, target: Node, cutoff: float | None = None) -> dict[Node, int]:
    """The edges from each node that reaches it to a target."""
    number = _number(G, target, f"Target {target} is not in G")
    return _distances(G, G.reversed().bfs(number, **G.limits), _levels(cutoff), integers=True)


def single_source_dijkstra_path_length(
    G: BackendGraph, source: Node, cutoff: float | None = None, weight: str | None = "weight"
) -> dict[Node, float]:
    """The length of the shortest path from a source to each node that is reached."""
    number = _number(G, source, f"Node {source} not found in graph")
    graph = G.weighted(weight)
    if graph is None:
        return _distances(G, G.plain().bfs(number, **G.limits), cutoff, integers=True)
    return _distances(G, graph.sssp(number, **G.limits), cutoff, G.are_weights_integers)


def _vector(G: BackendGraph, values: Mapping[Node, float] | None) -> dict[Any, float] | None:
    """Values of nodes by their numbers; nodes that are not in the graph are left out."""
    if values is None:
        return None
    vector = {G.vertex(node): float(value) for node, value in values.items() if node in G}
    if not all(value >= 0 and math.isfinite(value) for value in vector.values()):
        raise NotImplementedError("vectors have values of 0 or more")
    return vector


def pagerank(
    G: BackendGraph,
    alpha: float = 0.85,
    personalization: Mapping[Node, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Node, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Node, float] | None = None,
) -> Mapping[Node, float]:
    """The PageRank of each node."""
    if len(G) == 0:
        return {}
    if not 0 <= alpha <= 1:
        raise NotImplementedError("alpha is from 0 to 1")
    vectors = [_vector(G, values) for values in (personalization, dangling, nstart)]
    if vectors[0] is not None and not any(vectors[0].values()):
        raise ZeroDivisionError
    if any(vector is not None and not any(vector.values()) for vector in vectors):
        raise NotImplementedError("vectors are not all 0")
    if max_iter < 1 or not tol > 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    graph = G.weighted(weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphmillWarning)  # that the iterations are not enough, which is an error here
        result = (G.plain() if graph is None else graph).pagerank(
            damping=alpha,
            iterations=max_iter,
            tolerance=len(G) * tol,
            weighted=graph is not None,
            personalization=vectors[0],
            dangling_vector=vectors[1],
            start="ones" if vectors[2] is None else vectors[2],
            **G.limits,
        )
    if not result.metrics["convergence"]["reached"]:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.values(result)
