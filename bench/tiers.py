#!/usr/bin/env python3
"""The four experiments of Capelli et al., "iPregel on NVRAM", at the size of a small machine. bench/results/2026-11-22-tiers.md has figures.

  bench/tiers.py threads FOLDER    the graph in DRAM and on the slow tier, by threads
  bench/tiers.py growing FOLDER    three Kronecker graphs, the last two larger than the limit of memory
  bench/tiers.py split FOLDER      placements: dram, slow, rw-split, cache
  bench/tiers.py gaps FOLDER       neighbours side by side and far apart, two sizes

FOLDER keeps the graphs, which are made if they are not there. The slow tier is a model, which is charged for as the paper's memory,
unless --slow-tier says otherwise. Runs are made in turn; medians are printed, as Markdown. The script compares
answers: of the pull mode byte by byte, of the push mode to nine digits, because its sums depend on the order of arrival.
"""
import argparse
import hashlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys

from limits import limited

# Billions of edges a second in the paper's Table 3, pull and push.
TABLE_3 = {
    "K 25 500": (3.35, 2.10), "K 28 500": (2.31, 1.55), "K 33 16": (0.61, 0.54),
    "C-250": (10.12, 9.56), "S-250": (3.26, 2.13), "C-750": (8.61, 8.63), "S-750": (2.35, 1.35),
}
# The pull mode goes from each vertex to its neighbours, as the paper's does: reads are scattered, writes are not.
MODES = {
    "pull": ["--method", "pregel-pull", "--direction", "gather"],
    "push": ["--method", "pregel-push", "--combiner", "hybrid"],
}
# What the paper's node takes at full load (section "Additional metrics"), and its cores.
NODE_WATTS, NODE_CORES = 400, 48
MIB = 1 << 20


class Case:
    """One way to run, and what came of it in each round."""

    def __init__(self, asked, graph, mode, place, threads, twin=None):
        self.graph, self.mode, self.place, self.threads, self.twin = graph, mode, place, threads, twin
        in_file = asked.slow_tier.startswith("file:")
        self.modelled = asked.slow_tier == "model" and place in ("slow", "rw-split")
        # A file is a slow tier only where the page cache cannot hold it.
        self.limit = asked.limit if place == "disk" or in_file and place in ("slow", "rw-split") else None
        self.options = {
            "disk": ["--place", "edges=stream"],
            "dram": ["--place", "dram"],
            "cache": ["--place", "cache"],
        }.get(place, ["--slow-tier", asked.slow_tier, "--place", place])
        if self.modelled:
            self.options += ["--simulate-slow-tier", "paper"]
        if self.limit:
            # Buffers, stacks and the program itself are not in the budget.
            self.options += ["--memory", str(self.limit - 32 * MIB)]
        self.rounds, self.disk, self.failed = [], [], ""

    def gteps(self):
        return [metrics and metrics["gteps"] for metrics in self.rounds]

    def slower_than(self, other):
        """How many times: the median of the rounds that both ended."""
        pairs = [of for of in zip(self.gteps(), other.gteps()) if all(of)]
        return f"{statistics.median(theirs / own for own, theirs in pairs):.2f}" if pairs else "-"

    def moved(self, iterations):
        """Bytes read and written in an iteration, by kind of data."""
        of = lambda kind, what: sum(
            step["tiers"][kind][f"{what}_{how}"]
            for step in self.rounds[-1]["passes"] for how in ("sequential", "random")) / iterations
        return {kind: (of(kind, "read"), of(kind, "written")) for kind in ("vertices", "messages", "index", "edges")}


