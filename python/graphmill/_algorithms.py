"""The algorithms as methods of a graph. Written by python/algorithms.py from `graphmill algorithms --json`."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from typing import Any, Literal, Unpack, overload

from graphmill._runs import Limits, Runs
from graphmill._words import ids
from graphmill.job import Job
from graphmill.result import Result, VertexId


class Algorithms(Runs):
    """Each method returns a `Result`; with `background=True` it returns a `Job` at once.

    All take the keywords of `Limits`, and raise the errors of `graphmill.errors`. Where an option is a file with values of vertices, a mapping from
    ids to values serves too; where it is a file with a set of vertices, a collection of ids.
    """

    @overload
    def bfs(
        self,
        source: VertexId,
        *,
        parents: bool = False,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def bfs(
        self,
        source: VertexId,
        *,
        parents: bool = False,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def bfs(
        self,
        source: VertexId,
        *,
        parents: bool = False,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """How many arcs away each vertex is from a source.

        Args:
            source: The vertex to start from.
            parents: Give parents in the search tree instead of depths; of several the one with the smallest id.
        """
        return self._run("bfs", {"source": source, "parents": parents}, background, limits)

    @overload
    def bp(
        self,
        *,
        priors: str | PathLike[str] | Mapping[Any, float] | None = None,
        affinity: float | None = None,
        potential: str | None = None,
        iterations: int | None = None,
        tolerance: float | None = None,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def bp(
        self,
        *,
        priors: str | PathLike[str] | Mapping[Any, float] | None = None,
        affinity: float | None = None,
        potential: str | None = None,
        iterations: int | None = None,
        tolerance: float | None = None,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def bp(
        self,
        *,
        priors: str | PathLike[str] | Mapping[Any, float] | None = None,
        affinity: float | None = None,
        potential: str | None = None,
        iterations: int | None = None,
        tolerance: float | None = None,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """Loopy belief propagation (sum-product) on two states: the probability of state 1 of each vertex, from
        priors and neighbours.

        Args:
            priors: The probability of state 1 without its neighbours: a file of values from 0 to 1 (CSV or Parquet
                with the columns vertex and a value); a vertex without a row has 0.5.
            affinity: How much neighbours are alike, between 0 and 1: the potential A,1-A,1-A,A; above 0.5 they tend
                to the same state (give this or `potential`).
            potential: The potential of an edge, all above 0: a and b for source in state 0 and destination in state 0
                and 1, c and d for source in state 1; weights of edges are its exponents.
            iterations: Iterations, or how many at the most with `tolerance`. By default 100.
            tolerance: Stop when all messages together, as probabilities, change by less than this in an iteration.
        """
        return self._run("bp", {"priors": priors, "affinity": affinity, "potential": potential, "iterations": iterations, "tolerance": tolerance}, background, limits)

    @overload
    def cdlp(
        self,
        *,
        iterations: int | None = None,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def cdlp(
        self,
        *,
        iterations: int | None = None,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def cdlp(
        self,
        *,
        iterations: int | None = None,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """Communities by label propagation (LDBC Graphalytics): a vertex begins with its own id; in each round it
        takes the label that most of its neighbours have, of several the smallest id.

        Args:
            iterations: The number of rounds. All vertices take their labels at the same time, by the labels before
                the round. In a directed graph a neighbour counts for each arc from it and for each arc to it. By
                default 10.
        """
        return self._run("cdlp", {"iterations": iterations}, background, limits)

    @overload
    def conductance(
        self,
        set: str | PathLike[str] | Collection[VertexId],
        *,
        weighted: bool = False,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def conductance(
        self,
        set: str | PathLike[str] | Collection[VertexId],
        *,
        weighted: bool = False,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def conductance(
        self,
        set: str | PathLike[str] | Collection[VertexId],
        *,
        weighted: bool = False,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """How well a set of vertices is separated: the arcs between the set and the rest, over the arcs that leave
        the vertices of the side with fewer.

        Args:
            set: The set: a file of ids (CSV or Parquet with a column vertex, or an id in each line); or the vertices
                with odd or even integer ids.
            weighted: Go by the weights of arcs instead of counting each arc as 1.
        """
        return self._run("conductance", {"set": set, "weighted": weighted}, background, limits)

    @overload
    def mis(
        self,
        *,
        priority: Literal["hash", "id"] | None = None,
        seed: int | None = None,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def mis(
        self,
        *,
        priority: Literal["hash", "id"] | None = None,
        seed: int | None = None,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def mis(
        self,
        *,
        priority: Literal["hash", "id"] | None = None,
        seed: int | None = None,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """A maximal independent set, which has no two neighbours and cannot grow: 1 for its vertices, 0 for the
        others.

        Args:
            priority: The order in which vertices are taken into the set, unless a neighbour is in it: by a hash of
                the id's position and `seed`, in few rounds; or by id. By default hash.
            seed: Another number gives another order of the hash, and another set. By default 0.
        """
        return self._run("mis", {"priority": priority, "seed": seed}, background, limits)

    @overload
    def mst(
        self,
        *,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def mst(
        self,
        *,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def mst(
        self,
        *,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """A minimum spanning forest: the edges of least weight that connect each component, arcs taken without their
        direction.
        """
        return self._run("mst", {}, background, limits)

    @overload
    def pagerank(
        self,
        *,
        iterations: int | None = None,
        damping: float | None = None,
        tolerance: float | None = None,
        dangling: Literal["redistribute", "drop"] | None = None,
        sources: Iterable[VertexId] | None = None,
        personalization: str | PathLike[str] | Mapping[Any, float] | None = None,
        dangling_vector: str | PathLike[str] | Mapping[Any, float] | None = None,
        start: str | PathLike[str] | Mapping[Any, float] | None = None,
        weighted: bool = False,
        precision: Literal["f64", "f32", "fixed"] | None = None,
        method: Literal["passes", "pregel-pull", "pregel-push"] | None = None,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def pagerank(
        self,
        *,
        iterations: int | None = None,
        damping: float | None = None,
        tolerance: float | None = None,
        dangling: Literal["redistribute", "drop"] | None = None,
        sources: Iterable[VertexId] | None = None,
        personalization: str | PathLike[str] | Mapping[Any, float] | None = None,
        dangling_vector: str | PathLike[str] | Mapping[Any, float] | None = None,
        start: str | PathLike[str] | Mapping[Any, float] | None = None,
        weighted: bool = False,
        precision: Literal["f64", "f32", "fixed"] | None = None,
        method: Literal["passes", "pregel-pull", "pregel-push"] | None = None,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def pagerank(
        self,
        *,
        iterations: int | None = None,
        damping: float | None = None,
        tolerance: float | None = None,
        dangling: Literal["redistribute", "drop"] | None = None,
        sources: Iterable[VertexId] | None = None,
        personalization: str | PathLike[str] | Mapping[Any, float] | None = None,
        dangling_vector: str | PathLike[str] | Mapping[Any, float] | None = None,
        start: str | PathLike[str] | Mapping[Any, float] | None = None,
        weighted: bool = False,
        precision: Literal["f64", "f32", "fixed"] | None = None,
        method: Literal["passes", "pregel-pull", "pregel-push"] | None = None,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """How important each vertex is: the share of time that a random walk spends there.

        Args:
            iterations: Iterations, or how many at the most with `tolerance`. By default 20.
            damping: The chance to follow an arc rather than to jump. By default 0.85.
            tolerance: Stop when all ranks together change by less than this in an iteration.
            dangling: What becomes of the rank of vertices without outgoing arcs. By default redistribute.
            sources: Personalised: jumps lead to these vertices only; within an id, put a backslash before a comma or
                backslash.
            personalization: Personalised: a jump leads to a vertex in proportion to its value in a file (CSV or
                Parquet with the columns vertex and a value; a vertex without a row has 0).
            dangling_vector: Where the rank of vertices without outgoing arcs goes, as for `personalization`; by
                default where jumps lead.
            start: The first ranks, in proportion to the values of a file, or all equal (ones); by default the chances
                of a jump.
            weighted: Split the score of a vertex over its arcs in proportion to their weights (0 or more), not
                equally; where they add up to 0 it has no arcs.
            precision: The floating-point type of the result and of all sums; fixed: f64, but sums are exact in units
                of 2^-63, so that no order changes them. By default f64.
            method: Passes over all edges; or a vertex program whose vertices fetch messages (pull), or put them into
                mailboxes (push: sums are rounded in order of arrival, so the last digits may differ from run to run).
                By default passes.
        """
        return self._run("pagerank", {"iterations": iterations, "damping": damping, "tolerance": tolerance, "dangling": dangling, "sources": None if sources is None else ids(sources), "personalization": personalization, "dangling-vector": dangling_vector, "start": start, "weighted": weighted, "precision": precision, "method": method}, background, limits)

    @overload
    def scc(
        self,
        *,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def scc(
        self,
        *,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def scc(
        self,
        *,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """Which vertices reach each other: the smallest vertex of each one's strongly connected component.
        """
        return self._run("scc", {}, background, limits)

    @overload
    def spmv(
        self,
        *,
        vector: str | PathLike[str] | Mapping[Any, float] | None = None,
        transpose: bool = False,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def spmv(
        self,
        *,
        vector: str | PathLike[str] | Mapping[Any, float] | None = None,
        transpose: bool = False,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def spmv(
        self,
        *,
        vector: str | PathLike[str] | Mapping[Any, float] | None = None,
        transpose: bool = False,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """The matrix of the graph times a vector: for each vertex the sum over its arcs of the weight times the value
        at the other end.

        Args:
            vector: The vector: a file of values (CSV or Parquet with the columns vertex and a value, such as a
                result; a vertex without a row has 0), or all ones. By default ones.
            transpose: Sum over the arcs that enter a vertex, not over the arcs that leave it.
        """
        return self._run("spmv", {"vector": vector, "transpose": transpose}, background, limits)

    @overload
    def sssp(
        self,
        source: VertexId,
        *,
        precision: Literal["f64", "f32"] | None = None,
        method: Literal["delta", "bellman-ford", "pregel-pull", "pregel-push"] | None = None,
        delta: float | None = None,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def sssp(
        self,
        source: VertexId,
        *,
        precision: Literal["f64", "f32"] | None = None,
        method: Literal["delta", "bellman-ford", "pregel-pull", "pregel-push"] | None = None,
        delta: float | None = None,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def sssp(
        self,
        source: VertexId,
        *,
        precision: Literal["f64", "f32"] | None = None,
        method: Literal["delta", "bellman-ford", "pregel-pull", "pregel-push"] | None = None,
        delta: float | None = None,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """How far away each vertex is from a source, by the weights of arcs.

        Args:
            source: The vertex to start from.
            precision: The floating-point type of the result and of all sums. By default f64.
            method: Nearest vertices first, by delta-stepping, where edges are in memory; or all that came closer in
                each pass; or as a vertex program whose vertices fetch messages (pull), or put them into mailboxes
                (push). By default delta.
            delta: Distances that delta-stepping takes as one; chosen by the weights unless given.
        """
        return self._run("sssp", {"source": source, "precision": precision, "method": method, "delta": delta}, background, limits)

    @overload
    def wcc(
        self,
        *,
        method: Literal["auto", "afforest", "union-find", "labels", "pregel-pull", "pregel-push"] | None = None,
        background: Literal[False] = False,
        **limits: Unpack[Limits],
    ) -> Result: ...

    @overload
    def wcc(
        self,
        *,
        method: Literal["auto", "afforest", "union-find", "labels", "pregel-pull", "pregel-push"] | None = None,
        background: Literal[True],
        **limits: Unpack[Limits],
    ) -> Job[Result]: ...

    def wcc(
        self,
        *,
        method: Literal["auto", "afforest", "union-find", "labels", "pregel-pull", "pregel-push"] | None = None,
        background: bool = False,
        **limits: Unpack[Limits],
    ) -> Result | Job[Result]:
        """Which vertices hang together: the smallest vertex of each one's weakly connected component.

        Args:
            method: Unite vertices, over lists of edges in memory (afforest) or over edges as they are stored; or
                spread labels, in passes or as a vertex program of a graph imported with `undirected`, whose vertices
                fetch messages (pull), or put them into mailboxes (push). By default auto.
        """
        return self._run("wcc", {"method": method}, background, limits)
