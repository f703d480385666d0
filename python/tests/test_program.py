"""Programs of one's own, compiled by numba or by a C compiler."""

import ctypes
import math
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import graphmill as gm
from graphmill import program as programs

pytest.importorskip("numba")


class PageRank(gm.EdgeProgram):
    columns = {"rank": float}
    shared = {"damping": 0.85}
    sums = ["lost"]
    combine = "sum"
    everywhere = True

    def begin(v: Any, g: Any) -> None:
        v.rank = 1 / g.vertices
        v.lost = 0.0 if v.out_degree else v.rank

    def signal(v: Any, g: Any) -> Any:
        return v.rank / v.out_degree

    def apply(v: Any, g: Any, received: Any) -> None:
        jump = 1 - g.damping + g.damping * g.lost
        v.rank = 1 / g.vertices * jump + g.damping * received
        v.lost = 0.0 if v.out_degree else v.rank


class FoldedPageRank(PageRank):
    combine = None  # type: ignore[assignment]
    identity = -0.0

    def fold(accumulator: Any, message: Any) -> Any:
        return accumulator + message


class Distances(gm.EdgeProgram):
    columns = {"distance": float}
    shared = {"source": gm.Vertex}
    combine = "min"

    def begin(v: Any, g: Any) -> None:
        v.active = v.ordinal == g.source
        v.distance = 0.0 if v.active else math.inf

    def signal(v: Any, g: Any) -> Any:
        return v.distance

    def along(message: Any, weight: Any) -> Any:
        return message + weight

    def apply(v: Any, g: Any, received: Any) -> None:
        if received < v.distance:
            v.distance = received
            v.active = True


class Components(gm.EdgeProgram):
    columns = {"component": gm.Vertex}
    message = int
    combine = "min"

    def begin(v: Any, g: Any) -> None:
        v.component = v.ordinal
        v.active = True

    def signal(v: Any, g: Any) -> Any:
        return v.component

    def apply(v: Any, g: Any, received: Any) -> None:
        if received < v.component:
            v.component = received
            v.active = True


