#!/usr/bin/env bash
# Figures of bench/results/2026-11-22-performance.md: import and the four algorithms on a Kronecker graph, under a memory budget.
#
#   bench/measure.sh FOLDER [SCALE] [MEMORY] [RUNS]      default: scale 22, 512M, 3 runs
#
# FOLDER is on the disk to be measured and keeps the generated files. Needs bash, python3 and /usr/bin/time.
# Timings drift on shared machines: quote medians, and compare two programs only when they ran in turn.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?which folder on the disk to measure?} scale=${2:-22} memory=${3:-512M} runs=${4:-3}
mkdir -p "$folder"
cargo build --release --locked
graphmill=${CARGO_TARGET_DIR:-target}/release/graphmill
pairs=$folder/kron$scale.u32 graph=$folder/kron$scale.graph

[ -e "$pairs" ] || "$graphmill" generate kronecker "$scale" -o "$pairs" --quiet
for run in $(seq "$runs"); do
    rm -rf "$graph"
    echo "import, run $run: $("$graphmill" import "$pairs" -o "$graph" --undirected --memory "$memory" 2>&1 | tail -n 1)"
done
"$graphmill" info "$graph"
source=$("$graphmill" run pagerank "$graph" --iterations 1 --top 1 --quiet | awk 'NR == 2 { print $1 }')

# Seconds of the passes over edges, bytes read and the rate, out of the metrics of one run.
cat > "$folder/passes.py" <<'EOF'
import json, statistics, sys
run = json.load(open(sys.argv[1]))
passes = [p for p in run["passes"] if p["mode"] != "vertices"]
seconds = [p["seconds"] for p in passes]
# The first pass also fills the pinned cells.
later = seconds[1:] or seconds
print(f"{len(passes)} passes, {sum(seconds):.2f} s, median {statistics.median(later):.4f} s a pass after the first, "
      f"{sum(p['edges'] for p in passes) / sum(seconds) / 1e6:.0f} M edges/s, "
      f"{sum(p['bytes_read'] for p in passes) / 1e6:.0f} MB read, "
      f"{run['peak_memory'] / 2**20:.0f} MiB of memory at most")
EOF
for run in $(seq "$runs"); do
    for job in "pagerank --iterations 10 --precision f32" "bfs --source $source" "wcc" "sssp --source $source --precision f32"; do
        for budget in "$memory" 8G; do
            # shellcheck disable=SC2086
            "$graphmill" run ${job%% *} "$graph" $(cut -s -d ' ' -f 2- <<< "$job ") --memory "$budget" \
                --metrics "$folder/run.json" --quiet > /dev/null
            echo "${job%% *}, $budget, run $run: $(python3 "$folder/passes.py" "$folder/run.json")"
        done
    done
done
