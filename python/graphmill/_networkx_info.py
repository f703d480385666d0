"""What NetworkX shows of the backend."""

from __future__ import annotations

from typing import Any

FUNCTIONS = {
    "connected_components": "",
    "from_pandas_edgelist": "The frame becomes a stored graph; options of graphmill.from_arrow are keywords.",
    "from_scipy_sparse_array": "The array becomes a stored graph; options of graphmill.from_scipy are keywords.",
    "is_connected": "",
    "is_strongly_connected": "",
    "is_weakly_connected": "",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_strongly_connected_components": "",
    "number_weakly_connected_components": "",
    "pagerank": "Weights and vectors have finite values of at least 0.",
    "read_edgelist": "The file becomes a stored graph, which is no graph of Python; options of graphmill.read_edges are keywords.",
    "read_weighted_edgelist": "The file becomes a stored graph, which is no graph of Python.",
    "single_source_dijkstra_path_length": "Weights are finite numbers of at least 0 in an attribute of edges.",
    "single_source_shortest_path_length": "Nodes of the same distance come in the order of the graph.",
    "single_target_shortest_path_length": "Nodes of the same distance come in the order of the graph.",
    "strongly_connected_components": "Components come in the order of their first nodes.",
    "weakly_connected_components": "",
}


def get_info() -> dict[str, Any]:
    """The functions of the backend, with what differs from NetworkX."""
    return {
        "backend_name": "graphmill",
        "project": "graphmill",
        "package": "graphmill",
        "short_summary": "Runs algorithms on graphs of any size, in memory or from disk.",
        "functions": {name: {"additional_docs": text} if text else {} for name, text in FUNCTIONS.items()},
    }
