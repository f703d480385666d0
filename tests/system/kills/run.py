#!/usr/bin/env python3
"""Kills imports and runs again and again at random moments, and resumes each until it ends. Each gives the bytes of an
undisturbed job, and leaves nothing behind.

  tests/system/kills/run.py [--seconds 60] [--kills 50] [--each 0] [--only NAMES] [--seed 1]      prints what was done; exits with 0 or 1

Each job draws its command, a memory limit that is scarce or ample, threads, ranks in one process or under mpirun (if there
is one), how often checkpoints are published and how many are kept. A kill ends the whole job or one rank, or sends it a
signal to end by itself. The same command then resumes from the newest checkpoint that all ranks had. No attempt takes
longer than two minutes, panics, or leaves a partial result. --kills is the least number of kills. With --each N the jobs are
runs of each algorithm on one rank and on four in turn, until each was killed N times on each; --only names algorithms, or one with its graph
(mst-chunks).
The command under test is GRAPHMILL, or is built.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from command import command, digest, remove  # noqa: E402

# Kills of a job at most, before it is let go to its end.
KILLS_MAX = 25
SECONDS_MAX = 120
# Seconds that mpirun may be left alone: that of Open MPI may hang when all that it had started has ended (docs/internals/cluster.md).
ALONE_MAX = 30
INTERRUPTED = 130
IMPORTS = [
    "import numbers.wel --weights f32",
    "import names.wel --weights f32 --reverse",
    "import names.wel --order degree --undirected",
    "generate kronecker 17 6 --undirected --batch-size 8192",
]
RUNS = [
    "run pagerank graph --iterations 12",
    "run pagerank graph --iterations 12 --method pregel-pull",
    "run bfs graph --source 1 --parents",
    "run bfs grid --source 7",
    "run wcc graph --method labels",
    "run wcc grid",
    "run sssp graph --source 1",
    "run sssp grid --source 7 --method bellman-ford",
    "run pagerank named --iterations 9",
    "run wcc named --method labels",
    "run scc named",
    "run mis named --seed 3",
    "run cdlp named",
    "run cdlp graph --iterations 15",
    "run mis graph --priority id",
    "run mst graph",
    "run mst named",
    "run conductance named --set set.csv --weighted",
    "run spmv named --vector vector.csv",
    "run spmv named --vector vector.csv --transpose",
    "run mst chunks",
    "run scc chunks",
    "run wcc chunks --method labels",
    "run sssp chunks --source FIRST --method bellman-ford --updates disk",
    "run pagerank graph --iterations 12 --precision fixed --executor bucket --link udp",
    "run sssp graph --source 1 --executor bucket",
    "run cdlp graph --iterations 15 --executor bucket --link udp",
    "run bp beliefs --potential 3,1,1,2 --priors priors.csv --iterations 8",
]
MPIRUN = "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n".split()


def below(process):
    """All that a process has started, and what these have, and so on."""
    try:
        tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return children + [one for child in children for one in below(child)]


def state(process):
    """A letter; none where it is gone."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1][0]
    except OSError:
        return ""


def lives(process):
    """Whether it has not ended: those that nobody has asked after are still listed."""
    return state(process) not in ("", "Z", "X")


def hears(process, number):
    """Whether it hears a signal, which ends it else: one that has just been started does not yet."""
    try:
        caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process}/status").read_text())
        return bool(int(caught[1], 16) >> (number - 1) & 1)
    except OSError:
        return False


