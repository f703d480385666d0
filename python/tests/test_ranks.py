"""The same script on the ranks of an MPI job: `mpirun python job.py`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import graphmill as gm

JOB = """
import json, sys
import graphmill as gm

folder = sys.argv[1]
graph = gm.read_edges(f"{folder}/edges.txt", to=f"{folder}/graph-{gm.ranks()}", progress=False)
ranks = graph.pagerank(iterations=10)
said = {"top": ranks.top(2), "you": ranks["you"], "rows": list(ranks), "written": ranks.write(f"{folder}/ranks-{gm.ranks()}.csv")}
said["personal"] = list(graph.pagerank(personalization={"you": 1, "me": 3}, iterations=10))
streamed = gm.from_arrays([1, 2, 3], [2, 3, 3])
said["small"] = dict(streamed.bfs(1))
temporary = gm.read_edges(f"{folder}/edges.txt", directed=False)
said["components"] = dict(temporary.wcc())
with open(f"{folder}/said-{gm.ranks()}-{gm.rank()}.json", "w") as file:
    json.dump(said, file)
"""

FAILING = """
import sys
import graphmill as gm

graph = gm.read_edges(f"{sys.argv[1]}/edges.txt", to=f"{sys.argv[1]}/graph")
if gm.rank() == 1:
    raise KeyError("of rank 1")
graph.pagerank()
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin for MPI, compiled here."""
    if shutil.which("mpirun") is None or shutil.which("mpicc") is None:
        pytest.skip("there is no Open MPI")
    path = tmp_path_factory.mktemp("plugin") / "plugin.so"
    subprocess.run([sys.executable, "-m", "graphmill", "mpi", "build", "-o", str(path)], check=True, capture_output=True)
    return path


def mpirun(plugin: Path, ranks: int, script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs a script on some ranks."""
    (folder / "job.py").write_text(script)
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    environment = {**os.environ, "GRAPHMILL_MPI": str(plugin), "OMPI_MCA_mpi_yield_when_idle": "1"}
    words += [sys.executable, str(folder / "job.py"), str(folder)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def test_ranks_say_what_one_process_says(plugin: Path, edges: Path, tmp_path: Path) -> None:
    alone = subprocess.run([sys.executable, "-c", JOB, str(tmp_path)], capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    done = mpirun(plugin, 3, JOB, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = json.loads((tmp_path / "said-1-0.json").read_text())
    for rank in range(3):
        assert json.loads((tmp_path / f"said-3-{rank}.json").read_text()) == expected
    assert (tmp_path / "ranks-3.csv").read_bytes() == (tmp_path / "ranks-1.csv").read_bytes()


def test_an_error_of_one_rank_ends_all(plugin: Path, edges: Path, tmp_path: Path) -> None:
    done = mpirun(plugin, 3, FAILING, tmp_path)
    assert done.returncode != 0
    assert "of rank 1" in done.stderr and "RankError" in done.stderr


def test_outside_a_job_there_is_one_rank() -> None:
    assert (gm.rank(), gm.ranks()) == (0, 1)
