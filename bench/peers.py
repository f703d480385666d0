#!/usr/bin/env python3
"""GridGraph, Chaos and Gemini beside Graphmill, as in Tables 4 and 5 of Yu et al., "DFOGraph". bench/results/2026-11-24-cluster.md has figures.

  bench/peers.py FOLDER [--gridgraph DIR] [--chaos DIR] [--gemini DIR]

Each DIR is the folder of that system, built by its own makefile; those that are not given are left out. They have to be mended before they do
what is measured here, as bench/results/2026-11-24-cluster.md says. FOLDER keeps the graphs. Needs Open MPI, and root for a limit of memory. Runs are made
in turn; a figure is the median of the rounds, in seconds. All have two cores: GridGraph and the run beside it as two threads within the limit, page
cache included; the others as so many processes with a thread each. Ranks are of single precision beside GridGraph and Chaos, and distances
of sssp always, as theirs are; weights are integers from 1 to 255. GridGraph comes without sssp.

Chaos reports no time without loading. As in the paper, five iterations are six less one; its searches are whole commands, and so are the runs beside them.

Preparation makes of raw pairs what a system runs on, and counts in no mean. Of GridGraph it is its own command within the limit, of Chaos what
passes in a run until all edges are at their partitions, of Gemini a run less what it computes (both do it in every run), and of Graphmill an
import by as many processes and threads: it sorts the edges, which the paper leaves out, and finds out which ids there are, which the others
are told.
"""
import argparse
import array
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time
from functools import partial

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
    """One Kronecker graph, stored and as pairs, in one direction and in both, and with weights."""

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
        self.weighted, self.triples = self.folder / (name + "-weighted"), self.folder / (name + ".triples")
        if asked.chaos or asked.gemini:
            self.weigh([*rule[:-1], "--weights", "f32", "-o"])
        ranks = self.folder / "ranks.csv"
        run([asked.graphmill, "run", "pagerank", self.stored, "--iterations", "1", "-q", "-o", ranks])
        rows = (line.split(",") for line in ranks.read_text().splitlines()[1:])
        self.source = max(rows, key=lambda row: float(row[1]))[0]

    def weigh(self, rule):
        """The same edges with weights: stored, and each as two u32 and an f32."""
        if not self.weighted.exists():
            run([*rule, self.weighted])
        if not self.triples.exists():
            lines, new = self.triples.with_suffix(".wel"), self.triples.with_suffix(".new")
            run([*rule, lines])
            with lines.open("rb") as text, new.open("wb") as triples:
                while block := text.readlines(8 * MIB):
                    words = array.array("I", map(int, b"".join(block).split()))
                    words[2::3] = array.array("I", array.array("f", words[2::3]).tobytes())
                    words.tofile(triples)
            lines.unlink()
            new.rename(self.triples)

    def ours(self, algorithm, before, *options):
        """Seconds of a run with what it loads, without, and of its whole command."""
        metrics = self.folder / "metrics.json"
        more = {"pagerank": ["--iterations", ITERATIONS], "bfs": ["--source", self.source], "wcc": [],
                "sssp": ["--source", self.source, "--precision", "f32"]}[algorithm]
        stored = self.weighted if algorithm == "sssp" else self.stored
        began = time.monotonic()
        run([*before, self.asked.graphmill, "run", algorithm, stored, *more, *options, "-q", "-o", self.folder / "result.parquet",
             "--metrics", metrics])
        whole = time.monotonic() - began
        seconds = json.loads(metrics.read_text())["seconds"]
        return seconds["run"] + seconds["load"], seconds["run"], whole

    def ours_as_ranks(self, algorithm, memory, *options):
        return self.ours(algorithm, *self.as_ranks(memory), *options)

    def as_ranks(self, memory):
        return [*MPIRUN, "-n", self.asked.ranks], "--threads", "1", "--memory", f"{memory}M"

    def prepared(self, prepare, made):
        """Seconds of a whole command that makes a folder of the pairs."""
        shutil.rmtree(made, ignore_errors=True)
        os.sync()
        began = time.monotonic()
        run(prepare)
        seconds = time.monotonic() - began
        shutil.rmtree(made)
        return seconds

    def imported(self, before, *options):
        made = self.folder / "imported"
        return self.prepared([*before, self.asked.graphmill, "import", self.pairs, *options, "-q", "-o", made], made)


class GridGraph:
    algorithms = "pagerank", "bfs", "wcc"

    def __init__(self, graphs, at):
        self.graphs, self.at, self.limit = graphs, at / "bin", graphs.asked.limit * MIB
        for pairs in (graphs.pairs, graphs.both):
            if not self.grid(pairs).exists():
                run(self.preprocess(pairs, self.grid(pairs)))

    def grid(self, pairs):
        return pairs.with_suffix(".grid")

    def preprocess(self, pairs, grid):
        return [self.at / "preprocess", "-i", pairs, "-o", grid, "-v", self.graphs.vertices, "-p", "4", "-t", "0"]

    def preparation(self):
        made = self.graphs.folder / "prepared.grid"
        with limited(self.limit) as within:
            return self.graphs.prepared([*within, *self.preprocess(self.graphs.pairs, made)], made)

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
            return self.graphs.ours(algorithm, within, *self.options(), *precision)[0]

    def our_preparation(self):
        with limited(self.limit) as within:
            return self.graphs.imported(within, *self.options())

    def options(self):
        # The process takes more than what it is told to make do with.
        return "--threads", "2", "--memory", f"{self.limit - 40 * MIB}"


