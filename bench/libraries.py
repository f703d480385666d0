#!/usr/bin/env python3
"""Strong components, forests and independent sets beside igraph and NetworKit, and from disk.

  bench/libraries.py FOLDER [--graphmill COMMAND] [--scale 20] [--rounds 3] [--roads FILE]

FOLDER keeps the graphs: a Kronecker graph, directed and undirected, with weights, and a grid of 1,000 by 1,000. --roads adds a road map,
a text file of `source destination weight`. Runs are made in turn, with two threads; figures are medians of seconds. A library keeps the
graph in memory. In the column `memory` Graphmill keeps it there too, and the figure is the time of a run without loading. In the column
`eighth` its budget is an eighth of the stored graph, or the least that the algorithm does with. What takes longer than --seconds is ended,
and has no figure. Needs igraph, networkit and numpy.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy

MIB = 1 << 20
THREADS = 2
# An algorithm, its options, what a library calls it, and whether the graph is directed.
ROWS = [
    ("scc", "", ["igraph", "networkit"], True),
    ("scc", "", ["igraph"], False),
    ("mst", "", ["igraph", "networkit"], False),
    ("mis", "", ["networkit"], False),
    ("conductance", "--set odd", [], False),
    ("spmv", "--vector ones", [], False),
    ("cdlp", "--iterations 10", [], False),
    ("cdlp", "--iterations 10", [], True),
    ("pagerank", "--iterations 10", [], False),
    ("pagerank", "--iterations 10", [], True),
]


def run(words, seconds=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr[-500:]}")
    return done.stdout


class Graph:
    """A graph as lines of text, and stored with and without directions."""

    def __init__(self, asked, name, lines):
        self.name, self.lines = name, lines
        self.graphmill, self.folder, self.seconds = asked.graphmill, asked.folder, asked.seconds
        self.arrays = self.folder / f"{name}.npz"
        if not self.arrays.exists():
            numbers = numpy.fromfile(lines, sep=" ").reshape(-1, 3)
            ids, ends = numpy.unique(numbers[:, :2].astype(numpy.int64), return_inverse=True)
            numpy.savez(self.arrays, count=len(ids), ends=ends.reshape(-1, 2).astype(numpy.uint32), weights=numbers[:, 2])

    def stored(self, directed):
        graph = self.folder / f"{self.name}-{'directed' if directed else 'undirected'}"
        if not graph.exists():
            how = ["--reverse"] if directed else ["--undirected"]
            run([self.graphmill, "import", self.lines, "--weights", "f32", *how, "-q", "-o", graph])
        return graph

    def ours(self, algorithm, options, directed, memory):
        """Returns the seconds of a run."""
        metrics = self.folder / "metrics.json"
        run([self.graphmill, "run", algorithm, self.stored(directed), *options.split(), "--threads", THREADS, "--memory", memory,
             "-q", "--metrics", metrics], self.seconds)
        return json.loads(metrics.read_text())["seconds"]["run"]

    def from_disk(self, algorithm, options, directed):
        """Returns the budget in MiB and the seconds of the run within it."""
        graph = self.stored(directed)
        least = -(-sum(file.stat().st_size for file in graph.rglob("*")) // (8 * MIB))
        while True:
            try:
                return least, self.ours(algorithm, options, directed, f"{least}M")
            except RuntimeError as error:
                if "budget" not in str(error) or least > 4096:
                    raise
                least += max(1, least // 8)

    def theirs(self, library, algorithm, directed):
        words = [sys.executable, __file__, "--library", library, algorithm, self.arrays, int(directed)]
        return float(run(words, self.seconds).split()[-1])

    def row(self, algorithm, options, libraries, directed, rounds):
        """Returns the medians of all figures; one that takes too long is `None`."""
        jobs = [lambda: [self.ours(algorithm, options, directed, "8G")]]
        jobs += [lambda name=name: [self.theirs(name, algorithm, directed)] for name in libraries]
        jobs.append(lambda: self.from_disk(algorithm, options, directed))
        figures = [[] for _ in jobs]
        for _ in range(rounds):
            for job, found in zip(jobs, figures):
                if found is not None and None not in found:
                    try:
                        found.append(job())
                    except subprocess.TimeoutExpired:
                        found.append(None)
        return [None if None in found else [statistics.median(of) for of in zip(*found)] for found in figures]


def of_igraph(algorithm, count, ends, weights, directed):
    import igraph

    graph = igraph.Graph(n=count, edges=ends, directed=directed)
    began = time.monotonic()
    if algorithm == "scc":
        graph.connected_components(mode="strong")
    else:
        graph.spanning_tree(weights=weights, return_tree=False)
    return time.monotonic() - began


def of_networkit(algorithm, count, ends, weights, directed):
    import networkit

    networkit.setNumberOfThreads(THREADS)
    rows, columns = (ends[:, side].astype(numpy.uint64) for side in (0, 1))
    graph = networkit.GraphFromCoo((weights.astype(float), (rows, columns)), n=count, directed=directed, weighted=True)
    graph.removeSelfLoops()
    job = {
        "scc": lambda: networkit.components.StronglyConnectedComponents(graph),
        "mis": lambda: networkit.independentset.Luby(),
        "mst": lambda: networkit.graph.KruskalMSF(graph),
    }[algorithm]
    began = time.monotonic()
    job = job()
    job.run(graph) if algorithm == "mis" else job.run()
    return time.monotonic() - began


def library(name, algorithm, arrays, directed):
    with numpy.load(arrays) as held:
        count, ends, weights = int(held["count"]), held["ends"], held["weights"]
    print({"igraph": of_igraph, "networkit": of_networkit}[name](algorithm, count, ends, weights, directed == "1"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--graphmill", default="graphmill", help="the command")
    parser.add_argument("--scale", type=int, default=20, help="of the Kronecker graph: 2^SCALE vertices, 16 edges each")
    parser.add_argument("--roads", type=pathlib.Path, help="a road map")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=120, help="of a run at most")
    parser.add_argument("--only", nargs="*", help="algorithms")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    rules = {f"kronecker{asked.scale}": ["kronecker", asked.scale, 16], "grid": ["grid", 1000, 1000]}
    graphs = []
    for name, rule in rules.items():
        lines = asked.folder / f"{name}.wel"
        if not lines.exists():
            run([asked.graphmill, "generate", *rule, "--weights", "f32", "-q", "-o", lines])
        graphs.append(Graph(asked, name, lines))
    if asked.roads:
        graphs.append(Graph(asked, asked.roads.stem, asked.roads))
    print("| graph | algorithm | memory, s | igraph, s | NetworKit, s | eighth, MiB | s | times |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for graph in graphs:
        for algorithm, options, libraries, directed in ROWS:
            if asked.only and algorithm not in asked.only:
                continue
            [ours], *theirs, disk = graph.row(algorithm, options, libraries, directed, asked.rounds)
            others = {name: f"{found[0]:.2f}" if found else f"> {asked.seconds}" for name, found in zip(libraries, theirs)}
            others = [others.get(name, "") for name in ("igraph", "networkit")]
            disk = f"{disk[0]:.0f} | {disk[1]:.2f} | {disk[1] / ours:.1f}" if disk else f"| > {asked.seconds} |"
            way = "directed" if directed else "undirected"
            print(f"| {graph.name}, {way} | {algorithm} | {ours:.3f} | {' | '.join(others)} | {disk} |", flush=True)


if __name__ == "__main__":
    library(*sys.argv[2:]) if sys.argv[1:2] == ["--library"] else main()