def random_edges(seed: int, vertices: int = 300, edges: int = 1500) -> tuple[list[int], list[int], list[float]]:
    """Edges with loops, duplicates and a hub; the last vertices have none."""
    draw = random.Random(seed)
    sources = [draw.randrange(vertices // 2) if draw.random() < 0.7 else 0 for _ in range(edges)]
    targets = [draw.randrange(vertices - 10) for _ in range(edges)]
    return sources, targets, [draw.randrange(1, 100) / 4 for _ in range(edges)]


WAYS: list[dict[str, Any]] = [
    {},
    {"threads": 2, "memory": "16M", "place": {"edges": "stream"}},
    {"ranks": 3},
    {"executor": "bucket", "ranks": 2},
]


@pytest.fixture(params=range(len(WAYS)))
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    way: dict[str, Any] = WAYS[request.param]
    return way


def stored(tmp_path: Path, seed: int, directed: bool = True, weighted: bool = False, **options: Any) -> gm.Graph:
    sources, targets, drawn = random_edges(seed)
    weights = drawn if weighted else None
    return gm.from_arrays(sources, targets, weights, vertices=300, directed=directed, to=tmp_path / "graph", batch_size=100, **options)


@pytest.mark.parametrize("program", [PageRank, FoldedPageRank])
def test_pagerank_has_the_bytes_of_the_built_in(tmp_path: Path, way: dict[str, Any], program: type[gm.EdgeProgram]) -> None:
    if "executor" in way:
        pytest.skip("sums of floats are rounded in the order of buckets")
    graph = stored(tmp_path, 1)
    ours, built_in = tmp_path / "ours.csv", tmp_path / "built_in.csv"
    result = graph.run(program(), iterations=20, **way)
    result.write(ours)
    graph.pagerank(iterations=20, **way).write(built_in)
    assert ours.read_text().replace("rank", "pagerank", 1) == built_in.read_text()
    assert graph.run(program(damping=0.5), iterations=5, **way)[0] == graph.pagerank(iterations=5, damping=0.5, **way)[0]


def test_distances_follow_weights(tmp_path: Path, way: dict[str, Any]) -> None:
    graph = stored(tmp_path, 2, weighted=True)
    expected = {v: math.inf if value is None else value for v, value in graph.sssp(7)}
    assert dict(graph.run(Distances(source=7), **way)) == expected


def test_components_are_vertices(tmp_path: Path, way: dict[str, Any]) -> None:
    graph = stored(tmp_path, 3, directed=False, order="degree")
    assert dict(graph.run(Components(), **way)) == dict(graph.wcc())


def test_ids_are_texts() -> None:
    graph = gm.from_arrays(["c", "a", "b"], ["a", "b", "z"], [1.0, 2.0, 4.0])
    assert dict(graph.run(Distances(source="c"))) == {"a": 1.0, "b": 3.0, "c": 0.0, "z": 7.0}
    with pytest.raises(gm.UsageError, match="no such vertex"):
        graph.run(Distances(source="missing"))


class Fibonacci(gm.EdgeProgram):
    """A chain of numbers, which `before` ends."""

    columns = {"value": int, "steps": int}
    shared = {"last": 0, "limit": 100}
    sums = ["total", "touched"]
    message = int
    combine = "max"
    direction = "backward"

    def begin(v: Any, g: Any) -> None:
        v.value = v.ordinal
        v.active = v.ordinal % 2 == 0

    def before(g: Any) -> Any:
        g.last = g.last + g.superstep
        return g.superstep <= 3

    def signal(v: Any, g: Any) -> Any:
        if v.ordinal == 4:
            return None
        return v.value - 1000 * g.last

    def apply(v: Any, g: Any, received: Any) -> None:
        v.value = -received
        v.total = v.value
        v.touched = 1.0
        v.active = True
        v.steps += 1


def test_all_that_a_program_has() -> None:
    # Against the arcs 2 -> 1 -> 0 and 4 -> 3 the values of 2 and 4 come from their targets.
    graph = gm.from_arrays([1, 2, 3, 4], [0, 1, 4, 3])
    # Pass 1: 0, 2 and 4 are active, 4 is silent: 1 gets 0 - 1000. Pass 2: 1 sends 1000 - 3000 to 2. Pass 3: 2 has no arc to it.
    assert dict(graph.run(Fibonacci())) == {0: 0, 1: 1000, 2: 2000, 3: 3, 4: 4}


C_SOURCE = r"""
#include <stdint.h>
#include <string.h>
typedef struct { int64_t vertices, arcs, superstep, active; double sums[4]; double damping; } shared;
typedef struct { int64_t ordinal, out_degree, active; double sums[4]; double rank, space[3]; } vertex;
int32_t begin(const shared *g, uint64_t count, vertex *v) {
    for (uint64_t i = 0; i < count; i++, v++) {
        v->rank = 1.0 / g->vertices;
        v->sums[0] = v->out_degree ? 0.0 : v->rank;
    }
    return 0;
}
int32_t signal_(const shared *g, uint64_t count, vertex *v, double *messages, uint64_t *sent) {
    for (uint64_t i = 0; i < count; i++) messages[i] = v[i].rank / v[i].out_degree;
    *sent = ~(uint64_t)0;
    return 0;
}
int32_t apply(const shared *g, uint64_t count, vertex *v, const double *received) {
    double jump = 1 - g->damping + g->damping * g->sums[0];
    for (uint64_t i = 0; i < count; i++, v++) {
        v->rank = 1.0 / g->vertices * jump + g->damping * received[i];
        v->sums[0] = v->out_degree ? 0.0 : v->rank;
    }
    return 0;
}
int32_t fold(const shared *g, uint64_t count, const double *messages, const double *weights, const uint32_t *receivers, double *sums) {
    for (uint64_t i = 0; i < count; i++) sums[receivers[i]] += messages[i];
    return 0;
}
int32_t merge(const shared *g, double *sum, const double *later) { *sum += *later; return 0; }
int32_t broken(const shared *g, uint64_t count, vertex *v, const double *received) { return -1; }
"""


def test_functions_of_c(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "rank.c", tmp_path / "rank.so"
    source.write_text(C_SOURCE)
    subprocess.run([compiler, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", library, source], check=True)
    functions = ctypes.CDLL(str(library))

    class OfC(gm.EdgeProgram):
        columns = {"rank": float}
        shared = {"damping": 0.85}
        sums = ["lost"]
        combine = None
        identity = -0.0
        everywhere = True
        begin, signal, apply = functions.begin, functions.signal_, functions.apply
        fold, merge = functions.fold, functions.merge

    graph = stored(tmp_path, 5)
    assert dict(graph.run(OfC(), iterations=7)) == dict(graph.pagerank(iterations=7))

    class Broken(OfC):
        apply = functions.broken

    with pytest.raises(gm.GraphmillError, match="raised an exception"):
        graph.run(Broken(), iterations=7)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"columns": {}}, "one to 4 columns"),
        ({"columns": {"rank": str}}, "a float, an int or a Vertex"),
        ({"combine": None}, "by `combine` or by a function `fold`"),
        ({"combine": "product"}, '"sum", "min" or "max"'),
        ({"sums": list("abcde")}, "at most 4 sums"),
        ({"columns": {"ordinal": float}}, "is no name"),
        ({"begin": None}, "no function 'begin'"),
        ({"result": "score"}, "the name of a column"),
        ({"direction": "up"}, '"forward" or "backward"'),
    ],
)
def test_mistakes_are_named(changes: Mapping[str, Any], text: str) -> None:
    graph = gm.from_arrays([0], [1])
    program = type("Mistaken", (PageRank,), dict(changes))
    with pytest.raises(TypeError, match=text):
        graph.run(program(), iterations=1)


def test_values_are_named() -> None:
    with pytest.raises(TypeError, match="no shared number 'dumping'; it has damping"):
        PageRank(dumping=0.5)
    with pytest.raises(TypeError, match="the id of the vertex 'source'"):
        Distances()


def test_negative_integers_are_no_result() -> None:
    class Negative(Components):
        columns = {"component": int}

        def begin(v: Any, g: Any) -> None:
            v.component = -1

    with pytest.raises(gm.GraphmillError, match="negative integers"):
        gm.from_arrays([0], [1]).run(Negative())


def test_a_run_resumes_the_same_program_alone(tmp_path: Path) -> None:
    graph = stored(tmp_path, 6)
    folder = tmp_path / "checkpoints"
    with graph.run(PageRank(), iterations=9, checkpoint=folder, checkpoint_every=2) as kept:
        value = kept[3]
        job = graph.run(PageRank(damping=0.5), iterations=9, checkpoint=folder, background=True)
        with pytest.raises(gm.GraphmillError, match="another run|of another"):
            job.result()
    assert graph.run(PageRank(), iterations=9)[3] == value


class Counting(gm.EdgeProgram):
    columns = {"count": int}
    message = int
    combine = "sum"

    def begin(v: Any, g: Any) -> None:
        v.count = v.count + v.ordinal
        v.active = 1

    def signal(v: Any, g: Any) -> int:
        return 1

    def apply(v: Any, g: Any, received: Any) -> None:
        v.count += received


def with_functions(**functions: Any) -> Any:
    return type("Changed", (Counting,), functions)()


def test_begin_sees_columns_of_zero() -> None:
    graph = gm.from_arrays([0, 1], [1, 2])
    assert dict(graph.run(Counting(), iterations=1)) == {0: 0, 1: 2, 2: 3}


def raises(v: Any, g: Any, received: Any) -> None:
    if v.ordinal == 1:
        raise ValueError("no")


def refuses(v: Any, g: Any) -> int:
    if v.ordinal > 0:
        raise ValueError("no")
    return 1


def ends(g: Any) -> None:
    raise ValueError("no")


@pytest.mark.parametrize("functions", [{"apply": raises}, {"signal": refuses}, {"before": ends}])
def test_exception_in_a_function_ends_the_run(functions: dict[str, Any]) -> None:
    graph = gm.from_arrays([0, 1], [1, 2])
    with pytest.raises(gm.GraphmillError, match="raised an exception"):
        graph.run(with_functions(**functions), iterations=3)


def test_floats_are_no_integer_messages() -> None:
    graph = gm.from_arrays([0, 1], [1, 2])
    with pytest.raises(TypeError, match="signal returns a float"):
        graph.run(with_functions(signal=lambda v, g: 1.75), iterations=1)


def stores(v: Any, g: Any) -> int:
    v.count = 1
    return 1


def shares(v: Any, g: Any, received: Any) -> None:
    g.vertices = received


@pytest.mark.parametrize("functions", [{"signal": stores}, {"apply": shares}])
def test_stores_that_would_be_lost_are_refused(functions: dict[str, Any]) -> None:
    graph = gm.from_arrays([0, 1], [1, 2])
    with pytest.raises(TypeError, match="would be lost"):
        graph.run(with_functions(**functions), iterations=1)


@pytest.mark.parametrize(("value", "found"), [(-2, None), (2, 2), (100, "no vertex")])
def test_columns_of_vertices_are_checked(value: int, found: object) -> None:
    def begin(v: Any, g: Any) -> None:
        v.parent = value

    program = with_functions(begin=begin, columns={"parent": gm.Vertex}, apply=lambda v, g, received: None)
    graph = gm.from_arrays([0, 1], [1, 2])
    if found == "no vertex":
        with pytest.raises(gm.GraphmillError, match="ordinals of no vertex"):
            graph.run(program, iterations=1)
    else:
        assert dict(graph.run(program, iterations=1)) == dict.fromkeys(range(3), found)


def test_programs_are_told_apart_by_what_they_use() -> None:
    def made(step: float) -> Any:
        def apply(v: Any, g: Any, received: Any) -> None:
            v.count += int(step)

        return type("Made", (Counting,), {"apply": apply})

    codes = [programs._Functions(programs._Shape(made(step)())).code for step in (2.0, 3.0, 2.0)]
    assert codes[0] == codes[2] != codes[1]
