#!/usr/bin/env bash
# Ranks under mpirun whose buckets travel by DPDK: four processes of one host over shared memory (memif), then hosts of namespaces
# (../cluster/hosts.sh) over their network devices (af_packet). The results have to be the bytes of one process over columns.
#
#   tests/system/buckets/dpdk.sh        prints what was done, seconds, and PASS or FAIL; exits with 0 or 1
#   SCALE=14 HOSTS=4
#
# Skipped, with exit code 0 and the reason, where DPDK or what hosts.sh needs is not there. The command is GRAPHMILL, or is built.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../../.."
scale=${SCALE:-14} hosts=${HOSTS:-4} disk=500000000 limit=768M

if ! pkg-config --exists libdpdk 2> /dev/null; then
    echo "skipped: there is no DPDK (libdpdk-dev, dpdk)"
    exit 0
fi
. tests/system/cluster/hosts.sh

cd "$work"
"$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
"$GRAPHMILL" dpdk build -o "$work/dpdk.so" > /dev/null
export GRAPHMILL_DPDK=$work/dpdk.so
"$GRAPHMILL" generate kronecker "$scale" 16 --weights f32 -o k.wel -q > /dev/null
"$GRAPHMILL" import k.wel -o one --undirected --weights f32 --batch-size "$((1 << (scale - 5)))" -q > /dev/null
read -r source _ < k.wel
failed=0
here() { GRAPHMILL_MPI=$work/plugin.so mpirun --allow-run-as-root --oversubscribe -n "$hosts" -x GRAPHMILL_MPI -x GRAPHMILL_DPDK "$GRAPHMILL" "$@" --threads 2; }
for asked in "pagerank --precision fixed" "wcc --method labels" "cdlp" "sssp --source $source"; do
    algorithm=${asked%% *}
    # shellcheck disable=SC2086
    "$GRAPHMILL" run $algorithm one ${asked#"$algorithm"} -o out/one.csv -q > /dev/null
    for way in "here memif" "job net_af_packet0,iface=eth0"; do
        start=$(date +%s.%N)
        # shellcheck disable=SC2086
        ${way% *} run $algorithm one ${asked#"$algorithm"} -o out/all.csv --metrics out/run.json --executor bucket --link dpdk \
            --dpdk-device "${way#* }" --memory 512M -q > /dev/null
        if cmp -s out/all.csv out/one.csv; then same=same; else same=DIFFERENT failed=1; fi
        echo "$asked, ${way#* }: $same bytes, $(python3 -c '
import json, sys, time
datagrams = json.load(open("out/run.json"))["datagrams"]
print(f"{time.time() - float(sys.argv[1]):.1f} s, {datagrams}")' "$start")"
        rm -f out/all.csv out/run.json
    done
done
if [ "$failed" = 0 ]; then echo PASS; else echo FAIL; exit 1; fi
