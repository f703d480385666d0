#!/usr/bin/env python3
"""GridGraph, Chaos and Gemini beside Graphmill, as in Tables 4 and 5 of Yu et al., "DFOGraph". docs/cluster-measured.md has figures.

  bench/peers.py FOLDER [--gridgraph DIR] [--chaos DIR] [--gemini DIR]

Each DIR is the folder of that system, built by its own makefile; those that are not given are left out. They have to be mended before they do
what is measured here, as docs/cluster-measured.md says. FOLDER keeps the graphs. Needs Open MPI, and root for a limit of memory. Runs are made
in turn; a figure is the median of the rounds, in seconds. All have two cores: GridGraph and the run beside it as two threads within the limit, page
cache included; the others as so many processes with a thread each. Ranks are of single precision beside GridGraph and Chaos, as theirs are.

Chaos does not report loading. As in the paper, five iterations are six less one; its searches are whole commands, and so are the runs beside them.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

from limits import limited

MIB = 1 << 20
ITERATIONS = 5
# How many times as fast DFOGraph is, by the geometric means of Tables 4 and 5.
PAPER = {"GridGraph": "> 2.52", "Chaos": "> 12.94", "Gemini": "0.21"}
# Ranks of two cores: those that wait leave them to the others.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader"]


def run(words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Graphs:
    """One Kronecker graph, stored and as pairs, in one direction and in both."""

    def __init__(self, asked):
        self.asked, self.vertices = asked, 1 << asked.scale
        self.folder = pathlib.Path(asked.folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        rule = [asked.graphmill, "generate", "kronecker", asked.scale, asked.degree, "-q", "-o"]
        name = f"k-{asked.scale}-{asked.degree}"
        self.stored, self.pairs, self.both = (self.folder / name for name in (name, name + ".u32", name + "-both.u32"))
        for path in (self.stored, self.pairs):
            if not path.exists():
                run([*rule, path])
        if not self.both.exists():
            new = self.both.with_suffix(".new")
            with self.pairs.open("rb") as edges, new.open("wb") as both:
                while block := edges.read(8 * MIB):
                    pairs = memoryview(block).cast("I")
                    turned = memoryview(bytearray(block)).cast("I")
                    turned[0::2], turned[1::2] = pairs[1::2], pairs[0::2]
                    both.write(block)
                    both.write(turned)
            new.rename(self.both)
        ranks = self.folder / "ranks.csv"
        run([asked.graphmill, "run", "pagerank", self.stored, "--iterations", "1", "-q", "-o", ranks])
        rows = (line.split(",") for line in ranks.read_text().splitlines()[1:])
        self.source = max(rows, key=lambda row: float(row[1]))[0]

    def ours(self, algorithm, before, *options):
        """Seconds of a run with what it loads, without, and of its whole command."""
        metrics = self.folder / "metrics.json"
        more = {"pagerank": ["--iterations", ITERATIONS], "bfs": ["--source", self.source], "wcc": []}[algorithm]
        began = time.monotonic()
        run([*before, self.asked.graphmill, "run", algorithm, self.stored, *more, *options, "-q", "-o", self.folder / "result.parquet",
             "--metrics", metrics])
        whole = time.monotonic() - began
        seconds = json.loads(metrics.read_text())["seconds"]
        return seconds["run"] + seconds["load"], seconds["run"], whole

    def ours_as_ranks(self, algorithm, memory, *options):
        before = [*MPIRUN, "-n", self.asked.ranks]
        return self.ours(algorithm, before, "--threads", "1", "--memory", f"{memory}M", *options)


class GridGraph:
    def __init__(self, graphs, at):
        self.graphs, self.at, self.limit = graphs, at / "bin", graphs.asked.limit * MIB
        for pairs in (graphs.pairs, graphs.both):
            if not self.grid(pairs).exists():
                run([self.at / "preprocess", "-i", pairs, "-o", self.grid(pairs), "-v", graphs.vertices, "-p", "4", "-t", "0"])

    def grid(self, pairs):
        return pairs.with_suffix(".grid")

    def seconds(self, algorithm):
        memory = self.limit / 2**30
        grid, both = self.grid(self.graphs.pairs), self.grid(self.graphs.both)
        words = {"pagerank": ["pagerank", grid, ITERATIONS, memory], "bfs": ["bfs", grid, self.graphs.source, memory],
                 # It takes labels along arcs only.
                 "wcc": ["wcc", both, memory]}[algorithm]
        with limited(self.limit) as within:
            said = run([*within, self.at / words[0], *words[1:]])
        return float(re.findall(r"([0-9.]+) seconds", said)[-1])

    def ours(self, algorithm):
        precision = ["--precision", "f32"] if algorithm == "pagerank" else []
        with limited(self.limit) as within:
            # The process takes more than what it is told to make do with.
            return self.graphs.ours(algorithm, within, "--threads", "2", "--memory", f"{self.limit - 40 * MIB}", *precision)[0]


class Gemini:
    def __init__(self, graphs, at):
        self.graphs, self.at = graphs, at / "toolkits"

    def seconds(self, algorithm):
        graphs = self.graphs
        program, *more = {"pagerank": ["pagerank", ITERATIONS], "bfs": ["bfs", graphs.source], "wcc": ["cc"]}[algorithm]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GEMINI_THREADS": "1"}
        said = run([*MPIRUN, "-n", graphs.asked.ranks, self.at / program, graphs.pairs, graphs.vertices, *more], env=environment)
        return statistics.median(float(seconds) for seconds in re.findall(r"exec_time=([0-9.]+)", said))

    def ours(self, algorithm):
        # Theirs is without loading.
        return self.graphs.ours_as_ranks(algorithm, 2048)[1]


class Chaos:
    def __init__(self, graphs, at):
        self.graphs, self.driver, self.port = graphs, at / "bin" / "benchmark_driver", 5000
        self.memory = graphs.asked.memory

    def wall(self, pairs, *words):
        """Seconds from the start of all processes to the end of the last."""
        ranks, folder = self.graphs.asked.ranks, self.graphs.folder / "chaos"
        shutil.rmtree(folder, ignore_errors=True)
        machines = "".join(f"name{rank}=127.0.0.1\niface{rank}=lo\n" for rank in range(ranks))
        edges = pairs.stat().st_size // 8
        with pairs.open("rb") as file:
            for rank in range(ranks):
                at = folder / f"m{rank}"
                at.mkdir(parents=True)
                own = (edges * (rank + 1) // ranks - edges * rank // ranks) * 8
                with (at / "g").open("wb") as part:
                    while own:
                        own -= part.write(file.read(min(own, 8 * MIB)))
                (at / "g.ini").write_text(f"[graph]\ntype=2\nname=g\nvertices={self.graphs.vertices}\nedges={edges}\n")
                (at / "slipstore.ini").write_text(f"[machines]\ncount={ranks}\nme={rank}\n{machines}")
        os.sync()
        began = time.monotonic()
        started = [subprocess.Popen([self.driver, "-g", "g", *map(str, words), "-a", "-p", "1", "--physical_memory", str(self.memory * MIB),
                                     "--cpu_cache_size", "524288", "--baseport", str(self.port)],
                                    cwd=folder / f"m{rank}", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for rank in range(ranks)]
        codes = [process.wait() for process in started]
        if any(codes):
            sys.exit(f"chaos {' '.join(map(str, words))}: {codes}")
        seconds = time.monotonic() - began
        shutil.rmtree(folder)
        return seconds

    def seconds(self, algorithm):
        if algorithm == "pagerank":
            pagerank = lambda iterations: self.wall(self.graphs.pairs, "-b", "pagerank", "--pagerank::niters", iterations)
            return pagerank(1 + ITERATIONS) - pagerank(1)
        if algorithm == "bfs":
            return self.wall(self.graphs.pairs, "-b", "bfs", "--bfs::root", self.graphs.source)
        return self.wall(self.graphs.both, "-b", "bfs_forest")

    def ours(self, algorithm):
        precision = ["--precision", "f32"] if algorithm == "pagerank" else []
        run, _, whole = self.graphs.ours_as_ranks(algorithm, self.memory, "--place", "edges=stream", *precision)
        return run if algorithm == "pagerank" else whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    systems = {"GridGraph": GridGraph, "Chaos": Chaos, "Gemini": Gemini}
    for name in systems:
        parser.add_argument(f"--{name.lower()}", type=pathlib.Path, help="its folder")
    parser.add_argument("--graphmill", default="graphmill", help="the command")
    parser.add_argument("--scale", type=int, default=22, help="of the Kronecker graph: 2^SCALE vertices")
    parser.add_argument("--degree", type=int, default=16, help="edges from each vertex, in the mean")
    parser.add_argument("--ranks", type=int, default=4, help="beside Chaos and Gemini")
    parser.add_argument("--memory", type=int, default=256, help="of each rank beside Chaos, in MiB")
    parser.add_argument("--limit", type=int, default=256, help="of memory beside GridGraph, in MiB")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    graphs = Graphs(asked)
    print("| beside | algorithm | theirs, s | Graphmill, s | times as fast | DFOGraph, all four |\n| --- | --- | --- | --- | --- | --- |")
    for name, of in systems.items():
        at = getattr(asked, name.lower())
        if at is None:
            continue
        system, ratios = of(graphs, at.resolve()), []
        for algorithm in ("pagerank", "bfs", "wcc"):
            rounds = [(system.seconds(algorithm), system.ours(algorithm)) for _ in range(asked.rounds)]
            theirs, ours = (statistics.median(of) for of in zip(*rounds))
            ratios.append(theirs / ours)
            print(f"| {name} | {algorithm} | {theirs:.2f} | {ours:.2f} | {ratios[-1]:.2f} | |", flush=True)
        print(f"| {name} | geometric mean | | | {statistics.geometric_mean(ratios):.2f} | {PAPER[name]} |", flush=True)


if __name__ == "__main__":
    main()
