"""What bench/chaos.py measures on this machine: Table 1, bytes of a pass, chunks of each rank, and the figures that one machine can show.

Graphs are directed and unweighted. The bench drops the inputs of each command from the page cache, so all systems read from disk. Bytes are what a
command reads from the disk and writes to it, with its results and temporary files. All systems compute PageRank in single precision. Threads of X-Stream
and Chaos spin while they wait, so their processor seconds grow with the load of the machine.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from cluster import over_edges, table
from limits import limited, throttled

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
ITERATIONS = 5
DEGREE = 16
# The cheapest format of a result, the same for both layouts. X-Stream and Chaos write none.
RESULT = "result.parquet"
# The rows of Table 1 that are ours: a name, a layout, and options of the run.
OURS = [
    ("chunks, --updates auto", "stream", ["--updates", "auto"]),
    ("chunks, --updates disk", "stream", ["--updates", "disk"]),
    ("columns", "column", []),
]


class Usage:
    """What commands took: seconds, processor seconds, bytes read and written; and the largest resident set of one."""

    def __init__(self, seconds, cpu, read, written, peak):
        self.seconds, self.cpu, self.read, self.written, self.peak = seconds, cpu, read, written, peak

    def __add__(self, other):
        return Usage(self.seconds + other.seconds, self.cpu + other.cpu, self.read + other.read, self.written + other.written,
                     max(self.peak, other.peak))


def medians(usages):
    fields = ("seconds", "cpu", "read", "written", "peak")
    return Usage(*(statistics.median(getattr(usage, field) for usage in usages) for field in fields))


def spent(words, **options):
    """Runs a command; returns what it took and what it printed."""
    words = [str(word) for word in words]
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        child = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, **options)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read().decode(errors="replace")
    if child.returncode:
        sys.exit(f"{' '.join(words)}: exit code {child.returncode}: {printed[-2000:]}")
    return Usage(seconds, used.ru_utime + used.ru_stime, used.ru_inblock * 512, used.ru_oublock * 512, used.ru_maxrss * 1024), printed


def chill(*paths):
    """Writes all changed pages to the disk, and drops files from the page cache."""
    os.sync()
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Runs:
    """Graphs of a folder, and commands of ours over them."""

    def __init__(self, asked, scale):
        self.asked, self.scale, self.vertices = asked, asked.scale or scale, 1 << (asked.scale or scale)
        self.folder = pathlib.Path(asked.folder).resolve()
        self.memory = ["--memory", asked.memory]

    def kronecker(self, *options):
        """A Kronecker graph as pairs of two u32."""
        pairs = self.folder / f"{'-'.join(['k', str(self.scale), *(word.strip('-') for word in options)])}.u32"
        if not pairs.exists():
            spent([self.asked.graphmill, "generate", "kronecker", self.scale, DEGREE, *options, "-q", "-o", pairs])
        return pairs

    def imported(self, pairs, layout, *options, before=()):
        """Stores pairs as a graph with the name of the layout; returns what that took."""
        graph = self.folder / layout
        shutil.rmtree(graph, ignore_errors=True)
        chill(pairs)
        words = ["import", pairs, "-o", graph, "--layout", layout, "--vertices-below", self.vertices]
        return spent([*before, self.asked.graphmill, *words, "-q", "--threads", self.asked.threads, *self.memory, *options])[0]

    def run(self, algorithm, layout, *options, before=(), threads=None):
        """Runs an algorithm; returns what that took, and its metrics."""
        graph, metrics = self.folder / layout, self.folder / "metrics.json"
        (self.folder / RESULT).unlink(missing_ok=True)
        chill(graph)
        own = ["--source", source(self.kronecker())] if algorithm == "bfs" else ["--iterations", ITERATIONS, "--precision", "f32"]
        words = ["run", algorithm, graph, "--executor", layout, *own, "--threads", threads or self.asked.threads, *self.memory, *options]
        used, _ = spent([*before, self.asked.graphmill, *words, "-q", "-o", self.folder / RESULT, "--metrics", metrics])
        return used, json.loads(metrics.read_text())


def source(pairs):
    """The vertex that the first edge leaves: one of many edges, most likely."""
    with pairs.open("rb") as file:
        return struct.unpack("<I", file.read(4))[0]


class Peer:
    """X-Stream or Chaos. Raw pairs are the format of both; a description goes beside them."""

    def __init__(self, name, driver, runs):
        self.name, self.driver, self.runs, self.folder = name, driver.resolve(), runs, runs.folder / name

    def run(self, algorithm, before):
        """Runs an algorithm; returns what that took, and the vertices that a search discovered."""
        runs, pairs = self.runs, self.runs.kronecker()
        size = pairs.stat().st_size
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        os.link(pairs, self.folder / "g")
        # Type 2 has no weights; ids are of four bytes, as both makefiles say.
        (self.folder / "g.ini").write_text(f"[graph]\ntype=2\nname=g\nvertices={runs.vertices}\nedges={size // 8}\n")
        (self.folder / "slipstore.ini").write_text("[machines]\ncount=1\nme=0\nname0=127.0.0.1\niface0=lo\n")
        own = {"pagerank": ["--pagerank::niters", ITERATIONS], "bfs": ["--bfs::root", source(pairs)]}[algorithm]
        words = [self.driver, "-g", "g", "-b", algorithm, *own, "-a", "-p", runs.asked.threads, "--physical_memory", bytes_of(runs.asked.memory)]
        chill(pairs)
        used, printed = spent([*before, *words], cwd=self.folder)
        assert pairs.stat().st_size == size
        (runs.folder / f"{self.name}-{algorithm}.log").write_text(printed)
        shutil.rmtree(self.folder)
        discovered = re.search(r"VERTICES_DISCOVERED (\d+)", printed)
        return used, discovered and int(discovered[1])


def bytes_of(size):
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]


def table1(bench):
    """Raw pairs to ranks, and to depths: binning or sorting included, in turn with X-Stream and Chaos."""
    runs = Runs(bench.asked, 24)
    pairs = runs.kronecker()
    peers = [Peer(name, driver, runs) for name, driver in (("X-Stream", bench.asked.xstream), ("Chaos", bench.asked.chaos)) if driver]
    imports, found, costs = {"stream": [], "column": []}, {}, {"stream": [], "column": []}
    for number in range(bench.asked.rounds):
        with limited(bytes_of(bench.asked.limit)) as before:
            for layout, rounds in imports.items():
                rounds.append(runs.imported(pairs, layout, before=before))
            for algorithm in ("pagerank", "bfs"):
                for name, layout, options in OURS:
                    used, metrics = runs.run(algorithm, layout, *options, before=before)
                    found.setdefault((algorithm, name), []).append((imports[layout][-1] + used, used))
                    if algorithm == "pagerank" and "disk" not in options:
                        costs[layout].append(cost(imports[layout][-1], used, over_edges(metrics)))
                for peer in peers:
                    used, discovered = peer.run(algorithm, before)
                    found.setdefault((algorithm, peer.name), []).append((used, used))
                    # They do not count the source.
                    if discovered and discovered + 1 != metrics["summary"].get("reached"):
                        sys.exit(f"{algorithm}: {peer.name} discovers {discovered:,} vertices, ours {metrics['summary']}")
        print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print(f"Kronecker scale {runs.scale}, {pairs.stat().st_size // 8:,} edges, {bench.asked.memory} each, {bench.asked.limit} with the page cache, "
          f"{bench.asked.threads} threads; medians of {bench.asked.rounds} rounds, load {os.getloadavg()[0]:.1f}. Ours with the import, and with a result "
          f"in Parquet, which the others do not write\n")
    rows = []
    for (algorithm, name), rounds in found.items():
        first = found[algorithm, OURS[0][0]]
        whole = medians([whole for whole, _ in rounds])
        times = lambda field: statistics.median(getattr(whole, field) / getattr(ours, field) for (whole, _), (ours, _) in zip(rounds, first))
        rows.append([algorithm, name, f"{whole.seconds:.2f}", f"{whole.cpu:.2f}", f"{times('seconds'):.2f}", f"{times('cpu'):.2f}",
                     f"{medians([run for _, run in rounds]).seconds:.2f}", *(f"{number / MIB:,.0f}" for number in (whole.read, whole.written, whole.peak))])
    table(["algorithm", "system", "s", "CPU s", "times the first: s", "CPU s", "s without import", "MiB read", "written", "resident"], rows)
    table(["import", "s", "CPU s", "MiB read", "written"], [
        [layout, f"{of.seconds:.2f}", f"{of.cpu:.2f}", f"{of.read / MIB:,.0f}", f"{of.written / MIB:,.0f}"]
        for layout, of in ((layout, medians(rounds)) for layout, rounds in imports.items())])
    for missing in {"X-Stream", "Chaos"} - {peer.name for peer in peers}:
        print(f"No row of {missing}: --{missing.lower().replace('-', '')} was not given")
    for at, unit in enumerate(("s", "CPU s")):
        print(f"pagerank, {unit}: {crossing({layout: [of[at] for of in rounds] for layout, rounds in costs.items()})}")


def cost(imported, used, steps):
    """Seconds without passes over edges, and of such a pass; and the same in processor seconds, by the pass's share of the time."""
    share = sum(step["seconds"] for step in steps) / used.seconds
    split = lambda of_import, of_run: (of_import + of_run * (1 - share), of_run * share / len(steps))
    return split(imported.seconds, used.seconds), split(imported.cpu, used.cpu)


