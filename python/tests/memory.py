"""Edges by streams and files within a memory limit: `python/tests/memory.py`.

Each case runs in a process of its own, in a cgroup: a stream with a budget of 256 MiB in 352 MiB, and NetworkX with a budget of 1 GiB in 1.1 GiB.
Needs root, memory cgroups of version 1 or 2, pyarrow and NetworkX; prints what it skips, and why.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

STREAM = """
import numpy, pyarrow, graphmill as gm

def batches(edges=200_000_000, step=200_000):
    random = numpy.random.default_rng(1)
    for _ in range(0, edges, step):
        source, target = random.integers(0, 10_000_000, (2, step))
        yield pyarrow.record_batch({"source": source, "target": target})

print(gm.from_arrow(batches(), to="stream", memory="256M"))
"""
FILE = """
import networkx as nx

graph = nx.read_edgelist("edges.el", nodetype=int, create_using=nx.DiGraph, backend="graphmill", memory="1G")
ranks = nx.pagerank(graph, weight=None)
print(graph, len(ranks), abs(sum(rank for _, rank in ranks.items()) - 1) < 1e-9)
"""
MIB = 1 << 20


def limited(limit: int) -> Path | None:
    """A new cgroup with a memory limit; `None` if there can be none."""
    for root, file in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        group = root / f"graphmill-{os.getpid()}-{limit}"
        try:
            group.mkdir()
            (group / file).write_text(str(limit))
            return group
        except OSError:
            if group.is_dir():
                group.rmdir()
    return None


def run(name: str, program: str, limit: int, folder: str) -> bool:
    """Runs a program under a limit; false if it fails."""
    group = limited(limit)
    if group is None:
        print(f"{name}: skipped: no cgroup with a memory limit can be made")
        return True
    enter = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", enter + program], cwd=folder, capture_output=True, text=True)
    group.rmdir()
    print(f"{name} within {limit // MIB} MiB: {'PASS' if done.returncode == 0 else 'FAIL'}: {done.stdout.strip()} {done.stderr.strip()[-2000:]}")
    return done.returncode == 0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        passed = run("a stream of 200 M edges", STREAM, (256 + 96) * MIB, folder)
        command = [sys.executable, "-m", "graphmill", "generate", "kronecker", "22", "24", "-q", "-o", f"{folder}/edges.el"]
        subprocess.run(command, check=True)
        return 0 if run("PageRank of NetworkX on 100 M edges", FILE, 1126 * MIB, folder) and passed else 1


if __name__ == "__main__":
    sys.exit(main())
