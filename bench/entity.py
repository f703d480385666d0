#!/usr/bin/env python3
"""Entity resolution: Parquet rows of pairs of text ids to the components of records, beside Splink on DuckDB.

  bench/entity.py make FOLDER [--rows 50000000]     writes FOLDER/pairs/*.parquet and FOLDER/records.parquet
  bench/entity.py run FOLDER [--rounds 3] [--splink PYTHON] [--limit-hours 2]

`make` draws clusters of records as linking finds them: most have 2 to 5 records, few up to 400. A record has a text id such as
`crm-0000000000000042-7f3a91bc`, in no order of clusters. A pair has `unique_id_l`, `unique_id_r` and `match_probability`.

`run` takes turns: the command `graphmill` on the folder of pairs; four lines of Python; and, with --splink, Splink's
`cluster_pairwise_predictions_at_threshold` on DuckDB with memory_limit='1GiB' and two threads, by the interpreter PYTHON that has
splink 5.0. All read the same Parquet files and write Parquet. Each has two threads, and a control group of 1 GiB, page cache included, but for
Splink, which has none. Components are compared once, by DuckDB. Needs Python with duckdb, numpy, pyarrow and graphmill, and root for the
control group.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from limits import limited

GIB = 1 << 30
FILE_ROWS = 2_500_000

FOUR_LINES = """
import graphmill as gm, sys
pairs, records, graph, output = sys.argv[1:]
g = gm.read_edges(pairs + "/*.parquet", source="unique_id_l", target="unique_id_r", directed=False, to=graph, memory="900M", threads=2)
g.wcc(memory="900M", threads=2).write(output)
"""

SPLINK = """
import duckdb, sys
from splink import DuckDBAPI
from splink.clustering import cluster_pairwise_predictions_at_threshold
pairs, records, spill, output = sys.argv[1:]
con = duckdb.connect(spill + ".duckdb")
con.execute("SET memory_limit='1GiB'; SET threads=2; SET preserve_insertion_order=false")
con.execute(f"SET temp_directory='{spill}'")
con.execute(f"CREATE VIEW edges AS SELECT * FROM '{pairs}/*.parquet'; CREATE VIEW nodes AS SELECT * FROM '{records}'")
api = DuckDBAPI(connection=con)
nodes, edges = (api.register(name) for name in ("nodes", "edges")) if hasattr(api, "register") else ("nodes", "edges")
found = cluster_pairwise_predictions_at_threshold(nodes, edges, api, "unique_id")
con.execute(f"COPY (SELECT unique_id AS vertex, cluster_id AS component FROM {found.physical_name}) TO '{output}' (FORMAT parquet)")
"""


def make(folder, rows):
    """Writes the pairs and the records."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)
    # Sizes of clusters: 2 and more by a power law.
    sizes = np.minimum(1 + draw.zipf(2.4, rows // 2), 400)
    # A cluster of n records has about n pairs: a random tree and some more.
    ends = np.cumsum(sizes)
    sizes = sizes[: int(np.searchsorted(ends, rows * 0.9))]
    records = int(sizes.sum())
    names = draw.permutation(records)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(records) - starts[of]
    inner = np.flatnonzero(place > 0)
    left = starts[of[inner]] + (draw.random(len(inner)) * place[inner]).astype(np.int64)
    more = draw.integers(0, records, rows - len(inner))
    other = starts[of[more]] + draw.integers(0, 1 << 40, len(more)) % sizes[of[more]]
    sources, targets = np.concatenate([left, more]), np.concatenate([inner, other])
    order = draw.permutation(rows)
    sources, targets = names[sources[order]], names[targets[order]]
    pairs = folder / "pairs"
    pairs.mkdir(parents=True)

    def ids(numbers):
        """Texts of numbers, each of 29 bytes."""
        texts = np.empty((len(numbers), 29), np.uint8)
        texts[:, :4] = np.frombuffer(b"crm-", np.uint8)
        texts[:, 20] = ord("-")
        left, mixed = numbers.astype(np.int64), (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
        for digit in range(19, 3, -1):
            left, texts[:, digit] = left // 10, left % 10 + ord("0")
        hexadecimal = np.frombuffer(b"0123456789abcdef", np.uint8)
        for digit in range(28, 20, -1):
            mixed, texts[:, digit] = mixed >> np.uint64(4), hexadecimal[mixed & np.uint64(15)]
        offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 29
        return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(texts))

    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        part = slice(first, min(rows, first + FILE_ROWS))
        table = {"unique_id_l": ids(sources[part]), "unique_id_r": ids(targets[part]), "match_probability": draw.uniform(0.9, 1, part.stop - first)}
        pq.write_table(pa.table(table), pairs / f"{number:03}.parquet")
    writer = None
    for first in range(0, records, FILE_ROWS):
        table = pa.table({"unique_id": ids(np.arange(first, min(records, first + FILE_ROWS)))})
        writer = writer or pq.ParquetWriter(folder / "records.parquet", table.schema)
        writer.write_table(table)
    writer.close()
    print(f"{rows:,} pairs of {records:,} records in {len(sizes):,} clusters")


def timed(words, limit, hours):
    """Seconds of a command, and its peak of memory; None where it fails or takes too long."""
    began = time.monotonic()
    with limited(limit) as before:
        try:
            done = subprocess.run([*before, "/usr/bin/env", "time", "-f", "%M", *map(str, words)], capture_output=True, text=True, timeout=hours * 3600)
        except subprocess.TimeoutExpired:
            return None, f"not done after {hours} h"
    if done.returncode:
        return None, done.stderr[-300:]
    return time.monotonic() - began, int(done.stderr.split()[-1]) >> 10


def clear(folder, *names):
    """Deletes what an earlier round left."""
    for name in names:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def run(folder, rounds, splink, hours):
    """Takes turns."""
    pairs, records = folder / "pairs", folder / "records.parquet"
    options = ["--undirected", "--source-column", "unique_id_l", "--target-column", "unique_id_r", "--threads", "2", "--memory", "900M", "-q"]
    metrics = folder / "metrics.json"
    ways = {
        "command": [shutil.which("graphmill"), "run", "wcc", pairs, *options, "--tmp", folder / "tmp", "--metrics", metrics, "-o", folder / "command.parquet"],
        "python": [sys.executable, "-c", FOUR_LINES, pairs, records, folder / "graph", folder / "python.parquet"],
    }
    if splink:
        ways["splink"] = [splink, "-c", SPLINK, pairs, records, folder / "spill", folder / "splink.parquet"]
    taken = {way: [] for way in ways}
    for number in range(rounds):
        for way, words in ways.items():
            if way == "splink" and number > 0 and (None in taken[way] or taken[way][0] > 1800):
                continue
            clear(folder, "graph", "spill", "spill.duckdb", "tmp", ".graphmill", "pairs.graphmill", f"{way}.parquet")
            for cache in pairs.parent.glob("*graphmill-cache*"):
                shutil.rmtree(cache)
            (folder / "tmp").mkdir()
            seconds, memory = timed(words, None if way == "splink" else GIB, hours)
            taken[way].append(seconds)
            more = json.loads(metrics.read_text())["seconds"] if way == "command" and seconds else ""
            print(f"{way}: {seconds and round(seconds, 1)} s, {memory} MiB {more}", flush=True)
    medians = {way: statistics.median(found) for way, found in taken.items() if None not in found}
    print("medians:", {way: round(found, 1) for way, found in medians.items()})
    compare(folder, [way for way in medians if (folder / f"{way}.parquet").exists()])


def compare(folder, ways):
    """Checks that all ways found the same components, whatever represents them."""
    import duckdb

    con = duckdb.connect()
    con.execute("SET memory_limit='12GiB'")
    for way in ways[1:]:
        question = f"""SELECT count(*), count(DISTINCT a.component), count(DISTINCT b.component), count(DISTINCT (a.component, b.component))
            FROM '{folder}/{ways[0]}.parquet' a JOIN '{folder}/{way}.parquet' b USING (vertex)"""
        rows, one, other, both = con.execute(question).fetchone()
        print(f"{ways[0]} and {way}: {rows:,} records, {one:,} and {other:,} components, {both:,} of both")
        if not one == other == both:
            sys.exit("the components differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--splink")
    parser.add_argument("--limit-hours", type=float, default=2)
    asked = parser.parse_args()
    if asked.what == "make":
        make(asked.folder.resolve(), asked.rows)
    else:
        run(asked.folder.resolve(), asked.rounds, asked.splink, asked.limit_hours)


if __name__ == "__main__":
    main()