def crossing(rounds):
    """Returns from which pass on columns take less."""
    fixed, a_pass = ({layout: statistics.median(of[at] for of in costs) for layout, costs in rounds.items()} for at in (0, 1))
    saved, ahead = a_pass["stream"] - a_pass["column"], fixed["column"] - fixed["stream"]
    said = ", ".join(f"{layout} {fixed[layout]:.2f} + {a_pass[layout]:.3f} a pass" for layout in rounds)
    return f"{said}: " + (f"columns take less from pass {max(1, int(ahead / saved) + 1)} on" if saved > 0 else "columns never take less")


def pass_bytes(bench):
    """Bytes an edge of each pass of pagerank."""
    runs = Runs(bench.asked, 24)
    runs.imported(runs.kronecker(), "stream")
    rows = []
    for updates in ("auto", "disk"):
        _, metrics = runs.run("pagerank", "stream", "--updates", updates, "--place", "edges=stream")
        arcs, steps = metrics["graph"]["arcs"], over_edges(metrics)
        each = lambda field: f"{max(step[field] for step in steps) / arcs:.2f}"
        in_all = sum(step["bytes_read"] for step in steps) / arcs / len(steps)
        rows.append([updates, len(steps), f"{in_all:.2f}", each("bytes_read"), each("bytes_written"),
                     {"auto": "5.3, 0", "disk": "14.3, 9"}[updates]])
    print(f"Kronecker scale {runs.scale}, {bench.asked.memory}, pagerank of {ITERATIONS} iterations\n")
    table(["--updates", "passes", "bytes read an edge and pass", "most of a pass", "written, most", "at most: read, written"], rows)


