#!/usr/bin/env bash
# Table 7 of Yu et al., "DFOGraph", measured: seconds of four algorithms on 1, 2, 4 and 8 hosts, each with a disk and links of limited rate
# (tests/system/cluster/hosts.sh). The disks are so slow that the cores of this machine do not decide. bench/results has figures.
#
#   bench/hosts.sh FOLDER      FOLDER keeps what the runs say
#   SCALE=20 DEGREE=16 DISK=40000000 RATE=1gbit MEMORY=32M LIMIT=160M HOSTS="1 2 4 8"
#
# Planned seconds are of `graphmill estimate` for the same hosts, and for as many passes over all edges as the run's edges amount to.
# All results have to be those of the first number of hosts, byte by byte.
set -euo pipefail
shopt -s inherit_errexit
folder=$(realpath -m "${1:?which folder?}")
cd "$(dirname "$0")/.."
scale=${SCALE:-20} degree=${DEGREE:-16} disk=${DISK:-40000000} rate=${RATE:-1gbit} memory=${MEMORY:-32M} limit=${LIMIT:-160M}
counts=${HOSTS:-1 2 4 8}
mkdir -p "$folder"
if [ -z "${GRAPHMILL:-}" ]; then
    cargo build --release --locked -p graphmill-cli
    GRAPHMILL=$(realpath "${CARGO_TARGET_DIR:-target}/release/graphmill")
fi

# Runs the four algorithms on so many hosts.
measure() {
    hosts=$1
    . tests/system/cluster/hosts.sh
    rate_links "$rate"
    cd "$work"
    "$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
    job import "$folder/edges.wel" -o data/graph "${storing[@]}" --memory 96M --threads 1 > /dev/null
    source=0
    for algorithm in "pagerank --iterations 5" bfs "wcc --method labels" sssp; do
        case $algorithm in bfs | sssp) algorithm+=" --source $source" ;; esac
        kind=${algorithm%% *}
        # shellcheck disable=SC2086
        job run $kind data/graph ${algorithm#"$kind"} -o out/all.csv --metrics out/run.json --memory "$memory" --threads 1 --tmp data \
            --place edges=stream -q > /dev/null
        mv out/run.json "$folder/$kind-$hosts.json"
        if [ ! -e "$folder/$kind.csv" ]; then
            mv out/all.csv "$folder/$kind.csv"
        elif ! cmp -s out/all.csv "$folder/$kind.csv"; then
            echo "$kind on $hosts hosts: another result" >&2
            exit 1
        fi
        # Searches begin at the vertex of the highest rank.
        source=$(awk -F , 'NR > 1 && $2 > most { most = $2; vertex = $1 } END { print vertex }' "$folder/pagerank.csv")
    done
}

storing=(--undirected --weights f32 --batch-size "$((1 << (scale - 6)))" -q)
[ -e "$folder/edges.wel" ] || "$GRAPHMILL" generate kronecker "$scale" "$degree" --weights f32 -o "$folder/edges.wel" -q > /dev/null
rm -f "$folder"/*.csv "$folder"/*.json
for count in $counts; do (measure "$count"); done
[ -e "$folder/pagerank.csv" ] || exit 0     # skipped
[ -e "$folder/graph" ] || "$GRAPHMILL" import "$folder/edges.wel" -o "$folder/graph" "${storing[@]}" > /dev/null
python3 - "$GRAPHMILL" "$folder" "$disk" "$rate" "$memory" "$counts" << 'PYTHON'
import json, pathlib, statistics, subprocess, sys

command, folder, disk, rate, memory, counts = sys.argv[1:]
folder, counts = pathlib.Path(folder), list(map(int, counts.split()))
# Seconds of Table 7 of the paper, RMAT-32.
PAPER = {"pagerank": [7700, 5320, 2290, 921], "bfs": [5249, 3051, 1520, 654], "wcc": [17055, 15246, 6789, 3611], "sssp": [28436, 19400, 10057, 4859]}
PAPER_HOSTS = [1, 2, 4, 8]
print("| algorithm | hosts | s, measured | times as fast | s, planned | times as fast | the paper's | MiB of disk a host | passes |")
print("|" + " --- |" * 9)
speeds = {count: [] for count in counts}
for algorithm, paper in PAPER.items():
    first = None
    for count in counts:
        run = json.loads((folder / f"{algorithm}-{count}.json").read_text())
        steps = [step for step in run["passes"] if step["mode"] not in ("vertices", "send")]
        measured = run["seconds"]["run"]
        passes = max(1, round(sum(step["edges"] for step in steps) / run["graph"]["arcs"]))
        words = [command, "estimate", folder / "graph", "--algorithm", algorithm, "--iterations", passes, "--ranks", count, "--threads", 1,
                 "--memory", memory, "--disk-rate", disk, "--network-rate", rate, "--place", "edges=stream", "--json"]
        planned = json.loads(subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout)["run"]["all"]["seconds"]
        first = first or (measured, planned)
        speeds[count].append(first[0] / measured)
        theirs = f"{paper[0] / paper[PAPER_HOSTS.index(count)]:.2f}" if count in PAPER_HOSTS else ""
        disk_mib = sum(step["bytes_read"] + step["bytes_written"] for step in run["passes"]) / count / 2**20
        print(f"| {algorithm} | {count} | {measured:.2f} | {first[0] / measured:.2f} | {planned:.2f} | {first[1] / planned:.2f} | {theirs} "
              f"| {disk_mib:.0f} | {len(steps)} |")
print("\nAll four, geometric mean:", ", ".join(f"{count} hosts {statistics.geometric_mean(found):.2f}" for count, found in speeds.items()))
PYTHON
