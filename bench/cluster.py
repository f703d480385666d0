#!/usr/bin/env python3
"""The experiments of Yu et al., "DFOGraph" (section 5), at the size of a small machine. bench/results/2026-11-24-cluster.md has figures.

  bench/cluster.py bounds FOLDER     bytes on disk and network of a pass against Table 2
  bench/cluster.py filter FOLDER     what ranks send with filtering and without
  bench/cluster.py indices FOLDER    indices of cells with bitmaps of sources or without, as it is chosen for each cell, against either alone
  bench/cluster.py choices FOLDER    what the engine chooses against each fixed choice: dispatch, seeks in cells, filtering
  bench/cluster.py control FOLDER    against a program without batches and dispatch, with enough memory and too little (Table 6)
  bench/cluster.py batches FOLDER    batch sizes (Fig. 6)
  bench/cluster.py ranks FOLDER      1 to 16 ranks (Table 7): work and bytes of each
  bench/cluster.py timeline FOLDER   disk, network and cores over time (Fig. 5)

FOLDER keeps the graphs, which are made if they are not there. All ranks run on this machine (--ranks), so bytes and elements are what
is compared; seconds are printed where they say something. Results are compared byte by byte wherever two ways answer the same question.
"""
import argparse
import hashlib
import json
import mmap
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