def balance(bench):
    """Chunks of each rank, where all edges leave one batch, and where the first batches have most: real runs on simulated ranks."""
    answer = subprocess.run([bench.asked.sim, "balance", "--json"], check=True, text=True, stdout=subprocess.PIPE).stdout
    (bench.folder / "balance.json").write_text(answer)
    rows = [[graph["graph"], graph["seed"], run["steal"], " ".join(map(str, run["chunks"])), f"{run['busiest_over_mean']:.2f}"]
            for graph in json.loads(answer)["graphs"] for run in graph["runs"]]
    print("At most 1.15 with --steal 1\n")
    table(["graph", "seed", "--steal", "chunks of each rank", "of the busiest, over the mean"], rows)


def slowed(bench, runs, part=1):
    """A disk of the rate that was asked for, or of a part of it."""
    return throttled(runs.folder, int(bench.asked.disk_rate * part))


def alternately(bench, *ways):
    """Medians of what each way returns, in turn."""
    rounds = [[way() for way in ways] for _ in range(bench.asked.rounds)]
    return [statistics.median(values) for values in zip(*rounds)]


def ready(bench):
    """Chunks of a graph for a figure."""
    runs = Runs(bench.asked, 20)
    runs.imported(runs.kronecker(), "stream")
    return runs


