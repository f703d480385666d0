"""The examples of the README and of the guide run as they are printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


@pytest.mark.parametrize("page", ["README.md", "docs/guide/python.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("networkx")
    pytest.importorskip("numba")
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "examples", "examples")
    os.mkdir("pairs")
    pairs = {"unique_id_l": ["a", "b"], "unique_id_r": ["b", "c"]}
    polars.DataFrame(pairs).write_parquet("pairs/1.parquet")
    users = polars.DataFrame({"id": ["a", "b"], "name": ["Ann", "Ben"]})
    names = {"polars": polars, "pyarrow": pyarrow, "duckdb": duckdb, "users": users}
    found = blocks(page)
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)  # each goes on where the one before has ended


NAMES = """
import duckdb
import networkx
import polars
import pyarrow
users = polars.DataFrame({"id": ["a"]})
"""


@pytest.mark.parametrize("page", ["README.md", "docs/guide/python.md"])
def test_examples_have_the_right_types(page: str, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for name in ("polars", "pyarrow", "duckdb", "networkx"):
        pytest.importorskip(name)
    file = tmp_path / "examples.py"
    file.write_text(NAMES + "\n".join(blocks(page)))
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "mypy")]
    checked = subprocess.run([sys.executable, "-m", "mypy", *options, str(file)], cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
