#!/usr/bin/env python3
"""Imports and runs of 10 to 20 times as much as their memory, each under a limit of the kernel of its budget and 96 MiB, page cache
included: none is killed, and each gives the result of one without a limit and with memory to spare.

  tests/system/memory/run.py                      prints what was done; exits with 0 or 1
  tests/system/memory/run.py --executor bucket    runs in buckets, in the least memory that a refusal names
  GRAPHMILL_SOAK=1                                all jobs, on larger graphs too

Needs root and cgroups; skipped, with exit code 0 and the reason, where there are none. The command is GRAPHMILL, or is built.
"""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]
from command import MIB, command, digest, remove  # noqa: E402
from limits import limited  # noqa: E402

# What a process takes besides its budget, at most.
BESIDES = 96 * MIB


def size(path):
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--executor", choices=["bucket"])
    executor = parser.parse_args().executor
    graphmill = command()
    try:
        with limited(BESIDES) as under:
            subprocess.run([*under, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no limit of memory can be set ({error})")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        call = lambda words: subprocess.run([graphmill, *words.split()], check=True, stdout=subprocess.DEVNULL)
        if executor == "bucket":
            return in_buckets(graphmill, call)
        call("generate kronecker 20 12 -q -o numbers.el")
        with open("numbers.el") as numbers, open("names.el", "w") as names:
            for line in numbers:
                source, destination = line.split()
                names.write(f"vertex-{source} vertex-{destination}\n")
        call("generate kronecker 20 40 --weights f32 -q -o weighted")
        jobs = [
            # Of input, its budget in MiB, and the words.
            ("names.el", 24, "import names.el --threads 2 -o {out}"),
            ("weighted", 24, "run sssp weighted --source 1 --threads 1 -o {out}"),
            ("weighted", 24, "run pagerank weighted --iterations 2 --threads 1 -o {out}"),
        ]
        if "GRAPHMILL_SOAK" in os.environ:
            jobs += more(call)
        for of, budget, words in jobs:
            times = size(pathlib.Path(of)) / (budget * MIB)
            if times < 10:
                sys.exit(f"{words}: {of} is only {times:.1f} times as large as {budget} MiB")
            out, answers = pathlib.Path("out.csv" if words.startswith("run") else "out"), []
            for memory, limit in [(2048, None), (budget, budget * MIB + BESIDES)]:
                with limited(limit) as under:
                    done = subprocess.run([*under, graphmill, *words.format(out=out).split(), "-q", "--memory", f"{memory}M"], capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{words} with {memory} MiB: exit code {done.returncode}: {done.stderr}")
                # Over chunks floating-point numbers are added in the order of arrival.
                is_rounded = "pagerank chunks" in words
                answers.append(values(out) if is_rounded else digest(out))
                remove(out)
            same = "the same within 1e-9" if is_rounded else "the same bytes"
            if not (all(map(math.isclose, *answers)) if is_rounded else answers[0] == answers[1]):
                sys.exit(f"{words}: with {budget} MiB it is not {same}")
            print(f"{words.replace(' -o {out}', '')}: {budget} MiB for {times:.1f} times as much, {same}", flush=True)


def in_buckets(graphmill, call):
    """Runs in buckets take the memory that a refusal names, and no more with more messages."""
    beside = {}
    for edges in (16, 48):
        call(f"generate kronecker 19 {edges} --weights f32 --undirected --batch-size 16384 -q -o graph-{edges}")
        for algorithm in ("pagerank --precision fixed --iterations 5", "sssp --source 1", "wcc --method labels", "cdlp --iterations 3"):
            for ranks in ("--threads 1", "--threads 6 --ranks 3"):
                words = f"run {algorithm} graph-{edges} {ranks} -o out.csv".split()
                call(" ".join(words))
                wanted = digest(pathlib.Path("out.csv"))
                remove("out.csv")
                words += ["-q", "--executor", "bucket", "--combine", "never", "--metrics", "metrics.json"]
                # What too little for the directories names is enough for them alone.
                least = 4 * MIB
                while True:
                    done = subprocess.run([graphmill, *words, "--memory", str(least)], capture_output=True, text=True)
                    said = re.search(r"least ([0-9]+)", done.stderr)
                    if done.returncode == 0 or not said or int(said[1]) <= least:
                        break
                    least = int(said[1])
                if done.returncode or least == 4 * MIB:
                    sys.exit(f"{words} with {least} bytes: {done.stderr}")
                with limited(least + BESIDES) as under:
                    done = subprocess.run([*under, graphmill, *words, "--memory", str(least)], capture_output=True, text=True)
                if done.returncode or digest(pathlib.Path("out.csv")) != wanted:
                    sys.exit(f"{words} with {least} bytes: exit code {done.returncode}: {done.stderr}")
                metrics = json.loads(pathlib.Path("metrics.json").read_text())
                # The ranks share the budget, and the fullest one needs its part.
                peaks = [rank["peak_memory"] for rank in metrics.get("per_rank", [])] or [metrics["peak_memory"]]
                if not 0.9 * least <= max(peaks) * len(peaks) <= least:
                    sys.exit(f"{words}: ranks leased {peaks} of {least} bytes")
                labels = 4 * metrics["graph"]["arcs"] if "cdlp" in words else 0
                files = pathlib.Path(f"graph-{edges}/columns").iterdir()
                stored = sum(size(file) for file in files if "sssp" in words or not file.name.endswith("weights"))
                beside.setdefault((algorithm, ranks), []).append(least - labels - stored)
                remove("out.csv")
                print(f"{algorithm} {ranks}, {edges} edges a vertex: {least / MIB:.1f} MiB, the same bytes", flush=True)
    for run, (fewer, more) in beside.items():
        print(f"{run}: {fewer / MIB:.1f} MiB beside edges and labels, and {more / MIB:.1f} MiB with three times as many messages")
        # With several ranks, the fullest one has more than its part of the edges.
        if more > 1.1 * fewer and "--ranks" not in run[1]:
            sys.exit("it grows with the messages")


def values(path):
    """The values of a result by row, in the order of ids."""
    with open(path) as rows:
        return [float(row.split(",")[1]) for row in list(rows)[1:]]


def more(call):
    """Jobs that take long, and what they are about."""
    with open("hub.el", "w") as hub:
        for vertex in range(6_000_000):
            hub.write(f"{vertex} 0\n0 {vertex * 7 % 6_000_001}\n")
    call("generate kronecker 21 57 --undirected --batch-size 32768 -q -o graph")
    call("generate kronecker 20 57 --weights f32 --layout stream --batch-size 65536 --chunk-size 256K -q -o chunks")
    call("generate kronecker 20 16 --weights f32 --edge-vertices --batch-size 65536 -q -o edges")
    return [
        ("numbers.el", 16, "import numbers.el --threads 2 -o {out}"),
        ("names.el", 24, "import names.el --threads 1 --order degree --reverse -o {out}"),
        ("hub.el", 10, "import hub.el --threads 2 -o {out}"),
        ("graph", 25, "run pagerank graph --iterations 2 --threads 1 -o {out}"),
        ("graph", 34, "run pagerank graph --iterations 2 --threads 2 --method pregel-pull -o {out}"),
        ("graph", 48, "run pagerank graph --iterations 2 --threads 2 --ranks 2 -o {out}"),
        ("graph", 32, "run bfs graph --source 1 --threads 2 --parents -o {out}"),
        ("graph", 30, "run wcc graph --method labels --threads 2 -o {out}"),
        ("graph", 30, "run wcc graph --threads 2 -o {out}"),
        ("weighted", 24, "run sssp weighted --source 1 --method bellman-ford --threads 1 -o {out}"),
        ("weighted", 24, "run scc weighted --threads 2 -o {out}"),
        ("weighted", 24, "run cdlp weighted --iterations 2 --threads 2 -o {out}"),
        ("weighted", 24, "run mis weighted --threads 2 -o {out}"),
        ("weighted", 24, "run mst weighted --threads 2 -o {out}"),
        ("weighted", 24, "run conductance weighted --set odd --threads 2 -o {out}"),
        ("weighted", 24, "run spmv weighted --vector ones --threads 2 -o {out}"),
        ("chunks", 32, "run pagerank chunks --iterations 2 --threads 2 -o {out}"),
        ("chunks", 32, "run wcc chunks --threads 2 -o {out}"),
        ("chunks", 44, "run mst chunks --threads 2 -o {out}"),
        ("chunks", 32, "run scc chunks --threads 2 -o {out}"),
        ("edges", 26, "run bp edges --affinity 0.6 --iterations 2 --threads 2 -o {out}"),
    ]


main()