def seconds_of(runs, algorithm, *options, **more):
    return runs.run(algorithm, "stream", *options, **more)[1]["seconds"]["run"]


def fig9(bench, figure):
    """Threads: half of them, over all, on the disk as it is and on a slower one."""
    runs = ready(bench)
    rows = []
    for disk, slower in ((f"a disk of {bench.asked.disk_rate / 1e6:.0f} MB/s", slowed), ("the disk as it is", lambda *_: contextlib.nullcontext(()))):
        with slower(bench, runs) as before:
            options = ["--updates", "disk", "--place", "edges=stream"]
            half, whole = alternately(bench, *(lambda threads=threads: seconds_of(runs, "pagerank", *options, threads=threads, before=before)
                                               for threads in (1, 2)))
        model = figure.value("ours PR p=8", "32") / figure.value("ours PR p=16", "32")
        rows.append([f"PR with half of the threads, over all; {disk}", "adequate (8 of 16, 32 machines)", model, half / whole])
    return rows


def fig10(bench, figure):
    """Disks: half of the rate, over all."""
    runs = ready(bench)

    def seconds(algorithm, part):
        with slowed(bench, runs, part) as before:
            return seconds_of(runs, algorithm, "--updates", "disk", "--place", "edges=stream", before=before)

    rows = []
    for name, algorithm in (("BFS", "bfs"), ("PR", "pagerank")):
        half, whole = alternately(bench, lambda: seconds(algorithm, 0.5), lambda: seconds(algorithm, 1))
        rows.append([f"{name} on a disk of half the rate ({bench.asked.disk_rate / 1e6:.0f} MB/s), over all", "2 (inverse to bandwidth)",
                     figure.value(f"ours {name} HDD", "1") / figure.value(f"ours {name} SSD", "1"), half / whole])
    return rows


NETWORK = """
set -euo pipefail
. tests/system/cluster/hosts.sh
cd "$work"
"$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
job import "$pairs" -o data/graph --layout stream --vertices-below "$vertices" --memory 128M --threads 1 -q > /dev/null
for round in $(seq "$rounds"); do
    for rate in "$link" none; do
        for host in $(seq "$hosts"); do
            tc qdisc del dev "$name-$host" root 2> /dev/null || true
            ip netns exec "$name-$host" tc qdisc del dev eth0 root 2> /dev/null || true
        done
        [ "$rate" = none ] || rate_links "$rate"
        for algorithm in "bfs --source $source" "pagerank --iterations 5 --precision f32"; do
            # shellcheck disable=SC2086
            job run ${algorithm%% *} data/graph ${algorithm#"${algorithm%% *}"} --updates disk --place edges=stream -o out/all.parquet \\
                --metrics out/run.json --memory 128M --threads 1 --tmp data -q > /dev/null
            echo "${algorithm%% *} $rate $(python3 -c 'import json; print(json.load(open("out/run.json"))["seconds"]["run"])')"
        done
    done
done
"""


