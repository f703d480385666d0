#!/usr/bin/env python3
"""The figures of the paper on BlitzG, measured on this machine: by buckets, by vertex-target communication, and by columns.

  bench/blitzg.py fig5|fig6|fig7|fig8|fig9 FOLDER [--scale 20] [--rounds 3]     prints a table; graphs are made in FOLDER once

  fig5   seconds and bytes of a superstep of PageRank with 1, 10 and 40 Gbit/s a rank
  fig6   seconds with more threads
  fig7   messages that a thread generates in a second
  fig8   memory
  fig9   four algorithms on growing graphs

Needs a release build of the command and of graphmill-bench. Ranks share this machine: see its processors and its load in the table.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
GRAPHMILL, BENCH = str(TARGET / "graphmill"), str(TARGET / "graphmill-bench")
# Bytes of headers of a datagram, as the kernel's traffic control counts them, and of a bucket.
FRAME, BUCKET = 42, 1472


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def graph(folder, scale, degree=16):
    path = folder / f"kronecker-{scale}-{degree}"
    if not path.exists():
        call(GRAPHMILL, "generate", "kronecker", scale, degree, "--undirected", "--weights", "f32", "--batch-size", min(1 << 18, 1 << (scale - 2)), "-q", "-o", path)
    return path


def run(folder, graph, algorithm, *options):
    """Mean seconds of a pass, bytes sent in one, and the most memory of a rank."""
    call(GRAPHMILL, "run", *algorithm.split(), graph, "-q", "--metrics", folder / "metrics.json", "-o", folder / "rows.parquet", *options)
    metrics = json.loads((folder / "metrics.json").read_text())
    passes = [one for one in metrics["passes"] if one["edges"]]
    if not passes:
        return None
    return {
        "seconds": sum(one["seconds"] for one in passes) / len(passes),
        "bytes_sent": sum(one["bytes_sent"] for one in passes) / len(passes),
        "memory": max([metrics["peak_memory"], *(rank["peak_memory"] for rank in metrics.get("per_rank", []))]),
        "roles": metrics.get("datagrams", {}).get("role_seconds"),
        "edges": sum(one["edges"] for one in passes),
        "passes": len(passes),
    }


def source(folder, path):
    """A vertex that has edges."""
    return next(vertex for vertex in range(1000) if run(folder, path, f"bfs --source {vertex}", *IN_BUCKETS))


def median(rounds, what):
    return statistics.median(one[what] for one in rounds)


def table(head, rows):
    print("| " + " | ".join(head) + " |\n| " + " | ".join("---" for _ in head) + " |")
    for row in rows:
        print("| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |", flush=True)


PAGERANK = "pagerank --iterations 5 --precision f32"
IN_BUCKETS = ["--executor", "bucket", "--link", "udp", "--combine", "never"]


def fig5(folder, args):
    path, rows = graph(folder, args.scale), []
    for gbit in (1, 10, 40):
        rate = gbit * 125_000_000
        # The rounds of both alternate.
        both = json.loads(call(BENCH, "compare", path, "--rate", rate, "--rounds", args.rounds, "--iterations", 5))["rounds"]
        columns = [run(folder, path, PAGERANK, "--ranks", 2, "--threads", 2) for _ in range(args.rounds)]
        ours, target = ([one[which] for one in both] for which in ("buckets", "vertex_target"))
        on_wire = median(ours, "bytes_sent") * (BUCKET + FRAME) / BUCKET / 2 / rate / median(ours, "seconds")
        rows.append([
            gbit, median(ours, "seconds"), f"{on_wire:.0%}", median(target, "seconds"), f"{median(target, 'seconds') / median(ours, 'seconds'):.2f}",
            median(columns, "seconds"), median(ours, "bytes_sent") / 1e6, median(target, "bytes_sent") / 1e6, median(columns, "bytes_sent") / 1e6,
        ])
    table(["Gbit/s", "buckets s", "of the rate", "vertex-target s", "times", "columns s (no limit)", "buckets MB", "vertex-target MB", "columns MB"], rows)


def fig6(folder, args):
    path, rows = graph(folder, args.scale), []
    for threads in (1, 2, 3, 4):
        ours, columns = (
            [run(folder, path, PAGERANK, "--threads", threads, *more) for _ in range(args.rounds)] for more in (IN_BUCKETS, [])
        )
        rows.append([threads, median(ours, "seconds"), median(columns, "seconds")])
    for roles in ("1,1,1", "2,1,1", "1,1,2"):
        threads = sum(map(int, roles.split(",")))
        ours = [run(folder, path, PAGERANK, "--threads", threads, *IN_BUCKETS, "--bucket-threads", roles) for _ in range(args.rounds)]
        rows.append([f"{threads}: {roles}", median(ours, "seconds"), ""])
    table(["threads", "buckets s", "columns s"], rows)


def fig7(folder, args):
    path, rows = graph(folder, args.scale), []
    for precision in ("f32", "f64"):
        rounds = [run(folder, path, f"pagerank --iterations 5 --precision {precision}", "--threads", 1, *IN_BUCKETS) for _ in range(args.rounds)]
        rate = lambda role: statistics.median(one["edges"] / one["roles"][role] / 1e6 for one in rounds)
        rows.append([f"{precision}, {4 + int(precision[1:]) // 8} bytes", rate("work"), rate("accumulate")])
    table(["message", "generated M/s", "accumulated M/s"], rows)


def fig8(folder, args):
    path, rows = graph(folder, args.scale), []
    for ranks in (1, 2, 4):
        one = lambda *more: run(folder, path, PAGERANK, "--ranks", ranks, "--threads", ranks, "--place", "edges=dram", *more)
        both = json.loads(call(BENCH, "compare", path, "--ranks", ranks, "--rounds", 1, "--iterations", 2))["rounds"][0]
        buckets, columns = run(folder, path, PAGERANK, "--ranks", ranks, "--threads", ranks, *IN_BUCKETS), one()
        target = both["vertex_target"]["memory"] / ranks
        rows.append([ranks, buckets["memory"] / 1e6, target / 1e6, f"{target / buckets['memory']:.2f}", columns["memory"] / 1e6])
    table(["ranks", "buckets MB a rank", "vertex-target MB a rank", "times", "columns MB a rank"], rows)


def fig9(folder, args):
    rows = []
    for scale in range(args.scale - 4, args.scale + 1, 2):
        path = graph(folder, scale)
        for algorithm in (PAGERANK, f"sssp --source {source(folder, path)}", "wcc --method labels", "cdlp --iterations 5"):
            of = lambda *more: [run(folder, path, algorithm, "--ranks", 2, "--threads", 2, *more) for _ in range(args.rounds)]
            never, combined, columns = of(*IN_BUCKETS), of("--executor", "bucket", "--link", "udp"), of()
            rows.append([
                scale, algorithm.split()[0], *(median(one, "seconds") * one[0]["passes"] for one in (never, combined, columns)),
                *(median(one, "bytes_sent") * one[0]["passes"] / 1e6 for one in (never, combined, columns)),
            ])
    table(["scale", "algorithm", "buckets s", "combined s", "columns s", "buckets MB", "combined MB", "columns MB"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = {function.__name__: function for function in (fig5, fig6, fig7, fig8, fig9)}
    parser.add_argument("figure", choices=figures)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    print(f"{args.figure}: kronecker {args.scale}, 16 edges a vertex, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    figures[args.figure](args.folder, args)


main()