class Gemini:
    algorithms = "pagerank", "bfs", "wcc", "sssp"
    memory = 2048

    def __init__(self, graphs, at):
        self.graphs, self.at = graphs, at / "toolkits"

    def computed(self, algorithm):
        """Seconds of each of the computations of a run."""
        graphs = self.graphs
        program, *more = {"pagerank": ["pagerank", ITERATIONS], "bfs": ["bfs", graphs.source], "wcc": ["cc"],
                          "sssp": ["sssp", graphs.source]}[algorithm]
        edges = graphs.triples if algorithm == "sssp" else graphs.pairs
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GEMINI_THREADS": "1"}
        said = run([*MPIRUN, "-n", graphs.asked.ranks, self.at / program, edges, graphs.vertices, *more], env=environment)
        return [float(seconds) for seconds in re.findall(r"exec_time=([0-9.]+)", said)]

    def seconds(self, algorithm):
        return statistics.median(self.computed(algorithm))

    def preparation(self):
        os.sync()
        began = time.monotonic()
        computed = self.computed("bfs")
        return time.monotonic() - began - sum(computed)

    def ours(self, algorithm):
        # Theirs is without loading.
        return self.graphs.ours_as_ranks(algorithm, self.memory)[1]

    def our_preparation(self):
        return self.graphs.imported(*self.graphs.as_ranks(self.memory))


class Chaos:
    algorithms = "pagerank", "bfs", "wcc", "sssp"

    def __init__(self, graphs, at):
        self.graphs, self.driver, self.port = graphs, at / "bin" / "benchmark_driver", 5000
        self.memory = graphs.asked.memory

    def times(self, edges, *words):
        """Seconds from the start of all processes until the last has its edges, and to the end of the last."""
        ranks, folder = self.graphs.asked.ranks, self.graphs.folder / "chaos"
        shutil.rmtree(folder, ignore_errors=True)
        machines = "".join(f"name{rank}=127.0.0.1\niface{rank}=lo\n" for rank in range(ranks))
        # Theirs are named by what they are: 1 with weights, 2 without.
        kind, width = (1, 12) if edges == self.graphs.triples else (2, 8)
        count = edges.stat().st_size // width
        with edges.open("rb") as file:
            for rank in range(ranks):
                at = folder / f"m{rank}"
                at.mkdir(parents=True)
                own = (count * (rank + 1) // ranks - count * rank // ranks) * width
                with (at / "g").open("wb") as part:
                    while own:
                        own -= part.write(file.read(min(own, 8 * MIB)))
                (at / "g.ini").write_text(f"[graph]\ntype={kind}\nname=g\nvertices={self.graphs.vertices}\nedges={count}\n")
                (at / "slipstore.ini").write_text(f"[machines]\ncount={ranks}\nme={rank}\n{machines}")
        os.sync()
        began = time.monotonic()
        started = [subprocess.Popen([self.driver, "-g", "g", *map(str, words), "-a", "-p", "1", "--physical_memory", str(self.memory * MIB),
                                     "--cpu_cache_size", "524288", "--baseport", str(self.port)],
                                    cwd=folder / f"m{rank}", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for rank in range(ranks)]
        # What a process says, some kilobytes, fits its pipe.
        for process in started:
            any(b"Completed init" in line for line in process.stderr)
        prepared = time.monotonic() - began
        codes = [process.wait() for process in started]
        if any(codes):
            sys.exit(f"chaos {' '.join(map(str, words))}: {codes}")
        whole = time.monotonic() - began
        shutil.rmtree(folder)
        return prepared, whole

    def preparation(self):
        return self.times(self.graphs.pairs, *self.bfs())[0]

    def bfs(self):
        return "-b", "bfs", "--bfs::root", self.graphs.source

    def seconds(self, algorithm):
        if algorithm == "pagerank":
            pagerank = lambda iterations: self.times(self.graphs.pairs, "-b", "pagerank", "--pagerank::niters", iterations)[1]
            return pagerank(1 + ITERATIONS) - pagerank(1)
        edges, *words = {"bfs": [self.graphs.pairs, *self.bfs()], "wcc": [self.graphs.both, "-b", "bfs_forest"],
                         "sssp": [self.graphs.triples, "-b", "sssp", "--sssp::source", self.graphs.source]}[algorithm]
        return self.times(edges, *words)[1]

    def ours(self, algorithm):
        precision = ["--precision", "f32"] if algorithm == "pagerank" else []
        run, _, whole = self.graphs.ours_as_ranks(algorithm, self.memory, "--place", "edges=stream", *precision)
        return run if algorithm == "pagerank" else whole

    def our_preparation(self):
        return self.graphs.imported(*self.graphs.as_ranks(self.memory))


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
        system = of(graphs, at.resolve())

        def row(what, theirs, ours):
            rounds = [(theirs(), ours()) for _ in range(asked.rounds)]
            theirs, ours = (statistics.median(of) for of in zip(*rounds))
            print(f"| {name} | {what} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f} | |", flush=True)
            return theirs / ours

        row("preparation", system.preparation, system.our_preparation)
        ratios = [row(algorithm, partial(system.seconds, algorithm), partial(system.ours, algorithm)) for algorithm in system.algorithms]
        print(f"| {name} | geometric mean | | | {statistics.geometric_mean(ratios):.2f} | {PAPER[name]} |", flush=True)


if __name__ == "__main__":
    main()
