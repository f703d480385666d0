"""The examples of the README and of the guide run as they are printed."""

import os
import re
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
