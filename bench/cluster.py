#!/usr/bin/env python3
"""The experiments of Yu et al., "DFOGraph" (section 5), at the size of a small machine. docs/cluster-measured.md has figures.

  bench/cluster.py bounds FOLDER     bytes on disk and network of a pass against Table 2
  bench/cluster.py filter FOLDER     what ranks send with filtering and without
  bench/cluster.py choices FOLDER    what the engine chooses against each fixed choice: dispatch, seeks in cells, filtering
  bench/cluster.py batches FOLDER    batch sizes (Fig. 6), and one batch a rank (Table 6)
  bench/cluster.py ranks FOLDER      1 to 16 ranks (Table 7): work and bytes of each
  bench/cluster.py timeline FOLDER   disk, network and cores over time (Fig. 5)

FOLDER keeps the graphs, which are made if they are not there. All ranks run on this machine (--ranks), so bytes and elements are what
is compared; seconds are printed where they say something. Results are compared byte by byte wherever two ways answer the same question.
"""
import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys

ALGORITHMS = {
    "pagerank": ["--iterations", "5"],
    "bfs": [],
    "wcc": ["--method", "labels"],
    "sssp": [],
}
MIB = 1 << 20


class Bench:
    def __init__(self, asked):
        self.asked, self.folder = asked, pathlib.Path(asked.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.answers, self.sources = {}, {}

    def graph(self, name, *rule):
        """A graph, by the command that makes it."""
        path = self.folder / name
        if not path.exists():
            print("make", name, file=sys.stderr)
            words = [self.asked.graphmill, *map(str, rule), "-q", "-o", path]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return path

    def kronecker(self, batch=None):
        """A directed Kronecker graph, whose numbers say nothing."""
        return self.generated("k", "kronecker", self.asked.scale, self.asked.degree, batch)

    def consecutive(self):
        """A graph whose neighbours are near each other, as those of a web site are."""
        return self.generated("c", "consecutive", 1 << self.asked.scale, self.asked.degree)

    def generated(self, letter, kind, size, degree, batch=None):
        batch = batch or (1 << self.asked.scale) // 32
        name = f"{letter}-{self.asked.scale}-{degree}-{batch}"
        return self.graph(name, "generate", kind, size, degree, "--batch-size", batch)

    def source(self, graph):
        """The vertex of the highest rank, from which searches begin."""
        if graph not in self.sources:
            out = self.folder / "ranks.csv"
            subprocess.run([self.asked.graphmill, "run", "pagerank", graph, "--iterations", "1", "-q", "-o", out], check=True)
            rows = (line.split(",") for line in out.read_text().splitlines()[1:])
            self.sources[graph] = max(rows, key=lambda row: float(row[1]))[0]
        return self.sources[graph]

    def run(self, algorithm, graph, ranks, memory, *options):
        """The metrics of a run; its result has to be that of all others that ask the same."""
        out, metrics = self.folder / "result.csv", self.folder / "metrics.json"
        source = ["--source", self.source(graph)] if algorithm in ("bfs", "sssp") else []
        words = [self.asked.graphmill, "run", algorithm, graph, *ALGORITHMS[algorithm], *source, "--ranks", ranks,
                 "--memory", f"{memory * ranks}M", "--threads", max(2, ranks), "-q", "-o", out, "--metrics", metrics, *options]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
        answer = hashlib.sha256(out.read_bytes()).hexdigest()
        if self.answers.setdefault((algorithm, graph), answer) != answer:
            sys.exit(f"{' '.join(map(str, words))}: another answer")
        return json.loads(metrics.read_text())


def over_edges(metrics):
    return [step for step in metrics["supersteps"] if step["mode"] not in ("vertices", "send")]


def total(metrics, *fields):
    return sum(step[field] for step in metrics["supersteps"] for field in fields)


def table(head, rows):
    rows = [[str(word) for word in row] for row in rows]
    print(f"| {' | '.join(head)} |")
    print(f"| {' | '.join('---' for _ in head)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def searched(name, algorithms):
    """Of these, what ends: a search takes a pass for every few of the neighbours that stand in a row."""
    return algorithms if name == "Kronecker" else ["pagerank"]


def mib(number):
    return f"{number / MIB:.1f}"


def bounds(bench):
    """Of one dense pass by all ranks together: our bytes, and the paper's bounds in messages times our bytes a message."""
    asked = bench.asked
    graph, ranks = bench.kronecker(), asked.ranks
    rows = []
    for dispatch in ("auto", "push", "none"):
        metrics = bench.run("pagerank", graph, ranks, asked.memory, "--dispatch", dispatch, "--place", "edges=stream")
        facts = metrics["graph"]
        vertices, edges, message = facts["vertices"], facts["edges"], 8
        steps = over_edges(metrics)[1:]
        mean = lambda field: statistics.mean(step[field] for step in steps)
        # Generate writes a message a vertex; pass reads what it sends P - 1 times; dispatch and process write and read what they get.
        sent = min(edges, (ranks - 1) * vertices) * message
        disk = (vertices + (ranks - 1) * vertices + 4 * edges + ranks * vertices) * message
        rows.append([dispatch, f"{mean('messages'):,.0f}", f"{mean('messages_sent'):,.0f}", f"{min(edges, (ranks - 1) * vertices):,}",
                     mib(mean("bytes_sent")), mib(sent), mib(mean("bytes_read") + mean("bytes_written")), mib(disk)])
    print(f"PageRank, Kronecker scale {asked.scale}, {ranks} ranks, {asked.memory} MiB each: a pass\n")
    table(["dispatch", "messages", "sent", "Table 2: sent at most", "MiB sent", "at most", "MiB of disk", "at most, without edges"], rows)


def filtering(bench):
    asked = bench.asked
    rows = []
    for name, graph in (("Kronecker", bench.kronecker()), ("consecutive", bench.consecutive())):
        for algorithm in searched(name, ("pagerank", "bfs")):
            sent = {}
            for ratio in ("0", "2", "inf"):
                metrics = bench.run(algorithm, graph, asked.ranks, asked.memory, "--filter-ratio", ratio, "--seek", "never")
                sent[ratio] = total(metrics, "messages_sent"), total(metrics, "bytes_sent")
            rows.append([name, algorithm, *(f"{sent[ratio][0]:,} / {mib(sent[ratio][1])}" for ratio in ("0", "2", "inf"))])
    print(f"Messages, and MiB, that {asked.ranks} ranks send\n")
    table(["graph", "algorithm", "never filtered", "by the ratio of the paper (2)", "always"], rows)


def choices(bench):
    """Bytes and elements of each fixed choice, and of what the engine chooses."""
    asked = bench.asked
    cost = lambda metrics: (total(metrics, "bytes_read", "bytes_written"), total(metrics, "scanned", "edges"))
    for name, graph in (("Kronecker", bench.kronecker()), ("consecutive", bench.consecutive())):
        for algorithm in searched(name, ALGORITHMS):
            for option, ways in (("--dispatch", ("auto", "push", "pull", "none")), ("--seek", ("auto", "always", "never")),
                                 ("--filter-ratio", ("2", "0", "inf"))):
                found, chosen = {}, ""
                for way in ways:
                    metrics = bench.run(algorithm, graph, asked.ranks, asked.memory, option, way, "--place", "edges=stream")
                    found[way] = (*cost(metrics), total(metrics, "bytes_sent"))
                    if way == "auto" and option == "--dispatch":
                        chosen = f"{total(metrics, 'messages_pushed'):,} pushed, {total(metrics, 'messages_pulled'):,} pulled"
                auto = found.pop(ways[0])
                ratio = lambda at: f"{auto[at] / max(1, min(of[at] for of in found.values())):.2f}"
                rows = [[f"**{ways[0]}**", *map("{:,}".format, auto)]] + [[way, *map("{:,}".format, of)] for way, of in found.items()]
                print(f"{name}, {algorithm}, {option}: chosen / best fixed: bytes of disk {ratio(0)}, elements {ratio(1)}, sent {ratio(2)}"
                      f"{'; ' + chosen if chosen else ''}\n")
                table([option, "bytes of disk", "elements", "bytes sent"], rows)


def batches(bench):
    asked = bench.asked
    vertices = 1 << asked.scale
    rows = []
    for size in [vertices >> shift for shift in range(0, 11, 2)] + [vertices // 4]:
        graph = bench.kronecker(size)
        row = [f"{size:,}"]
        for algorithm in ("pagerank", "bfs"):
            metrics = bench.run(algorithm, graph, asked.ranks, asked.memory)
            row += [f"{metrics['seconds']['run']:.2f}", mib(total(metrics, "bytes_read", "bytes_written"))]
        rows.append(row)
    table(["vertices of a batch", "pagerank, s", "MiB of disk", "bfs, s", "MiB of disk"], rows)


def scaling(bench):
    asked = bench.asked
    graph = bench.kronecker()
    for algorithm in ALGORITHMS:
        rows = []
        for ranks in (1, 2, 4, 8, 16):
            metrics = bench.run(algorithm, graph, ranks, asked.memory, "--place", "edges=stream")
            each = metrics.get("each_rank") or [{"edges": metrics["graph"]["edges"], "bytes_to": [0]}]
            rows.append([ranks, f"{max(rank['edges'] for rank in each):,}", mib(total(metrics, "bytes_read", "bytes_written") / ranks),
                         mib(max(sum(rank["bytes_to"]) for rank in each)), f"{metrics['seconds']['run']:.2f}"])
        print(f"{algorithm}, {asked.memory} MiB a rank\n")
        table(["ranks", "edges of the rank that has most", "MiB of disk a rank", "MiB sent by the rank that sends most", "s, all on one machine"], rows)


def timeline(bench):
    asked = bench.asked
    metrics = bench.run("pagerank", bench.kronecker(), asked.ranks, asked.memory, "--place", "edges=stream")
    line = metrics["timelines"][0]
    steps = len(line["read"])
    width = max(1, steps // 24)
    rows = []
    for first in range(0, steps, width):
        part = slice(first, first + width)
        seconds = line["step"] * len(line["read"][part])
        rate = lambda field: mib(sum(line[field][part]) / seconds)
        rows.append([f"{first * line['step']:.2f}", rate("read"), rate("written"), rate("sent"), rate("received"),
                     f"{statistics.mean(line['cores'][part]):.2f}"])
    print(f"The first of {asked.ranks} ranks, PageRank, MiB/s\n")
    table(["s", "read", "written", "sent", "received", "cores"], rows)


def main():
    tables = {"bounds": bounds, "filter": filtering, "choices": choices, "batches": batches, "ranks": scaling, "timeline": timeline}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=tables)
    parser.add_argument("folder")
    parser.add_argument("--graphmill", default="graphmill", help="the command")
    parser.add_argument("--scale", type=int, default=21, help="of the graphs: 2^SCALE vertices")
    parser.add_argument("--degree", type=int, default=8, help="edges from each vertex, in the mean")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--memory", type=int, default=28, help="of each rank, in MiB")
    asked = parser.parse_args()
    tables[asked.table](Bench(asked))


if __name__ == "__main__":
    main()
