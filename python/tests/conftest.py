"""Graphs that several tests use."""

from pathlib import Path

import pytest

import graphmill as gm

EDGES = "you me\nme her\nher me\nhim you\nit it\n"


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """A file of five edges between five texts."""
    path = tmp_path / "edges.txt"
    path.write_text(EDGES)
    return path


@pytest.fixture
def graph(edges: Path, tmp_path: Path) -> gm.Graph:
    """The stored graph of these edges."""
    return gm.read_edges(edges, to=tmp_path / "graph")
