#!/usr/bin/env bash
# Builds the wheel, installs it alone for each Python from 3.11 on, and runs the tests of the package with the first of them.
#
#   python/tests/run.sh
#   PROFILE=release          how it is built: dev by default, which shares the builds of `cargo test`; a release also runs memory.py and networkx_suite.py
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The interpreter of a version, by its name or among those of pyenv.
python() {
    local found
    for found in "python$1" "$(pyenv root 2>/dev/null)"/versions/"$1".*/bin/python; do
        "$found" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && echo "$found" && return 0
    done
    return 1
}

versions=()
for version in 3.11 3.12 3.13; do
    if python $version >/dev/null; then versions+=("$version"); else echo "not run with Python $version: it is not installed"; fi
done
[ ${#versions[@]} -gt 0 ] || { echo "skipped: there is no Python from 3.11 to 3.13"; exit 0; }

"$(python "${versions[0]}")" -m venv "$work/tools"
"$work/tools/bin/pip" install -q "maturin>=1.16,<2" >"$work/said" 2>&1 || { echo "skipped: maturin could not be installed: $(tail -n 1 "$work/said")"; exit 0; }
"$work/tools/bin/maturin" build -q --profile "${PROFILE:-dev}" -o "$work/wheels"
wheel=$(echo "$work"/wheels/graphmill-*-cp311-abi3-*.whl)
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
if [ "${PROFILE:-dev}" = release ] && [ "$(stat -c %s "$wheel")" -gt 15000000 ]; then echo "the wheel has more than 15 MB"; exit 1; fi

examples=$PWD/examples
for version in "${versions[@]}"; do
    "$(python "$version")" -m venv "$work/$version"
    "$work/$version/bin/pip" install -q --no-index "$wheel"
    mkdir "$work/folder-$version"
    (cd "$work/folder-$version" && "$work/$version/bin/python" -c "
import graphmill as gm
graph = gm.read_edges('$examples/debian-12-packages.el.gz')
assert graph.pagerank(iterations=50).top(1)[0][0] == 'libc6'
small = gm.from_arrays([0, 1], [1, 2], [0.5, 1]).sssp(0)  # works without NumPy
assert list(small) == [(0, 0), (1, 0.5), (2, 1.5)]
try:
    small.to_numpy()
except ModuleNotFoundError:
    pass" && "$work/$version/bin/graphmill" --version >/dev/null)
    echo "Python $version ranks the packages"
done

bin=$work/${versions[0]}/bin
"$bin/pip" install -q pytest mypy numpy pandas polars pyarrow duckdb networkx scipy numba >"$work/said" 2>&1 ||
    { echo "not run with other libraries: they could not be installed: $(tail -n 1 "$work/said")"; "$bin/pip" install -q pytest; }
"$bin/graphmill" algorithms --json | "$bin/python" python/algorithms.py | diff - python/graphmill/_algorithms.py
"$bin/python" -m pytest -q -p no:cacheprovider python/tests/test_*.py python/tests/sources.py
if [ "${PROFILE:-dev}" = release ]; then "$bin/python" python/tests/memory.py; "$bin/python" python/tests/networkx_suite.py; fi
"$bin/python" -c "import mypy" 2>/dev/null || exit 0
"$bin/mypy" --cache-dir "$work/mypy" --strict python/graphmill python/tests
# Not beside the sources, which have no native module.
(cd "$work" && "$bin/stubtest" graphmill --mypy-config-file "$OLDPWD/pyproject.toml")
