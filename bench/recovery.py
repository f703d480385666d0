#!/usr/bin/env python3
"""What checkpoints of a run cost, and whether a run that is killed again and again ends as it should. bench/results/2026-11-25-checkpoints.md has figures.

  bench/recovery.py cost FOLDER      time and bytes written: rows on disk, a checkpoint each pass; rows in memory, a checkpoint each 30 s
  bench/recovery.py kills FOLDER     pagerank that publishes each pass, killed ten times, on one rank and on four

FOLDER keeps the graphs. Runs with checkpoints and without are made in turn; a figure is the median of the rounds (seven, and 35 in memory), and so is a ratio, of the two of a
round: so it is not that of the figures. The whole command opens the graph, writes the result and removes the checkpoints too. Bytes are those that the file system was given, result included.
"""
import argparse
import hashlib
import json
import pathlib
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

MIB = 1 << 20


class Bench:
    def __init__(self, asked):
        self.asked, self.folder = asked, pathlib.Path(asked.folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.checkpoints, self.out = self.folder / "checkpoints", self.folder / "result.parquet"

    def graph(self):
        path = self.folder / f"k-{self.asked.scale}-{self.asked.degree}"
        if not path.exists():
            self.call("generate", "kronecker", self.asked.scale, self.asked.degree, "-q", "-o", path)
        return path

    def words(self, words):
        return [self.asked.graphmill, *map(str, words)]

    def call(self, *words):
        subprocess.run(self.words(words), check=True, stdout=subprocess.DEVNULL)

    def measured(self, words):
        """Seconds of the algorithm, of the whole command, MiB written, and whether rows were in memory."""
        metrics = self.folder / "metrics.json"
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock, time.monotonic()
        self.call(*words, "-q", "-o", self.out, "--metrics", metrics)
        took = time.monotonic() - started
        written = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock - before) * 512 / MIB
        said = json.loads(metrics.read_text())
        assert not self.checkpoints.exists()
        return said["seconds"]["run"], took, written, said["vertex_state_resident"], len(said["passes"])

    def cost(self):
        graph = self.graph()
        print("| run | rows | passes | seconds without | with checkpoints | ratio | of the whole command | MiB written without | with | ratio |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for name, options in [("pagerank", ["--iterations", 20]), ("bfs", ["--source", 0])]:
            run = ["run", name, graph, *options]
            named = ["--checkpoint-dir", self.checkpoints]
            paged = ["--memory", self.asked.memory]
            for rows, plain, kept in [
                ("on disk", [*paged, "--checkpoints", 0], [*paged, *named, "--checkpoint-every", 1]),
                ("in memory", ["--checkpoints", 0], named),
            ]:
                ways = [[], []]
                # Those in memory are short: five times as many tell a percent from what differs from one to the next.
                rounds = self.asked.rounds * (5 if rows == "in memory" else 1)
                for number in range(rounds + 1):
                    # Whichever is first finds the disk as the other has left it.
                    order = [(0, plain), (1, kept)] if number % 2 else [(1, kept), (0, plain)]
                    for way, more in order:
                        found = self.measured([*run, *more])
                        assert found[3] == (rows == "in memory"), f"rows are not {rows}"
                        if number:
                            ways[way].append(found)
                median = lambda of: statistics.median(of)
                seconds = [median(found[0] for found in way) for way in ways]
                written = [median(found[2] for found in way) for way in ways]
                ratio = lambda i: median(kept[i] / plain[i] for plain, kept in zip(*ways))
                print(
                    f"| {name} | {rows} | {ways[0][0][4]} | {seconds[0]:.2f} | {seconds[1]:.2f} | {ratio(0):.3f} | {ratio(1):.3f} | {written[0]:.0f} | {written[1]:.0f} | {ratio(2):.4f} |",
                    flush=True,
                )

    def kills(self):
        graph, draw = self.graph(), random.Random(self.asked.seed)
        print("| ranks | seconds undisturbed | of each kill, the checkpoint that the next went on with | seconds of the last | same bytes |")
        print("| --- | --- | --- | --- | --- |")
        number = int(self.asked.memory[:-1])
        for ranks, memory in [(1, self.asked.memory), (4, f"{4 * number}{self.asked.memory[-1]}")]:
            run = ["run", "pagerank", graph, "--iterations", self.asked.iterations, "--ranks", ranks, "--memory", memory, "-o", self.out]
            kept = ["--checkpoint-dir", self.checkpoints, "--checkpoint-every", 1, "--resume"]
            started = time.monotonic()
            self.call(*run, "--checkpoints", 0, "-q")
            took, wanted = time.monotonic() - started, self.digest()
            newest, went_on = 0, []
            for _ in range(self.asked.kills):
                child = subprocess.Popen(self.words([*run, *kept]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                time.sleep(draw.uniform(0.05, 2 * took / self.asked.kills))
                child.kill()
                said = child.communicate()[1]
                if child.returncode == 0:
                    sys.exit("it came to its end before it was killed so often: more iterations, or a larger graph")
                self.check(said, newest)
                newest = self.newest(ranks)
                went_on.append(newest)
            started = time.monotonic()
            last = subprocess.run(self.words([*run, *kept]), check=True, capture_output=True, text=True)
            self.check(last.stderr, newest, ended=True)
            same = "yes" if self.digest() == wanted else "NO"
            print(f"| {ranks} | {took:.1f} | {', '.join(map(str, went_on))} | {time.monotonic() - started:.1f} | {same} |", flush=True)

    def digest(self):
        digest = hashlib.sha256(self.out.read_bytes()).hexdigest()
        self.out.unlink()
        return digest

    def newest(self, ranks):
        """The newest checkpoint that all ranks have: each ends one pass more than the one before."""
        of_rank = lambda rank: {int(path.name.split("-")[1]) for path in self.checkpoints.glob(f"rank-{rank:05}/checkpoint-" + "[0-9]" * 20)}
        common = set.intersection(*map(of_rank, range(ranks)))
        return max(common, default=0)

    def check(self, said, newest, ended=False):
        """An attempt that has come so far went on with the newest checkpoint, so that at most the pass after it was done twice."""
        found = re.search(r"after (\d+) calls", said)
        if ended and newest and not found:
            sys.exit(f"it began anew, though there was checkpoint {newest}: {said}")
        if found and int(found[1]) != newest:
            sys.exit(f"it went on after {found[1]} calls, not after {newest}: {said}")


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("what", choices=["cost", "kills"])
    reader.add_argument("folder")
    reader.add_argument("--graphmill", default=shutil.which("graphmill") or "graphmill")
    reader.add_argument("--scale", type=int)
    reader.add_argument("--degree", type=int, default=16)
    reader.add_argument("--memory")
    reader.add_argument("--rounds", type=int, default=7)
    reader.add_argument("--iterations", type=int, default=20)
    reader.add_argument("--kills", type=int, default=10)
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    asked.scale = asked.scale or {"cost": 22, "kills": 24}[asked.what]
    asked.memory = asked.memory or {"cost": "64M", "kills": "256M"}[asked.what]
    getattr(Bench(asked), asked.what)()


main()
