#!/usr/bin/env python3
"""Runs the tests of NetworkX with Graphmill as the backend, and counts those that reach it.

  python/tests/networkx_suite.py [ARGUMENTS OF PYTEST]

None may fail, and at least 1,400 tests must call functions of the backend. The tests that are expected to fail are listed in docs/guide/python.md.
Takes 11 minutes with a release build.
"""

import collections
import functools
import os
import sys
import tempfile
from typing import Any

import pytest

TESTS_MIN = 1400


class Probe:
    """Counts the tests that call functions of the backend, and their calls."""

    def __init__(self) -> None:
        self.calls: collections.Counter[str] = collections.Counter()
        self.tests: set[str] = set()

    def pytest_configure(self) -> None:
        """Counts the calls of each function from now on."""
        import graphmill.networkx as backend
        from graphmill._networkx_info import FUNCTIONS

        for name in FUNCTIONS:
            setattr(backend, name, self.counted(name, getattr(backend, name)))

    def counted(self, name: str, function: Any) -> Any:
        """The function, which counts its calls."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            self.tests.add(os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0])
            return function(*args, **kwargs)

        return call


def main() -> int:
    """Runs the tests; returns an exit code."""
    os.environ |= {"NETWORKX_TEST_BACKEND": "graphmill", "NETWORKX_FALLBACK_TO_NX": "True"}
    probe = Probe()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        code = int(pytest.main(["-q", "-p", "no:cacheprovider", "-W", "default", "--pyargs", "networkx", *sys.argv[1:]], plugins=[probe]))
    print(f"{len(probe.tests)} tests made {sum(probe.calls.values())} calls: {dict(probe.calls)}")
    if len(sys.argv) == 1 and len(probe.tests) < TESTS_MIN:
        print(f"fewer than {TESTS_MIN} tests reached the backend")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
