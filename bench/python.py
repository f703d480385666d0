#!/usr/bin/env python3
"""The Python package: programs of one's own beside the built-in, and what other threads and Ctrl-C see of a run.

  bench/python.py programs GRAPH [--rounds 5] [--limits '{"memory": "8G"}']
  bench/python.py threads GRAPH

`programs` runs 20 iterations of PageRank in turn: the built-in, the class of python/tests/test_program.py, and the same with a fold of its own. It
compares the highest thousand ranks of all, and prints medians of the seconds of the passes and their ratios to the built-in. `threads` lets a Python
thread count, alone and while one worker runs PageRank, and interrupts runs. Both need the installed package; `programs` also needs numba and pytest.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import sys
import threading
import time

import graphmill as gm

ITERATIONS = 20


def programs(graph, rounds, limits):
    """Takes turns."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python/tests"))
    from test_program import FoldedPageRank, PageRank

    ways = {
        "built-in": lambda: graph.pagerank(iterations=ITERATIONS, progress=False, **limits),
        "combine": lambda: graph.run(PageRank(), iterations=ITERATIONS, progress=False, **limits),
        "fold": lambda: graph.run(FoldedPageRank(), iterations=ITERATIONS, progress=False, **limits),
    }
    taken, best = {way: [] for way in ways}, None
    for number in range(rounds + 1):
        for way, run in ways.items():
            with run() as result:
                if number:  # the first round compiles
                    taken[way].append(result.metrics["seconds"]["run"])
                top = result.top(1000)
            best = best or top
            if top != best:
                sys.exit(f"{way} gives other ranks")
    medians = {way: statistics.median(found) for way, found in taken.items()}
    for way, median in medians.items():
        print(f"{way}: {median:.3f} s, {medians['built-in'] / median:.2f} of the speed of the built-in")


def count(seconds):
    """How far a thread counts in a second."""
    end, reached = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        for _ in range(1000):
            reached += 1
    return reached / seconds


def threads(graph):
    """What a Python thread gets done beside a run, and how soon Ctrl-C returns."""
    ratios = []
    for _ in range(5):
        alone = count(2)
        job = graph.pagerank(iterations=100_000, threads=1, memory="8G", background=True)
        while job.progress is None or job.progress.part != "run":
            time.sleep(0.01)
        ratios.append(count(2) / alone)
        job.cancel()
        try:
            job.result()
        except gm.Cancelled:
            pass
    print(f"a thread beside a run counts at {statistics.median(ratios):.3f} of its speed ({min(ratios):.3f} to {max(ratios):.3f})")
    for _ in range(3):
        at = []

        def interrupt():
            time.sleep(3)
            at.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            graph.pagerank(iterations=100_000, memory="8G", threads=2)
        except KeyboardInterrupt:
            print(f"Ctrl-C returned after {time.perf_counter() - at[0]:.3f} s")
        thread.join()
    print("the next call:", graph.pagerank(iterations=1).top(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["programs", "threads"])
    parser.add_argument("graph")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limits", type=json.loads, default={"memory": "8G", "threads": 2})
    asked = parser.parse_args()
    graph = gm.open(asked.graph)
    if asked.what == "programs":
        programs(graph, asked.rounds, asked.limits)
    else:
        threads(graph)


if __name__ == "__main__":
    main()