class Bench:
    def __init__(self, asked):
        self.asked, self.folder = asked, pathlib.Path(asked.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cases, self.answers = [], {}

    def graph(self, *rule):
        """A graph by rule, each edge as two arcs as in the paper, which counts both."""
        path = self.folder / "-".join(str(word).strip("-") for word in rule)
        if not path.exists():
            print("generate", *rule, file=sys.stderr)
            subprocess.run([self.asked.graphmill, "generate", *map(str, rule), "--undirected", "-q", "-o", path],
                           check=True, stdout=subprocess.DEVNULL)
        return path

    def add(self, *case, **facts):
        self.cases.append(Case(self.asked, *case, **facts))
        return self.cases[-1]

    def measure(self):
        for number in range(self.asked.rounds):
            for case in self.cases:
                case.rounds.append(self.run(case))
                print(f"round {number + 1}: {case.graph.name} {case.mode} {case.place} {case.threads}: "
                      f"{case.gteps()[-1]} GTEPS", file=sys.stderr)

    def run(self, case):
        """The metrics of one run whose answer was right; none where there was no room or no time for it."""
        result, metrics = self.folder / "result.parquet", self.folder / "metrics.json"
        command = [self.asked.graphmill, "run", "pagerank", case.graph, "--dangling", "drop", "-q", "-o", result,
                   "--iterations", str(self.asked.iterations), "--metrics", metrics, "--threads", str(case.threads),
                   *MODES[case.mode], *case.options]
        blocks = resource.getrusage(resource.RUSAGE_CHILDREN)
        with limited(case.limit) as before:
            try:
                ended = subprocess.run([*before, *command], timeout=self.asked.seconds, text=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            except subprocess.TimeoutExpired:
                case.failed = f"more than {self.asked.seconds} s"
                return None
        if ended.returncode:
            case.failed = {1: "refused", -9: "killed"}.get(ended.returncode, f"exit {ended.returncode}")
            print(ended.stderr.strip(), file=sys.stderr)
            return None
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        case.disk = [(now.ru_inblock - blocks.ru_inblock) * 512, (now.ru_oublock - blocks.ru_oublock) * 512]
        self.judge(case, result)
        return json.loads(metrics.read_text())

    def judge(self, case, result):
        """Ends everything unless the answer is that of the first pull."""
        first = self.folder / f"{case.graph.name}.parquet"
        if case.graph not in self.answers and case.mode == "pull":
            self.answers[case.graph] = hashlib.sha256(result.read_bytes()).hexdigest()
            result.replace(first)
        elif case.mode == "pull":
            found = hashlib.sha256(result.read_bytes()).hexdigest()
            if found != self.answers[case.graph]:
                sys.exit(f"{case.graph.name}, {case.place}, {case.threads} threads: another answer")
        else:
            judged = [self.asked.graphmill, "validate", "--rule", "epsilon", "--epsilon", "1e-9", "-q", result, first]
            subprocess.run(judged, check=True, stdout=subprocess.DEVNULL)

    def table(self, columns):
        """`columns` are a heading each, and what stands under it for a case."""
        measured = {"s an iteration": self.seconds, "of it charged": self.charged, "GTEPS: median (rounds)": self.rates,
                    "times its DRAM": lambda case: case.slower_than(case.twin or case)}
        if not any(case.modelled for case in self.cases):
            del measured["of it charged"]
        if any(case.limit for case in self.cases):
            measured["GB from + to disk, with loading"] = lambda case: " + ".join(f"{of / 1e9:.2f}" for of in case.disk)
        columns = {**columns, **measured}
        print(markdown(columns, [[cell(case) for cell in columns.values()] for case in self.cases]))

    def seconds(self, case):
        done = [metrics for metrics in case.rounds if metrics]
        if not done:
            return "-"
        return f"{done[0]['graph']['edges'] / 1e9 / statistics.median(run['gteps'] for run in done):.2f}"

    def charged(self, case):
        """Seconds of a worker in an iteration: bytes times their price, so the same in every round."""
        steps = [step for run in case.rounds[-1:] if run for step in run["passes"]]
        return f"{sum(step['simulated_tier_seconds'] for step in steps) / self.asked.iterations / case.threads:.2f}" if case.modelled else ""

    def rates(self, case):
        done = [rate for rate in case.gteps() if rate]
        if not done:
            return case.failed
        return f"{statistics.median(done):.3f} ({', '.join(f'{rate:.3f}' for rate in done)})"

    def bytes_moved(self, cases):
        """GB read and written in an iteration: they are the same wherever data lies."""
        rows = []
        for case in cases:
            if case.rounds[-1]:
                moved = case.moved(self.asked.iterations).values()
                rows.append([case.graph.name, case.mode] + [f"{read / 1e9:.3f} + {written / 1e9:.3f}" for read, written in moved])
        names = ["graph", "mode", "vertices", "messages", "index", "edges"]
        print("\nGB read + written in an iteration, by kind of data:\n")
        print(markdown(names, rows))


def markdown(heads, rows):
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return "\n".join([line(heads), line("---" for _ in heads), *map(line, rows)])


def how(case):
    return "modelled" if case.modelled else "measured"


def place(case):
    return case.place + (f", {case.limit // MIB} MiB" if case.limit else "")


def threads(bench, asked):
    """Experiment 1. The paper: NVRAM takes 2.5 times as long as DRAM (pull), 3 times (push), up to 16 threads."""
    graph = bench.graph("kronecker", asked.scale, 500)
    counts = sorted({min(2 ** power, os.cpu_count()) for power in range(os.cpu_count().bit_length() + 1)})
    for mode in MODES:
        for count in counts:
            dram = bench.add(graph, mode, "dram", count)
            bench.add(graph, mode, "slow", count, twin=dram)
    bench.measure()
    paper = lambda case: {"pull": "about 2.5", "push": "about 3"}[case.mode] if case.twin else "1"
    bench.table({"mode": lambda case: case.mode, "threads": lambda case: case.threads, "place": place, "how": how,
                 "paper, times its DRAM": paper})
    bench.bytes_moved([case for case in bench.cases if case.threads == 1 and case.twin is None])


def growing(bench, asked):
    """Experiment 2: sizes a 512th of the paper's, and so is the limit."""
    sizes = {"K 25 500": (asked.scale, 500), "K 28 500": (asked.scale + 3, 500), "K 33 16": (asked.scale + 8, 16)}
    graphs = {bench.graph("kronecker", *size): name for name, size in sizes.items()}
    for graph in graphs:
        for mode in MODES:
            dram = bench.add(graph, mode, "dram", os.cpu_count())
            bench.add(graph, mode, "slow", os.cpu_count(), twin=dram)
            if mode == "pull":
                bench.add(graph, mode, "disk", os.cpu_count(), twin=dram)
    bench.measure()
    beside_the_paper(bench, graphs)


def split(bench, asked):
    """Experiment 3. The paper shows it in a figure: DRAM, then the split, then memory mode close to it, then NVRAM."""
    graph = bench.graph("kronecker", asked.scale, 500)
    for mode in MODES:
        dram = bench.add(graph, mode, "dram", os.cpu_count())
        for other in ("rw-split", "cache", "slow"):
            bench.add(graph, mode, other, os.cpu_count(), twin=dram)
    bench.measure()
    bench.table({"mode": lambda case: case.mode, "place": place, "how": how})
    bench.bytes_moved([case for case in bench.cases if case.twin is None])


def gaps(bench, asked):
    """Experiment 4: a 2000th of the paper's edges, on a 200th of its vertices, so that they outgrow a core's cache."""
    graphs = {}
    for millions in (250, 750):
        vertices = millions * 5_000 >> 16 - min(asked.scale, 16)
        graphs[bench.graph("consecutive", vertices, 50)] = f"C-{millions}"
        # Neighbours span as much of the graph as in the paper: a fifth and a fifteenth.
        graphs[bench.graph("scattered", vertices, 50, "--gap", 5_000 >> 16 - min(asked.scale, 16))] = f"S-{millions}"
    for graph in graphs:
        for mode in MODES:
            dram = bench.add(graph, mode, "dram", os.cpu_count())
            bench.add(graph, mode, "slow", os.cpu_count(), twin=dram)
    bench.measure()
    beside_the_paper(bench, graphs)
    rows = []
    for case in bench.cases:
        name = graphs[case.graph]
        if name.startswith("S-"):
            near = name.replace("S", "C")
            alike = lambda other: (graphs[other.graph], other.mode, other.place) == (near, case.mode, case.place)
            paper = [TABLE_3[of][case.mode == "push"] for of in (near, name)]
            rows.append([name, case.mode, place(case), how(case), case.slower_than(next(filter(alike, bench.cases))),
                         f"{paper[0] / paper[1]:.2f}" if case.place == "slow" else ""])
    print("\nHow many times slower scattered neighbours are than consecutive ones:\n")
    print(markdown(["graph", "mode", "place", "how", "here", "paper, by Table 3"], rows))


def beside_the_paper(bench, names):
    paper = lambda case: TABLE_3[names[case.graph]][case.mode == "push"]
    on_slow = lambda text: lambda case: text(case) if case.place == "slow" and any(case.gteps()) else ""

    def energy(case):
        """Of a core of the paper's node for each of ours; and of that node."""
        watts = NODE_WATTS / NODE_CORES * case.threads
        return f"{watts / statistics.median(filter(None, case.gteps())):.0f} ({NODE_WATTS / paper(case):.0f})"

    bench.table({"the paper's": lambda case: names[case.graph], "graph": lambda case: case.graph.name,
                 "mode": lambda case: case.mode, "place": place, "how": how, "paper's GTEPS, memory mode": on_slow(paper),
                 "J a billion edges, modelled (paper's)": on_slow(energy)})
    bench.bytes_moved([case for case in bench.cases if case.twin is None])


def size(text):
    number, unit = (text[:-1], text[-1]) if text[-1] in "MG" else (text, "M")
    return int(number) * {"M": MIB, "G": 1024 * MIB}[unit]


def main():
    experiments = {of.__name__: of for of in (threads, growing, split, gaps)}
    # Iterations (the paper makes ten), and MiB that are left to a run with a file as its slow tier: the paper's 192 GB, made as much
    # smaller as the edges, where DRAM is the tier's cache; less than the graph where the tier is to do without.
    usual = {"threads": (10, 64), "growing": (1, 384), "split": (10, 64), "gaps": (2, 96)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("folder", help="where graphs are made, on the disk that is to be measured")
    parser.add_argument("--slow-tier", default="model", help="model, numa:NODES or file:FOLDER (as root: under a limit of memory)")
    parser.add_argument("--limit", type=size, help="memory with file: and from disk, such as 384M")
    parser.add_argument("--scale", type=int, default=16, help="logarithm of the vertices of the least Kronecker graph [16]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--seconds", type=int, default=300, help="that a run may take [300]")
    parser.add_argument("--graphmill", help="the command [built from here]")
    asked = parser.parse_args()
    iterations, limit = usual[asked.experiment]
    asked.iterations = asked.iterations or iterations
    asked.limit = asked.limit or limit * MIB
    if not asked.graphmill:
        os.chdir(pathlib.Path(__file__).parent.parent)
        subprocess.run(["cargo", "build", "--release", "--locked"], check=True)
        asked.graphmill = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"), "release", "graphmill").absolute()
    experiments[asked.experiment](Bench(asked), asked)


main()
