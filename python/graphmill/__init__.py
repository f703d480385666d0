"""Graph algorithms on graphs of any size: in memory when they fit, from disk when they do not, on a cluster.

    import graphmill as gm

    graph = gm.read_edges("pairs/*.parquet", source="unique_id_l", target="unique_id_r", directed=False, to="graph", memory="1G")
    graph.wcc(memory="1G").write("components.parquet")
    graph.pagerank(iterations=30).top(10)
"""

from graphmill._graphmill import __version__
from graphmill._ranks import rank, ranks
from graphmill.errors import (
    Cancelled,
    DiskError,
    GraphmillError,
    GraphmillWarning,
    InputError,
    MemoryBudgetError,
    RankError,
    UsageError,
)
from graphmill.graph import Graph, from_arrays, from_arrow, from_networkx, from_scipy, open, read_edges
from graphmill.job import Job, Progress
from graphmill.program import EdgeProgram, Vertex
from graphmill.result import Result

__all__ = [
    "Cancelled",
    "DiskError",
    "EdgeProgram",
    "Graph",
    "GraphmillError",
    "GraphmillWarning",
    "InputError",
    "Job",
    "MemoryBudgetError",
    "Progress",
    "RankError",
    "Result",
    "UsageError",
    "Vertex",
    "__version__",
    "from_arrays",
    "from_arrow",
    "from_networkx",
    "from_scipy",
    "open",
    "rank",
    "ranks",
    "read_edges",
]