from limits import limited

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

    def few_edges(self):
        """A graph whose messages weigh as much as its edges."""
        return self.generated("u", "uniform", 1 << self.asked.scale, 2 << self.asked.scale)

    def many_edges(self):
        """A graph whose vertices all ranks need."""
        vertices = (1 << self.asked.scale) // 16
        return self.generated("m", "uniform", vertices, 32 * vertices, vertices // 32)

    def generated(self, letter, kind, size, degree, batch=None, *options):
        batch = batch or (1 << self.asked.scale) // 32
        name = "-".join(map(str, [letter, self.asked.scale, degree, batch, *options]))
        return self.graph(name, "generate", kind, size, degree, "--batch-size", batch, *options)

    def source(self, graph):
        """The vertex of the highest rank, from which searches begin."""
        if graph not in self.sources:
            out = self.folder / "ranks.csv"
            subprocess.run([self.asked.graphmill, "run", "pagerank", graph, "--iterations", "1", "-q", "-o", out], check=True)
            rows = (line.split(",") for line in out.read_text().splitlines()[1:])
            self.sources[graph] = max(rows, key=lambda row: float(row[1]))[0]
        return self.sources[graph]

    def run(self, algorithm, graph, ranks, memory, *options, threads=1):
        """The metrics of a run; its result has to be that of all others that ask the same."""
        out, metrics = self.folder / "result.csv", self.folder / "metrics.json"
        source = ["--source", self.source(graph)] if algorithm in ("bfs", "sssp") else []
        words = [self.asked.graphmill, "run", algorithm, graph, *ALGORITHMS[algorithm], *source, "--ranks", ranks,
                 "--memory", f"{memory * ranks}M", "--threads", threads * ranks, "-q", "-o", out, "--metrics", metrics, *options]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
        answer = hashlib.sha256(out.read_bytes()).hexdigest()
        if self.answers.setdefault((algorithm, graph), answer) != answer:
            sys.exit(f"{' '.join(map(str, words))}: another answer")
        return json.loads(metrics.read_text())


def over_edges(metrics):
    return [step for step in metrics["passes"] if step["mode"] not in ("vertices", "send")]


def total(metrics, *fields):
    return sum(step[field] for step in metrics["passes"] for field in fields)


def table(head, rows):
    rows = [[str(word) for word in row] for row in rows]
    print(f"| {' | '.join(head)} |")
    print(f"| {' | '.join('---' for _ in head)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def searched(name, algorithms):
    """Of these, what ends: a search takes a pass for every few of the neighbours that stand in a row. Or what tells something."""
    return ["pagerank"] if name in ("consecutive", "many edges") else algorithms


def asked_for(option, way):
    """What is chosen is what is not asked for."""
    return [] if way == "auto" else [option, way]


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
            for ratio in ("0", "2", "inf", "auto"):
                metrics = bench.run(algorithm, graph, asked.ranks, asked.memory, *asked_for("--filter-ratio", ratio), "--sparse", "never")
                sent[ratio] = total(metrics, "messages_sent"), total(metrics, "bytes_sent")
            rows.append([name, algorithm, *(f"{messages:,} / {mib(moved)}" for messages, moved in sent.values())])
    print(f"Messages, and MiB, that {asked.ranks} ranks send\n")
    table(["graph", "algorithm", "never filtered", "by the ratio of the paper (2)", "always", "as it is chosen"], rows)


def density(step, vertices):
    """What the frontier of a pass is like."""
    share = step["messages"] / vertices
    return "dense" if share > 1 / 8 else "middle" if share > 1 / 1000 else "sparse"


def choices(bench):
    """Bytes and elements of each fixed choice, and of what the engine chooses, by density of the frontier."""
    asked = bench.asked
    options = {"--dispatch": ("auto", "push", "pull", "none"), "--sparse": ("auto", "always", "never"), "--filter-ratio": ("auto", "0", "inf")}
    # What each choice is about: bytes from and to disk, elements that are looked at, bytes sent.
    fields = {"disk": ("bytes_read", "bytes_written"), "elements": ("elements_scanned", "edges"), "sent": ("bytes_sent",)}
    for option, ways in options.items():
        rows = []
        graphs = {"Kronecker": bench.kronecker(), "consecutive": bench.consecutive(), "few edges": bench.few_edges(), "many edges": bench.many_edges()}
        for name, graph in graphs.items():
            for algorithm in searched(name, ALGORITHMS):
                found, chosen = {}, {}
                for way in ways:
                    metrics = bench.run(algorithm, graph, asked.ranks, asked.memory, *asked_for(option, way), "--place", "edges=stream")
                    for step in over_edges(metrics):
                        like = density(step, metrics["graph"]["vertices"])
                        for what, names in fields.items():
                            for at in ((like, what, way), ("all", what, way)):
                                found[at] = found.get(at, 0) + sum(step[name] for name in names)
                        if way == ways[0]:
                            for count in ("messages_pushed", "messages_pulled", "cells", "cells_indexed", "messages_sent"):
                                for at in (like, "all"):
                                    chosen[at, count] = chosen.get((at, count), 0) + step[count]
                for like in ("dense", "middle", "sparse", "all"):
                    if (like, "disk", ways[0]) not in found:
                        continue
                    row = [name, algorithm, like]
                    for what in fields:
                        auto, *fixed = (found[like, what, way] for way in ways)
                        row.append(f"{auto:,} ({auto / max(1, min(fixed)):.2f} of {ways[1 + fixed.index(min(fixed))]})")
                    take = lambda count: f"{chosen[like, count]:,}"
                    row.append({"--dispatch": f"{take('messages_pushed')} / {take('messages_pulled')}",
                                "--sparse": f"{take('cells_indexed')} of {take('cells')}",
                                "--filter-ratio": take("messages_sent")}[option])
                    rows.append(row)
        last = {"--dispatch": "pushed / pulled", "--sparse": "cells sought", "--filter-ratio": "messages sent"}[option]
        print(f"{option} {ways[0]} (beside the best of {', '.join(ways[1:])}), {asked.ranks} ranks\n")
        table(["graph", "algorithm", "frontier", "bytes of disk", "elements", "bytes sent", last], rows)


def indices(bench):
    """What searches cost that go to the places of their vertices, by where cells have bitmaps: bytes of disk where memory is small, seconds
    where all is in it, elements of both."""
    asked = bench.asked
    # Vertices of span for each edge up to which a cell has a bitmap: none has one, as it is chosen, all have.
    ratios = {"none": 0, "chosen": 32, "all": (1 << 32) - 1}
    rows = []
    for name, kind, size, degree in (("Kronecker", "kronecker", asked.scale, asked.degree), ("few edges", "uniform", 1 << asked.scale, 2 << asked.scale)):
        graphs = {way: bench.generated(name[0], kind, size, degree, None, "--csr-ratio", ratio) for way, ratio in ratios.items()}
        info = lambda graph: json.loads(subprocess.run([asked.graphmill, "info", graph, "--json"], capture_output=True, check=True).stdout)
        rows.append([name, "indices", *(f"{mib(info(graph)['index_bytes'])} MiB" for graph in graphs.values()), "", "", ""])
        found = {}
        for way, graph in graphs.items():
            bench.sources[graph] = bench.source(graphs["chosen"])
            metrics = bench.run("bfs", graph, asked.ranks, asked.memory, "--sparse", "always", "--place", "edges=stream")
            for step in over_edges(metrics):
                for like in (density(step, metrics["graph"]["vertices"]), "all"):
                    for at, fields in (("disk", ("bytes_read", "bytes_written")), ("elements", ("elements_scanned", "edges"))):
                        found[like, at, way] = found.get((like, at, way), 0) + sum(step[field] for field in fields)
        for like in ("dense", "middle", "sparse", "all"):
            if (like, "disk", "all") in found:
                rows.append([name, f"on disk, {like}", *(f"{mib(found[like, 'disk', way])} MiB" for way in ratios),
                             *(f"{found[like, 'elements', way]:,}" for way in ratios)])
        seconds, elements = {way: [] for way in ratios}, {}
        for _ in range(asked.rounds):
            for way, graph in graphs.items():
                metrics = bench.run("bfs", graph, asked.ranks, 1024, "--sparse", "always")
                seconds[way].append(sum(step["seconds"] for step in over_edges(metrics)))
                elements[way] = total(metrics, "elements_scanned", "edges")
        rows.append([name, "in memory", *(f"{statistics.median(seconds[way]):.2f} s" for way in ratios), *(f"{elements[way]:,}" for way in ratios)])
    print(f"{asked.ranks} ranks, {asked.memory} MiB each, or enough; elements in the last columns\n")
    table(["graph", "searches", *ratios, *ratios], rows)


def control(bench):
    """One iteration of PageRank by one rank, and by bench/control.c: its rows, mapped, fit, or are a third more than what they may take, or twice as much."""
    asked, here = bench.asked, pathlib.Path(__file__).parent
    vertices = 1 << asked.scale
    data = vertices * 20
    # What the process takes besides what it is told to make do with, and the least that a run makes do with.
    besides, least = 40 * MIB, 64 * MIB
    if data // 2 - besides < least:
        sys.exit(f"cannot run on half of {data / MIB:.0f} MiB of rows: a run would have less than {least / MIB:.0f} MiB; take more vertices (--scale 24)")
    program, chunk = bench.folder / "control", bench.folder / f"control-{asked.scale}-{asked.degree}"
    subprocess.run(["cc", "-O3", "-Wall", "-o", program, here / "control.c", "-lpthread"], check=True)
    graph = bench.kronecker()
    if not chunk.exists():
        edges, new = bench.folder / "edges.u32", chunk.with_suffix(".new")
        subprocess.run([asked.graphmill, "generate", "kronecker", str(asked.scale), str(asked.degree), "-q", "-o", edges], check=True)
        new.mkdir(exist_ok=True)
        subprocess.run([program, "make", edges, str(vertices), new], check=True)
        new.rename(chunk)
        edges.unlink()
    out, own, metrics = (bench.folder / name for name in ("control.csv", "result.csv", "metrics.json"))
    rows = []
    for name, limit in (("half of what rows take", data // 2), ("3/4 of what rows take", data * 3 // 4), ("enough", data * 4)):
        theirs, ours, bytes_of = [], [], {}
        for _ in range(asked.rounds):
            os.sync()
            with limited(limit) as within:
                words = [*within, program, "run", chunk, "1", "2", asked.patience, out]
                done = subprocess.run([*map(str, words)], check=True, capture_output=True, text=True)
                found = json.loads(done.stdout)
                theirs.append(found["seconds"] if found["iterations"] else float("inf"))
                bytes_of["control"] = found["bytes_read"]
            os.sync()
            with limited(limit) as within:
                memory = f"{limit - besides}"
                words = [*within, asked.graphmill, "run", "pagerank", graph, "--iterations", "1", "--memory", memory, "--threads", "2",
                         "--place", "edges=stream", "-q", "-o", own, "--metrics", metrics]
                subprocess.run([*map(str, words)], check=True)
            found = json.loads(metrics.read_text())
            ours.append(found["seconds"]["run"])
            bytes_of["ours"] = total(found, "bytes_read")
            if theirs[-1] < float("inf"):
                subprocess.run([asked.graphmill, "validate", own, out, "--rule", "epsilon", "--epsilon", "1e-9"], check=True,
                               stdout=subprocess.DEVNULL)
        theirs, ours = statistics.median(theirs), statistics.median(ours)
        slower = f"> {asked.patience}" if theirs == float("inf") else f"{theirs:.2f}"
        ratio = f"> {asked.patience / ours:.1f}" if theirs == float("inf") else f"{theirs / ours:.2f}"
        rows.append([f"{name}: {limit / MIB:.0f} MiB", slower, f"{ours:.2f}", ratio, mib(bytes_of["control"]), mib(bytes_of["ours"])])
    print(f"PageRank, one iteration, Kronecker scale {asked.scale}, {asked.degree} edges a vertex, one rank, two threads; rows of the control: {data / MIB:.0f} MiB\n")
    table(["memory", "no batches, s", "batches, s", "ratio", "no batches, MiB read", "batches, MiB read"], rows)


def batches(bench):
    """Edges from disk and all else in memory, as in the paper. A graph that is there already was not timed."""
    asked = bench.asked
    vertices, memory = 1 << asked.scale, max(256, asked.memory)
    rows = []
    for each in (1, 2, 4, 8, 16, 64, 256):
        size = vertices // (asked.ranks * each)
        began = time.monotonic()
        graph = bench.kronecker(size)
        row = [f"{each}", f"{size:,}", f"{time.monotonic() - began:.2f}"]
        for algorithm in ("pagerank", "bfs"):
            rounds = [bench.run(algorithm, graph, asked.ranks, memory, "--place", "edges=stream") for _ in range(asked.rounds)]
            row += [f"{statistics.median(metrics['seconds']['run'] for metrics in rounds):.2f}",
                    mib(total(rounds[0], "bytes_read", "bytes_written")), f"{total(rounds[0], 'elements_scanned'):,}"]
        rows.append(row)
    print(f"Kronecker scale {asked.scale}, {asked.ranks} ranks of one thread, {memory} MiB each\n")
    table(["batches of a rank", "vertices of a batch", "made, s", "pagerank, s", "MiB of disk", "scanned", "bfs, s", "MiB of disk", "scanned"], rows)


def disk_rate(folder):
    """Bytes a second that are read past the page cache, of the largest file of a folder, by pieces of 4 MiB: the best of three."""
    largest = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    room, best = mmap.mmap(-1, 4 * MIB), 0.0
    for _ in range(3):
        file = os.open(largest, os.O_RDONLY | os.O_DIRECT)
        began, moved = time.monotonic(), 0
        while got := os.readv(file, [room]):
            moved += got
        best = max(best, moved / (time.monotonic() - began))
        os.close(file)
    return best


def scaling(bench):
    """Work and bytes of each rank, measured; and seconds that `graphmill estimate` says, from the rates of this disk and of one of these cores."""
    asked = bench.asked
    graph = bench.kronecker()
    metrics = bench.run("pagerank", graph, 1, 4096)
    arcs = metrics["graph"]["arcs"]
    pass_rate = arcs / statistics.median(step["seconds"] for step in over_edges(metrics)[1:])
    disk, pass_rate = round(disk_rate(graph)), round(pass_rate)
    print(f"A disk of {disk / 1e9:.2f} GB/s and a core that goes along {pass_rate / 1e6:.0f} M arcs/s: measured; a network of {asked.network_rate}; "
          f"{asked.memory} MiB a rank; a thread each\n")
    speed = {}
    for algorithm in ALGORITHMS:
        rows = []
        for ranks in (1, 2, 4, 8, 16):
            metrics = bench.run(algorithm, graph, ranks, asked.memory)
            each = metrics.get("per_rank") or [{"edges": arcs, "bytes_to": [0]}]
            dense = sum(step["edges"] for step in over_edges(metrics)) / arcs
            words = [asked.graphmill, "estimate", graph, "--algorithm", algorithm, "--iterations", max(1, round(dense)), "--ranks", ranks,
                     "--threads", 1, "--memory", f"{asked.memory}M", "--disk-rate", disk, "--network-rate", asked.network_rate,
                     "--pass-rate", pass_rate, "--json"]
            planned = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)
            seconds = planned["run"]["all"]["seconds"]
            speed.setdefault(algorithm, []).append(seconds)
            rows.append([ranks, f"{max(rank['edges'] for rank in each):,}", mib(total(metrics, "bytes_read", "bytes_written") / ranks),
                         mib(max(sum(rank["bytes_to"]) for rank in each)), f"{seconds:.3f}", f"{speed[algorithm][0] / seconds:.2f}"])
        print(f"{algorithm}\n")
        table(["ranks", "edges of the rank that has most", "MiB of disk a rank", "MiB sent by the rank that sends most", "s, planned", "times as fast"], rows)
    of_four = [statistics.geometric_mean(found[0] / found[at] for found in speed.values()) for at in range(5)]
    print("All four, geometric mean, planned, for 1, 2, 4, 8, 16 ranks:", ", ".join(f"{times:.2f}" for times in of_four))


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


def explained(failed):
    """What a command that failed says of it, and how it ended."""
    how = f"was ended by signal {-failed.returncode}" if failed.returncode < 0 else f"failed with exit code {failed.returncode}"
    said = (failed.stderr or b"") if isinstance(failed.stderr, (bytes, type(None))) else failed.stderr.encode()
    return f"{shlex.join(map(str, failed.cmd))} {how}: {said.decode(errors='replace').strip() or 'see above'}"


def main():
    tables = {"bounds": bounds, "filter": filtering, "indices": indices, "choices": choices, "control": control, "batches": batches, "ranks": scaling, "timeline": timeline}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=tables)
    parser.add_argument("folder")
    parser.add_argument("--graphmill", default="graphmill", help="the command")
    parser.add_argument("--scale", type=int, default=21, help="of the graphs: 2^SCALE vertices")
    parser.add_argument("--degree", type=int, default=8, help="edges from each vertex, in the mean")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--memory", type=int, default=28, help="of each rank, in MiB")
    parser.add_argument("--network-rate", default="10gbit", help="for what is planned")
    parser.add_argument("--rounds", type=int, default=3, help="of what is timed")
    parser.add_argument("--patience", type=int, default=600, help="seconds for the iteration of the control")
    asked = parser.parse_args()
    try:
        tables[asked.table](Bench(asked))
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{explained(failed)}\ntake more vertices (--scale {asked.scale + 1}) or more memory (--memory), so that each run has enough")


if __name__ == "__main__":
    main()