def fig11(bench, figure):
    """Links of 1 Gbit/s over links that do not bind. Disks and links are slower than the paper's, so that the cores of this machine do not bind."""
    runs = Runs(bench.asked, 20)
    pairs = runs.kronecker()
    hosts = 4
    disk = bench.asked.disk_rate / hosts
    # The paper's disks have 400 MB/s beside links of 1 Gbit/s.
    megabits = round(1000 * disk / 400e6)
    link = f"{megabits}mbit"
    of_script = {"hosts": hosts, "disk": int(disk), "link": link, "limit": "256M", "pairs": pairs, "vertices": runs.vertices, "source": source(pairs),
                 "rounds": bench.asked.rounds, "GRAPHMILL": bench.asked.graphmill}
    environment = {**os.environ, **{name: str(value) for name, value in of_script.items()}}
    _, printed = spent(["bash", "-c", NETWORK], cwd=ROOT, env=environment)
    if "skipped:" in printed:
        return printed[printed.index("skipped:"):].strip()
    found = {}
    for words in (line.split() for line in printed.splitlines() if line.startswith(("bfs ", "pagerank "))):
        found.setdefault((words[0], words[1]), []).append(float(words[2]))
    slower = {name: statistics.median(found[name, link]) / statistics.median(found[name, "none"]) for name in ("bfs", "pagerank")}
    return [[f"{name} on {hosts} hosts with disks of {disk / 1e6:.0f} MB/s: links of {megabits} Mbit/s, over links without a limit", "does not scale",
             figure.value(f"ours {name} 1GigE", "4") / figure.value(f"ours {name} 40GigE", "4"), slower[algorithm]]
            for name, algorithm in (("BFS", "bfs"), ("PR", "pagerank"))]


def fig12(bench, figure):
    """Checkpoints after each pass, over none."""
    runs = ready(bench)
    named = ["--checkpoint-dir", runs.folder / "checkpoints", "--checkpoint-every", 1]
    rows = []
    for name, algorithm in (("BFS", "bfs"), ("PR", "pagerank")):
        with slowed(bench, runs) as before:
            checked, plain = alternately(bench, *(
                lambda options=options: seconds_of(runs, algorithm, "--updates", "disk", "--place", "edges=stream", *options, before=before)
                for options in (named, ["--checkpoints", 0])))
        rows.append([f"{name} with checkpoints, a disk of {bench.asked.disk_rate / 1e6:.0f} MB/s", "under 1.06",
                     figure.value(f"ours {name}", "with checkpoints"), checked / plain])
    return rows


def fig13(bench, figure):
    """Bytes a second of passes, over what fio moves."""
    if not shutil.which("fio"):
        return "skipped: there is no fio"
    runs = ready(bench)

    def moved(before):
        """Bytes read and written a pass, and its seconds."""
        steps = over_edges(runs.run("pagerank", "stream", "--updates", "disk", "--place", "edges=stream", before=before)[1])
        return [statistics.mean(step[field] for step in steps) for field in ("bytes_read", "bytes_written", "seconds")]

    def limited_share():
        # A limit each way: scatter reads edges and writes updates, then gather reads the updates.
        with slowed(bench, runs) as before:
            read, updates, seconds = moved(before)
            in_rate, out_rate = (fio_rate(runs.folder, f"--rw={way}", before) for way in ("read", "write"))
        return (max((read - updates) / in_rate, updates / out_rate) + updates / in_rate) / seconds

    def share():
        read, written, seconds = moved(())
        mix = round(100 * read / (read + written))
        return (read + written) / seconds / fio_rate(runs.folder, f"--rw=rw --rwmixread={mix}", ())

    rows = []
    for disk, measured in ((f"a disk of {bench.asked.disk_rate / 1e6:.0f} MB/s each way", limited_share), ("the disk as it is", share)):
        rows.append([f"PR, share of the rate of {disk}", "0.97", figure.value("ours PR", "1"), *alternately(bench, measured)])
    return rows


def fio_rate(folder, options, before):
    """Bytes a second that fio reads and writes by pieces of 4 MiB past the page cache."""
    words = ["fio", "--name=rate", f"--filename={folder / 'fio'}", *options.split(), "--bs=4M", "--size=1G", "--direct=1", "--ioengine=libaio",
             "--iodepth=16", "--time_based", "--runtime=5", "--output-format=json"]
    _, printed = spent([*before, *words])
    (folder / "fio").unlink()
    job = json.loads(printed[printed.index("{"):])["jobs"][0]
    return sum(job[way]["bw_bytes"] for way in ("read", "write"))


WHOLE = {"table1": (table1, "this machine"), "bytes": (pass_bytes, "this machine"), "balance": (balance, "simulated ranks")}
FIGURES = {"fig9": fig9, "fig10": fig10, "fig11": fig11, "fig12": fig12, "fig13": fig13}