def end(process, number):
    """Sends a signal; it may have ended just now."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


class Job:
    """What is asked in one way, and asked again when it was killed."""

    def __init__(self, soak, draw):
        self.soak, self.draw = soak, draw
        self.is_import = draw.random() < 0.25 and not soak.each
        self.asked = draw.choice(IMPORTS if self.is_import else soak.runs)
        if soak.each:
            self.asked = soak.runs[soak.jobs // 2 % len(soak.runs)]
        self.out = pathlib.Path("found" if self.is_import else draw.choice(["found.csv", "found.parquet"]))
        ranks = draw.choice([1, 1, 1, 2, 3, 4])
        if soak.each:
            ranks = (1, 4)[soak.jobs % 2]
        # One process alone draws a graph.
        ranks = self.ranks = 1 if self.asked.startswith("generate") else ranks
        self.by_mpirun = soak.has_mpi and ranks > 1 and draw.random() < 0.4
        threads = ranks if self.by_mpirun else ranks * draw.choice([1, 2])
        self.start = [*MPIRUN, str(ranks)] if self.by_mpirun else []
        self.words = [*self.asked.split(), "-o", str(self.out), "--threads", str(1 if self.by_mpirun else threads)]
        if ranks > 1 and not self.by_mpirun:
            self.words += ["--ranks", str(ranks)]
        if self.is_import:
            self.words += ["--memory", f"{draw.choice([48, 512]) * (1 if self.by_mpirun else ranks)}M"]
            if self.asked.startswith("import"):
                self.words += ["--checkpoint-every", draw.choice(["0s", "1s"])]
            return
        is_paged = draw.random() < 0.6
        self.words += ["--memory", self.least() if is_paged else f"{256 * ranks}M"]
        self.words += ["--io", draw.choice(["auto", "threads"]), "--sparse", draw.choice(["auto", "auto", "always"])]
        if not is_paged or draw.random() < 0.7:
            self.words += ["--checkpoint-dir", "checkpoints", "--resume"]
        self.words += ["--checkpoint-every", draw.choice(["1", "1", "3", "0s", "1s"]), "--checkpoints", str(draw.choice([1, 1, 2, 3]))]

    def least(self):
        """The least memory that does."""
        least = 1
        # A run in buckets says first what the directories of the graph take.
        for _ in range(2 if "bucket" in self.words else 1):
            said, _ = self.end_of(self.start_with([*self.words, "-q", "--checkpoints", "0", "--memory", f"{least}M"]), [])
            found = re.search(r"give --memory (\d+)M", said)
            if not found:
                self.fail(f"it does not say how much memory it needs: {said}")
            least = int(found[1])
        return f"{least}M"

    def start_with(self, words):
        return subprocess.Popen(
            self.command(words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.soak.environment, start_new_session=True
        )

    def end_of(self, child, ranks):
        """What it has said when it and its ranks have ended, and whether it did by itself."""
        alone, deadline = 0, time.monotonic() + SECONDS_MAX
        while True:
            try:
                return child.communicate(timeout=1)[1], True
            except subprocess.TimeoutExpired:
                living = [rank for rank in {*ranks, *below(child.pid)} if lives(rank)]
            alone = alone + 1 if self.by_mpirun and not living else 0
            if alone < ALONE_MAX and time.monotonic() < deadline:
                continue
            states = [f"{rank}: {state(rank)}" for rank in living]
            for process in [*living, child.pid]:
                end(process, signal.SIGKILL)
            said = child.communicate()[1]
            if alone < ALONE_MAX:
                self.fail(f"it hangs: {said}\n{states}")
            self.soak.kills["mpirun alone"] += 1
            return said, False

    def command(self, words):
        return [*self.start, self.soak.graphmill, *words]

    def wanted(self):
        """What one rank gives over columns, with memory to spare, and how long it takes as this job goes about it."""
        one = [*self.asked.split(" --executor")[0].split(), "-q"]
        wanted = self.soak.wanted.get(self.asked + self.out.suffix)
        if not wanted:
            out = pathlib.Path("wanted" + self.out.suffix)
            subprocess.run([self.soak.graphmill, *one, "-o", out], check=True, stdout=subprocess.DEVNULL)
            wanted = self.soak.wanted[self.asked + self.out.suffix] = digest(out)
            remove(out)
        started = time.monotonic()
        self.attempt(self.words, None)
        took = time.monotonic() - started
        self.check(wanted)
        return wanted, took

    def attempt(self, words, kill):
        """Asks, and kills it after some seconds; whether it came to its end."""
        newest, is_done = self.newest(), self.out.exists() or any(pathlib.Path().glob("*/rank-*/done"))
        child = self.start_with(words)
        codes, ranks = [0], []
        if kill is not None:
            try:
                child.wait(kill)
            except subprocess.TimeoutExpired:
                codes, ranks = self.disturb(child)
        said, has_ended = self.end_of(child, ranks)
        # Some outlive it by a little.
        end_of_all = time.monotonic() + SECONDS_MAX
        while any(map(lives, ranks)):
            if time.monotonic() > end_of_all:
                self.fail(f"ranks outlive it: {said}")
            time.sleep(0.001)
        if "panicked" in said:
            self.fail(said)
        if has_ended and codes and child.returncode not in codes:
            self.fail(f"exit code {child.returncode}, not of {codes}: {said}")
        if not is_done:
            self.check_start(newest, said)
        # Where nobody disturbed it, its ranks had ended by themselves.
        return child.returncode == 0 or (not has_ended and kill is None and self.out.exists())

    def disturb(self, child):
        """Kills all of it or a part, or sends a signal; the exit codes that it may have, or none: any; and its ranks."""
        how = self.draw.choice(["all", "all", "all", "one", "ask", "insist"])
        ranks = below(child.pid) if self.by_mpirun else []
        codes = []
        if how == "one" and ranks:
            end(self.draw.choice(ranks), signal.SIGKILL)
        elif how == "ask" and ranks:
            # One rank hears it, and all end.
            how = "ask one"
            end(self.draw.choice(ranks), signal.SIGUSR1)
        elif how in ("ask", "insist") and not self.by_mpirun:
            asked = [self.draw.choice([signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])]
            if how == "insist":
                asked = [signal.SIGINT, signal.SIGTERM]
            codes = [0, INTERRUPTED, *[-number for number in asked if not hears(child.pid, number)]]
            for number in asked:
                end(child.pid, number)
                time.sleep(self.draw.uniform(0, 0.02))
        else:
            how = "all"
            for process in [child.pid, *ranks]:
                end(process, signal.SIGKILL)
        self.soak.kills[how] += 1
        if how in ("all", "one"):
            self.soak.killed[self.asked.split()[1], self.ranks] += 1
        return codes, ranks

    def newest(self):
        """Returns the newest checkpoint that all ranks have; 0 is none."""
        found = collections.defaultdict(list)
        for path in pathlib.Path().glob("*/rank-*/checkpoint-*"):
            if path.name.removeprefix("checkpoint-").isdecimal():
                found[path.parent].append(int(path.name.removeprefix("checkpoint-")))
        of_all = [number for numbers in found.values() for number in numbers]
        return max((number for number in of_all if of_all.count(number) == self.ranks), default=0)

    def check_start(self, newest, said):
        """Checks that an attempt resumed from the newest checkpoint."""
        found = re.search(r"resuming the interrupted run, after (\d+) calls", said)
        resumed = int(found[1]) if found else 0
        # An attempt that prints a pass has begun anew, or resumed.
        if resumed != newest and (found or "pass" in said):
            self.fail(f"it resumed after {resumed} calls, not after {newest}: {said}")
        self.soak.resumed += resumed > 0

    def check(self, wanted):
        if digest(self.out) != wanted:
            self.fail("other bytes")
        remove(self.out)
        left = set(os.listdir()) - self.soak.there
        if left:
            self.fail(f"it left {sorted(left)}")

    def go(self):
        wanted, took = self.wanted()
        for _ in range(KILLS_MAX):
            if self.attempt(self.words, self.draw.uniform(0, took)):
                return self.check(wanted)
            if self.out.exists() and digest(self.out) != wanted:
                self.fail("a result that is not whole")
            if self.is_import and self.out.exists():
                # It was killed when it removed what it had worked with: that goes with the next import here.
                self.soak.call("import tiny.el -q -o tiny")
                remove("tiny")
                return self.check(wanted)
        if not self.attempt(self.words, None):
            self.fail("it does not come to its end")
        self.check(wanted)

    def fail(self, what):
        sys.exit(f"job {self.soak.jobs} of seed {self.soak.seed}: {' '.join(map(str, self.command(self.words)))}\n{what}\n{os.getcwd()} is as it was left")


class Soak:
    def __init__(self, asked):
        self.seed, self.each, self.graphmill = asked.seed, asked.each, command()
        self.wanted, self.kills, self.jobs, self.resumed = {}, collections.Counter(), 0, 0
        only = asked.only.split(",") if asked.only else None
        named = lambda run: {run.split()[1], "-".join(run.split()[1:3])}
        self.runs = [run for run in RUNS if not only or named(run) & set(only)]
        # Kills by algorithm and ranks.
        self.killed = collections.Counter()
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GRAPHMILL_MPI": os.path.abspath("plugin.so")}
        call = self.call = lambda words: subprocess.run([self.graphmill, *words.split()], check=True, stdout=subprocess.DEVNULL)
        pathlib.Path("tiny.el").write_text("1 2\n")
        call("generate kronecker 18 6 --undirected --weights f32 --batch-size 8192 -q -o graph")
        call("generate grid 150 120 --weights f32 --batch-size 2048 -q -o grid")
        call("generate kronecker 16 10 --weights f32 -q -o numbers.wel")
        there = set()
        with open("numbers.wel") as numbers, open("names.wel", "w") as names:
            for line in numbers:
                source, destination, weight = line.split()
                there.add(source)
                names.write(f"v{source} v{destination} {weight}\n")
        sources = sorted(map(int, there))[::3]
        pathlib.Path("set.csv").write_text("vertex\n" + "".join(f"v{v}\n" for v in sources))
        pathlib.Path("vector.csv").write_text("vertex,x\n" + "".join(f"v{v},{v % 7 - 2.5}\n" for v in sources))
        pathlib.Path("priors.csv").write_text("vertex,p\n" + "".join(f"{v},{v % 11 / 10}\n" for v in range(0, 1 << 14, 3)))
        call("import names.wel --batch-size 4096 --weights f32 -q -o named")
        call("import names.wel --layout stream --batch-size 4096 --chunk-size 16K --weights f32 -q -o chunks")
        call("generate kronecker 14 8 --weights f32 --batch-size 4096 --edge-vertices -q -o beliefs")
        self.has_mpi = bool(shutil.which("mpirun") and shutil.which("mpicc"))
        if self.has_mpi:
            call("mpi build -o plugin.so")
        self.runs = [run.replace("FIRST", f"v{sources[0]}") for run in self.runs]
        self.there = set(os.listdir())

    def lacks(self):
        """Whether some algorithm wants more kills, on one rank or on four."""
        algorithms = {run.split()[1] for run in self.runs}
        return any(self.killed[name, ranks] < self.each for name in algorithms for ranks in (1, 4))

    def go(self, seconds, kills):
        end = time.monotonic() + seconds
        while time.monotonic() < end or self.kills.total() < kills or self.lacks():
            # A job is drawn by its number, so that it is the same again.
            Job(self, random.Random(f"{self.seed} {self.jobs}")).go()
            self.jobs += 1
        by_mpi = "" if self.has_mpi else "; none by mpirun: there is no Open MPI"
        kills = ", ".join(f"{count} {how}" for how, count in sorted(self.kills.items()))
        print(f"{self.jobs} jobs of seed {self.seed}, disturbed {self.kills.total()} times ({kills}), {self.resumed} resumed from a checkpoint: the same bytes{by_mpi}")
        if self.each:
            print("killed: " + ", ".join(f"{name} on {ranks}: {count}" for (name, ranks), count in sorted(self.killed.items())))


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--seconds", type=float, default=60)
    reader.add_argument("--kills", type=int, default=50)
    reader.add_argument("--each", type=int, default=0)
    reader.add_argument("--only", default="")
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    soak = Soak(asked)
    soak.go(asked.seconds, asked.kills)
    os.chdir("/")
    remove(folder)


if __name__ == "__main__":
    main()
