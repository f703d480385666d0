"""Graphs, runs, results and errors, through the public names alone."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import graphmill as gm


def components(rows: list[tuple[object, ...]]) -> dict[object, object]:
    return {row[0]: row[1] for row in rows}


def test_graph_says_what_it_holds(graph: gm.Graph, tmp_path: Path) -> None:
    assert (graph.vertices, graph.arcs, graph.directed) == (5, 5, True)
    assert gm.open(tmp_path / "graph").info == graph.info
    assert "5 vertices" in repr(graph)


def test_id_of_another_type_is_told(tmp_path: Path) -> None:
    lines = tmp_path / "edges.tsv"
    lines.write_text("1\t2\n3\t3000000000\n")
    assert list(gm.read_edges(lines).wcc().to_arrow().schema.names) == ["vertex", "component"]
    for name, problem in [("int32", "line 2.*column 2 is no int32"), ("uuid", "no UUID of 36")]:
        with pytest.raises(gm.InputError, match=problem):
            gm.read_edges(lines, ids=name)
    lines.write_text("-1\t2\n")
    with pytest.raises(gm.InputError, match="is no uint32"):
        gm.read_edges(lines, ids="uint32")


def test_rows_are_the_same_in_every_form(graph: gm.Graph, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    numpy = pytest.importorskip("numpy")
    result = graph.wcc()
    rows = list(result)
    assert rows == [("her", "her"), ("him", "her"), ("it", "it"), ("me", "her"), ("you", "her")]
    table = result.to_arrow()
    assert table.column_names == result.columns == ["vertex", "component"]
    assert list(zip(*(column.to_pylist() for column in table.columns))) == rows
    vertices, values = result.to_numpy()
    assert isinstance(vertices, numpy.ndarray) and list(zip(vertices, values)) == rows
    assert pyarrow.table(result).num_rows == 5
    assert result.write(tmp_path / "rows.csv") == (tmp_path / "rows.csv").stat().st_size
    with open(tmp_path / "rows.csv", newline="") as file:
        assert [tuple(row) for row in csv.reader(file)][1:] == rows


def test_polars_pandas_and_duckdb_take_a_result(graph: gm.Graph) -> None:
    result = graph.pagerank(iterations=10)
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(result)
    assert frame.shape == (5, 2) and result.to_polars().equals(frame)
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.to_pandas(), pandas.DataFrame)
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("SELECT count(*) FROM result").fetchall() == [(5,)]


def test_values_are_found_by_id(graph: gm.Graph) -> None:
    depths = graph.bfs("him")
    assert depths["you"] == 1 and depths["her"] == 3 and depths["it"] is None
    assert "it" in depths and "them" not in depths and 7 not in depths
    with pytest.raises(KeyError):
        depths["them"]


def test_integer_ids_are_integers(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\n-5,7,1.5\n7,18446744073709551,2\n")
    graph = gm.read_edges(path, source="source", target="target", weight="weight")
    distances = graph.sssp(-5)
    assert list(distances) == [(-5, 0.0), (7, 1.5), (18446744073709551, 3.5)]
    assert distances.top(1) == [(18446744073709551, 3.5)]
    assert distances[7] == 1.5


def test_highest_rows(graph: gm.Graph) -> None:
    top = graph.pagerank().top(2)
    assert [vertex for vertex, _ in top] == ["me", "it"] or [vertex for vertex, _ in top] == ["me", "her"]
    assert graph.wcc().top(1) == [("her", 4)]
    assert graph.wcc().summary()["components"] == 2


def test_arrays_are_edges(tmp_path: Path) -> None:
    graph = gm.from_arrays([0, 1, 2], [1, 2, 0], vertices=5)
    assert (graph.vertices, graph.arcs) == (5, 3) and "in memory" in repr(graph)
    assert list(graph.wcc()) == [(0, 0), (1, 0), (2, 0), (3, 3), (4, 4)]
    graph.wcc().write(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").exists()
    weighted = gm.from_arrays([-7, 5], [5, 6], [0.5, 2.0], directed=False, to=tmp_path / "graph")
    assert list(weighted.sssp(6)) == [(-7, 2.5), (5, 2.0), (6, 0.0)]
    numpy = pytest.importorskip("numpy")
    for kind in ("int32", "uint32", "int64"):
        graph = gm.from_arrays(numpy.array([0, 1], kind), numpy.array([1, 2], kind))
        assert graph.bfs(0)[2] == 2


@pytest.mark.parametrize(
    "edges, mistake",
    [
        (([0], [1, 2]), "1 sources and 2 targets"),
        (([0], [1], [1.0, 2.0]), "1 edges and 2 weights"),
        (([0], [1], [float("nan")]), "weight of edge 0"),
    ],
)
def test_arrays_that_make_no_sense_are_refused(edges: tuple[list[int], ...], mistake: str) -> None:
    with pytest.raises(gm.UsageError, match=mistake):
        gm.from_arrays(*edges)


def test_arrays_with_ids_beyond_the_vertices_are_refused() -> None:
    with pytest.raises(gm.UsageError, match="edge 1 goes from 1 to 9"):
        gm.from_arrays([0, 1], [1, 9], vertices=3)
    with pytest.raises(TypeError, match="integers of at most 64 bits"):
        gm.from_arrays([0.5], [1])
    with pytest.raises(gm.UsageError, match="1 sources and 2 targets"):
        gm.from_arrays([0], [1, 2])


def test_lists_of_texts_are_edges() -> None:
    graph = gm.from_arrays(["a", "b"], ["b", "c"], [0.5, 0.25])
    assert dict(graph.sssp("a")) == {"a": 0.0, "b": 0.5, "c": 0.75}


def test_empty_graph_has_vertices() -> None:
    graph = gm.from_arrays([], [], vertices=3)
    assert list(graph.wcc()) == [(0, 0), (1, 1), (2, 2)]


def test_forest_and_numbers(graph: gm.Graph, tmp_path: Path) -> None:
    with pytest.warns(gm.GraphmillWarning, match="no weights"):
        forest = graph.mst()
    assert forest.columns == ["source", "destination", "weight"]
    assert sorted(forest) == [("her", "me", 1.0), ("him", "you", 1.0), ("me", "you", 1.0)]
    assert len(forest.top(1)[0]) == 3
    with pytest.raises(TypeError, match="source, destination, weight"):
        forest["her"]
    members = tmp_path / "members.csv"
    members.write_text("vertex\nme\nher\n")
    numbers = graph.conductance(members)
    assert len(list(numbers)) == 1


def test_ranks_give_the_same_rows(graph: gm.Graph) -> None:
    assert list(graph.pagerank(ranks=3, threads=3)) == list(graph.pagerank())


def test_result_survives_its_graph_and_closes(edges: Path) -> None:
    result = gm.read_edges(edges).wcc()
    assert len(list(result)) == 5
    with result:
        pass
    with pytest.raises(gm.GraphmillError):
        list(result)


def test_temporary_graph_is_deleted(edges: Path) -> None:
    graph = gm.read_edges(edges)
    path = graph.path
    assert path.exists()
    del graph
    assert not path.exists()


def test_iterator_left_half_read_disturbs_nobody(graph: gm.Graph) -> None:
    result = graph.wcc()
    rows = iter(result)
    next(rows)
    assert len(list(result)) == 5
    assert len(list(rows)) == 4


def test_errors_have_classes_and_keywords(graph: gm.Graph, tmp_path: Path) -> None:
    with pytest.raises(gm.UsageError, match="them"):
        graph.bfs("them")
    with pytest.raises(gm.UsageError, match="memory"):
        graph.wcc(memory="lots")
    with pytest.raises(gm.MemoryBudgetError, match="memory=") as refused:
        graph.wcc(memory=1000)
    assert "--memory" not in str(refused.value)
    with pytest.raises(gm.GraphmillError):
        gm.open(tmp_path / "nothing")
    with pytest.raises(gm.DiskError):
        graph.wcc().write("/proc/rows.csv")
    with pytest.raises(ValueError):
        graph.wcc().write(tmp_path / "rows.odd")
    with pytest.raises(gm.UsageError, match="there is no option|unexpected argument"):
        graph.wcc(nonsense=1)  # type: ignore[call-overload]


def test_warnings_are_warnings(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("source,target\n")
    with pytest.warns(gm.GraphmillWarning, match="no edges"):
        gm.read_edges(tmp_path / "empty.csv")


def test_warning_that_is_an_error_ends_the_run(graph: gm.Graph) -> None:
    with pytest.raises(gm.GraphmillWarning, match="weights='f32' or f64"):
        graph.mst()


def test_background_job(graph: gm.Graph) -> None:
    job = graph.bfs("him", background=True)
    assert job.result(timeout=60)["you"] == 1
    assert job.done() and job.result() is job.result()


def large(folder: Path) -> gm.Graph:
    subprocess.run(
        [sys.executable, "-m", "graphmill", "generate", "kronecker", "16", "16", "-q", "-o", str(folder / "large")], check=True
    )
    return gm.open(folder / "large")


def test_job_is_cancelled(tmp_path: Path) -> None:
    job = large(tmp_path).pagerank(iterations=1_000_000, background=True)
    while job.progress is None:
        time.sleep(0.01)
    with pytest.raises(TimeoutError):
        job.result(timeout=0.01)
    job.cancel()
    with pytest.raises(gm.Cancelled):
        job.result()
    resumable = gm.open(tmp_path / "large").pagerank(iterations=1_000_000, checkpoint=tmp_path / "checkpoint", background=True)
    while resumable.progress is None:
        time.sleep(0.01)
    resumable.cancel()
    with pytest.raises(gm.Cancelled, match="^interrupted(; the same call resumes.*)?$"):
        resumable.result()


@pytest.mark.parametrize("ranks", [1, 3])
def test_result_outlives_a_file_that_cannot_be_written(graph: gm.Graph, tmp_path: Path, ranks: int) -> None:
    result = graph.pagerank(ranks=ranks, threads=ranks)
    wanted = list(result)
    for path in (tmp_path / "missing" / "out.csv", tmp_path / "out.docx"):
        with pytest.raises(gm.GraphmillError):
            result.write(path)
    assert list(result) == wanted and result.write(tmp_path / "out.csv") > 0
    result.close()
    with pytest.raises(gm.GraphmillError, match="closed"):
        list(result)


def test_errors_name_keywords(graph: gm.Graph, tmp_path: Path) -> None:
    lines = tmp_path / "lines.csv"
    lines.write_text("who,whom\nann,bob\n")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: graph.sssp("nobody"), "source='nobody': "),
        (lambda: graph.pagerank(iterations=-3), "iterations=-3: "),
        (lambda: gm.read_edges(lines, source="who", target="to"), "target='to': there is no such column"),
        (lambda: graph.pagerank(memory=1024), r"give memory='[0-9]+[KM]' or more"),
    ]
    for call, problem in calls:
        with pytest.raises(gm.GraphmillError, match=problem):
            call()


def test_highest_values_are_numbers() -> None:
    graph = gm.from_arrays([0, 0, 1], [1, 2, 2], [1e308, 1e308, 1.0])
    assert graph.spmv(vector={0: 1.0, 1: 10.0, 2: 10.0}).top(2) == [(0, float("inf")), (1, 10.0)]


def test_interrupt_ends_a_run_and_the_next_one_works(tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    graph = large(tmp_path)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        graph.pagerank(iterations=1_000_000)
    timer.join()
    assert graph.pagerank(iterations=1).top(1)


def test_interpreter_is_free_while_a_run_works(tmp_path: Path) -> None:
    job = large(tmp_path).pagerank(iterations=1_000_000, threads=1, background=True)
    count = 0
    while count < 100_000:
        count += 1
    assert not job.done()
    job.cancel()


def test_two_runs_in_two_threads(graph: gm.Graph) -> None:
    found: list[list[tuple[object, ...]]] = []
    threads = [threading.Thread(target=lambda: found.append(list(graph.wcc()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] == found[1] == list(graph.wcc())


def test_run_after_fork(graph: gm.Graph) -> None:
    kept = graph.wcc(threads=2)
    wanted = list(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of a fork beside threads
        child = os.fork()
    if child == 0:
        code = 0 if list(graph.wcc(threads=2)) == wanted else 1
        try:
            kept.summary()
            code = 2
        except gm.GraphmillError as error:
            code = code if "fork" in str(error) else 3
        kept.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(kept) == wanted


def test_run_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    graph = large(tmp_path)
    wanted = graph.pagerank(iterations=40)
    checkpoint = tmp_path / "checkpoint"
    job = graph.pagerank(iterations=40, checkpoint=checkpoint, checkpoint_every=1, background=True)
    while job.progress is None and not job.done():
        time.sleep(0.001)
    job.cancel()
    try:
        result = job.result()
    except gm.Cancelled:
        assert checkpoint.exists()
        result = graph.pagerank(iterations=40, checkpoint=checkpoint, checkpoint_every=1)
    assert list(result) == list(wanted)
    result.close()
    assert not checkpoint.exists()


def test_command_is_in_the_package() -> None:
    told = subprocess.run([sys.executable, "-m", "graphmill", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"graphmill {gm.__version__}"
    wrong = subprocess.run([sys.executable, "-m", "graphmill", "run", "nothing"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "pagerank" in wrong.stderr


def test_import_is_light() -> None:
    code = "import sys, graphmill; sys.exit(any(name in sys.modules for name in ('numpy', 'pandas', 'networkx', 'pyarrow')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_two_results_of_the_same_run_live_together(graph: gm.Graph) -> None:
    results = [graph.pagerank() for _ in range(2)]
    assert list(results[0]) == list(results[1])


def test_mappings_and_collections_serve_as_files(graph: gm.Graph, tmp_path: Path) -> None:
    shares = {"me": 3.0, "it": 1.0}
    with open(tmp_path / "shares.csv", "w") as file:
        file.writelines(["vertex,value\n", *(f"{vertex},{value}\n" for vertex, value in shares.items())])
    wanted = list(graph.pagerank(personalization=tmp_path / "shares.csv"))
    assert list(graph.pagerank(personalization=shares)) == wanted != list(graph.pagerank())
    assert sum(value for _, value in graph.pagerank(dangling_vector=shares, start=shares)) == pytest.approx(1)
    assert dict(gm.from_arrays([0, 1], [1, 2], [2.0, 3.0]).spmv(vector={1: 2})) == {0: 4.0, 1: 0.0, 2: 0.0}
    assert len(list(graph.conductance(set={"me", "her"}))) == 1
    with pytest.raises(gm.UsageError, match="values of 0 or more"):
        graph.pagerank(personalization={"me": -1.0})
    with pytest.raises(gm.GraphmillError, match="no vertex them"):
        graph.pagerank(personalization={"them": 1.0})
    with pytest.raises(gm.UsageError, match="sources"):
        graph.pagerank(personalization=shares, sources=["me"])


def test_raw_pairs_beside_negative_ids_keep_their_ids(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-1 2\n2 -5\n")
    pairs = b"".join(number.to_bytes(4, "little") for number in (1, 2, 2, 7))
    (tmp_path / "b.u32").write_bytes(pairs)
    graph = gm.read_edges([tmp_path / "a.txt", tmp_path / "b.u32"])
    assert [vertex for vertex, _ in graph.wcc()] == [-5, -1, 1, 2, 7]


def test_plan_says_what_a_run_takes(graph: gm.Graph) -> None:
    plan = graph.plan("wcc", ranks=2, memory="1G")
    assert plan["graph"]["vertices"] == 5 and plan["cluster"]["ranks"] == 2
    with pytest.raises(gm.UsageError, match="network_rate"):
        graph.plan(network_rate="fast")
    with pytest.raises(ValueError, match="in memory"):
        gm.from_arrays([0], [1]).plan()


def test_thousand_runs_leave_nothing() -> None:
    def held() -> tuple[int, int, int]:
        threads, files = (len(os.listdir(f"/proc/self/{kind}")) for kind in ("task", "fd"))
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return threads, files, pages * os.sysconf("SC_PAGE_SIZE")

    graph = gm.from_arrays(list(range(100)), [(3 * number) % 100 for number in range(100)])
    for count in (100, 1000):
        for number in range(count):
            result = graph.wcc(threads=1 + number % 2)
            assert result.top(1)[0][1] > 0
        del result
        if count == 100:
            threads, files, memory = held()
    assert held()[0] <= threads and held()[1] <= files
    assert held()[2] <= memory + (2 << 20)


def test_ids_of_arrays_are_converted_or_refused() -> None:
    graph = gm.from_arrays([0, 7], [1, 8], ids="string")
    assert [vertex for vertex, _ in graph.wcc()] == ["0", "1", "7", "8"]
    for ids, sources in (("int32", [0, 1 << 40]), ("uint32", [0, -5]), ("uuid", [0, 1])):
        with pytest.raises(gm.GraphmillError, match="no "):
            gm.from_arrays(sources, [1, 2], ids=ids)
    large = gm.from_arrays([1, (1 << 63) + 5], [2, 3])
    assert [vertex for vertex, _ in large.wcc()] == [1, 2, 3, (1 << 63) + 5]


def test_options_without_effect_are_refused(graph: gm.Graph) -> None:
    assert gm.from_arrays([0], [1], vertices_below=5).vertices == 5
    with pytest.raises(TypeError, match="arrays have no columns"):
        gm.from_arrays([0], [1], source_column=7)
    with pytest.raises(TypeError, match="Result.write"):
        graph.pagerank(output="ranks.parquet")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="list of ids"):
        graph.pagerank(sources="ann")


def test_a_stream_may_run_something(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    graph = large(tmp_path)

    def batches() -> Iterator[Any]:
        for _ in range(3):
            count = len(list(graph.wcc(threads=2)))
            yield pa.record_batch({"a": [0, count], "b": [1, 2]})

    assert gm.from_arrow(batches(), source="a", target="b", threads=2).arcs == 6
    components = graph.wcc(threads=2)
    again = gm.from_arrow(components, source="vertex", target="component", threads=2)
    assert again.arcs == len(list(components))


def test_many_threads_wait_for_a_job(graph: gm.Graph) -> None:
    for _ in range(50):
        job = graph.wcc(background=True)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: job.result(), range(4)))
        assert all(result is results[0] and result is not None for result in results)


def test_what_is_no_id_is_not_in_a_result(graph: gm.Graph) -> None:
    result = graph.wcc()
    assert 1 << 70 not in result and True not in result and 1.5 not in result


def test_numpy_refuses_ids_that_floats_round() -> None:
    pytest.importorskip("numpy")
    graph = gm.from_arrays([0, 5], [(1 << 60) + 1, 6])
    result = graph.bfs((1 << 60) + 1, parents=True)
    with pytest.raises(OverflowError):
        result.to_numpy()
