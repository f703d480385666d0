#!/usr/bin/env bash
# Four hosts on one machine (hosts.sh), whose links carry 1 and then 10 Gbit/s. `mpirun` imports a graph over them, which leaves each host with
# its part, and runs the four algorithms; graph and results have to be the bytes of one process, and parts of a result on each host its rows.
#
#   tests/system/cluster/run.sh          prints what was done, seconds, and PASS or FAIL; exits with 0 or 1
#   SCALE=16 DISK=200000000 LIMIT=256M MEMORY=96M RATES="1gbit 10gbit" HOSTS=4
#
# Skipped, with exit code 0 and the reason, where hosts.sh needs what is not there. The command is GRAPHMILL, or is built.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../../.."
scale=${SCALE:-16} disk=${DISK:-200000000} limit=${LIMIT:-256M} memory=${MEMORY:-96M} hosts=${HOSTS:-4}
rates=${RATES:-1gbit 10gbit}

. tests/system/cluster/hosts.sh

cd "$work"
"$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
"$GRAPHMILL" generate kronecker "$scale" 16 --weights f32 -o k.wel -q > /dev/null
storing=(--undirected --weights f32 --batch-size "$((1 << (scale - 5)))" -q)
"$GRAPHMILL" import k.wel -o one "${storing[@]}" > /dev/null
read -r source _ < k.wel
asked=("pagerank --iterations 5" "wcc" "mis" "cdlp" "bfs --source $source" "sssp --source $source")
for algorithm in "${asked[@]}"; do
    # shellcheck disable=SC2086
    "$GRAPHMILL" run ${algorithm%% *} one ${algorithm#"${algorithm%% *}"} -o "out/${algorithm%% *}.csv" -q > /dev/null
done

failed=0
for rate in $rates; do
    rate_links "$rate"
    start=$(date +%s.%N)
    since() { python3 -c "import sys; print(f'{float(sys.argv[2]) - float(sys.argv[1]):.1f} s')" "$1" "$(date +%s.%N)"; }
    job import k.wel -o data/graph "${storing[@]}" --memory "$memory" > /dev/null
    echo "$rate import $(since "$start")"
    for algorithm in "${asked[@]}"; do
        start=$(date +%s.%N)
        # shellcheck disable=SC2086
        job run ${algorithm%% *} data/graph ${algorithm#"${algorithm%% *}"} -o "out/all.csv" --metrics "out/run.json" \
            --memory "$memory" --tmp data -q > /dev/null
        took=$(since "$start")
        if cmp -s "out/all.csv" "out/${algorithm%% *}.csv"; then same=same; else same=DIFFERENT failed=1; fi
        echo "$rate ${algorithm%% *} $took, $same bytes, $(python3 -c '
import json
run = json.load(open("out/run.json"))
sent = sum(step["bytes_sent"] for step in run["passes"])
batches = [rank["batches"] for rank in run["per_rank"]]
print(f"{sent:,} bytes sent, batches {batches}")')"
        rm -f out/all.csv out/run.json
    done
    # A result as a folder: each host has the part of its rank, one after the other they are the one file.
    job run wcc data/graph -o data/parts.csv/ --memory "$memory" --tmp data -q > /dev/null
    head -n 1 out/wcc.csv > out/all.csv
    for host in $(seq "$hosts"); do
        "$work/rsh" "$name-$host" "tail -q -n +2 data/parts.csv/*; rm -rf data/parts.csv" >> out/all.csv
    done
    if cmp -s out/all.csv out/wcc.csv; then same=same; else same=DIFFERENT failed=1; fi
    echo "$rate parts of wcc: $same rows"
    rm -f out/all.csv
    # Each host has its part of the columns, together they have all.
    count=0
    for host in $(seq "$hosts"); do
        here=$("$work/rsh" "$name-$host" "ls data/graph/columns | grep -c '\\.data' || true")
        echo "$rate host $host has $here column files"
        count=$((count + here))
        "$work/rsh" "$name-$host" "rm -rf data/graph"
    done
    [ "$count" = "$(find one/columns -name '*.data' | wc -l)" ] || { echo "DIFFERENT: $count column files"; failed=1; }
done
if [ "$failed" = 0 ]; then echo PASS; else echo FAIL; exit 1; fi
