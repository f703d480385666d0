#!/usr/bin/env python3
"""Seconds and bytes of runs by memory budget, from the least budget to one that holds everything.

  bench/curve.py FOLDER
  bench/curve.py FOLDER --graphs grid path --algorithms bfs --threads 2 --rounds 3

FOLDER keeps the graphs, which are made if they are not there. Each budget is a quarter more than the one before it. Rounds run in
turn over all budgets; medians are printed, as Markdown. The last line of each table names the worst step: the largest ratio
of seconds between neighbours, by time and by processor time. Runs of less than a tenth of a second count as a tenth.
Answers of all budgets are compared byte by byte.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

GRAPHS = {
    "grid": ["grid", "1500", "1500", "--undirected"],
    "path": ["consecutive", "200000", "1", "--undirected"],
    "kronecker": ["kronecker", "20", "--undirected"],
}
ALGORITHMS = {
    "bfs": ["--source", "0"],
    "wcc": [],
    "sssp": ["--source", "0"],
    "pagerank": ["--iterations", "10"],
}
MIB = 1 << 20
SECONDS_MIN = 0.1


class Measured:
    """What the rounds of one budget took."""

    def __init__(self, budget):
        self.budget = budget
        self.wall, self.cpu, self.metrics, self.answer = [], [], {}, None

    def run(self, asked, graph, algorithm):
        out = asked.folder / "curve.csv"
        command = [asked.program, "run", algorithm, graph, *ALGORITHMS[algorithm], "--threads", str(asked.threads),
                   "--memory", str(self.budget), "-o", out, "--metrics", asked.folder / "curve.json"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.wall.append(time.monotonic() - began)
        self.cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        self.metrics = json.loads((asked.folder / "curve.json").read_text())
        self.answer = hashlib.sha256(out.read_bytes()).hexdigest()
        return None

    def bytes(self, which):
        more = self.metrics.get("truncated_passes", {})
        return sum(part["bytes_" + which] for part in [*self.metrics["passes"], *([more] if more else [])])

    def is_resident(self):
        """True if a larger budget changes nothing."""
        return self.metrics["vertex_state_resident"] and self.metrics["messages_resident"] and self.bytes("written") == 0 \
            and self.budget > 2 * self.metrics["peak_memory"]


def least_budget(asked, graph, algorithm):
    said = Measured(1 * MIB).run(asked, graph, algorithm)
    found = re.search(r"needs at least (\d+) bytes", said or "")
    if not found:
        sys.exit(f"{algorithm} on {graph}: no least budget: {said}")
    return int(found[1])


def worst(rows, of):
    """The largest ratio of neighbours, and where."""
    seconds = [max(statistics.median(of(row)), SECONDS_MIN) for row in rows]
    steps = [(a / b, i) for i, (a, b) in enumerate(zip(seconds, seconds[1:]))]
    ratio, at = max(steps, default=(1.0, 0))
    return f"{ratio:.1f} at {rows[at].budget / MIB:.1f} MiB"


def curve(asked, graph, algorithm):
    budget, rows = least_budget(asked, graph, algorithm), []
    while not rows or not (rows[-1].is_resident() or len(rows) >= asked.most):
        rows.append(Measured(int(budget)))
        failed = rows[-1].run(asked, graph, algorithm)
        if failed:
            sys.exit(f"{algorithm} on {graph} in {budget} bytes: {failed}")
        budget *= 1.25
    for _ in range(1, asked.rounds):
        for row in rows:
            row.run(asked, graph, algorithm)
    answers = {row.answer for row in rows}
    print(f"\n{algorithm} on {graph.name}, {asked.threads} threads; {'same answers' if len(answers) == 1 else 'ANSWERS DIFFER'}\n")
    print("| budget, MiB | seconds | processor s | read, MiB | written, MiB | rows | messages | cells, MiB |")
    print("| ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |")
    place = {True: "memory", False: "disk"}
    for row in rows:
        wall, cpu = statistics.median(row.wall), statistics.median(row.cpu)
        read, written = row.bytes("read") / MIB, row.bytes("written") / MIB
        rows_at, messages_at = (place[row.metrics[what]] for what in ("vertex_state_resident", "messages_resident"))
        cells = row.metrics["cached_cell_bytes"] / MIB
        print(f"| {row.budget / MIB:.1f} | {wall:.2f} | {cpu:.2f} | {read:.1f} | {written:.1f} | {rows_at} | {messages_at} | {cells:.1f} |")
    print(f"\nworst step: {worst(rows, lambda row: row.wall)} by time, {worst(rows, lambda row: row.cpu)} by processor time", flush=True)
    return len(answers) == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default="target/release/graphmill")
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=20, help="budgets of a curve, at most")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    is_same = True
    for name in asked.graphs:
        graph = asked.folder / name
        if not (graph / "graph.json").exists():
            subprocess.run([asked.program, "generate", *GRAPHS[name], "-o", graph], check=True, capture_output=True)
        for algorithm in asked.algorithms:
            is_same &= curve(asked, graph, algorithm)
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
