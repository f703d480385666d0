#!/usr/bin/env bash
# Hosts on one machine (../cluster/hosts.sh) whose datagrams get lost and come twice. `mpirun` runs algorithms over them by the bucket executor;
# the results have to be the bytes of one process.
#
#   tests/system/buckets/lossy.sh        prints what was done, seconds, and PASS or FAIL; exits with 0 or 1
#   SCALE=14 HOSTS=3 LOST=5 DOUBLED=2    LOST and DOUBLED are parts of 100
#
# Skipped, with exit code 0 and the reason, where hosts.sh or nftables need what is not there. The command is GRAPHMILL, or is built.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../../.."
scale=${SCALE:-14} hosts=${HOSTS:-3} lost=${LOST:-5} doubled=${DOUBLED:-2} disk=500000000 limit=512M

. tests/system/cluster/hosts.sh
command -v nft > /dev/null || skip "there is no nft"

cd "$work"
# What comes is dropped; what goes is doubled, to the host that it goes to.
for host in $(seq "$hosts"); do
    # shellcheck disable=SC2046
    ip netns exec "$name-$host" nft -f - << NFT || skip "nftables does not do that here"
table ip lossy {
    chain come {
        type filter hook input priority 0;
        ip protocol udp numgen random mod 100 < $lost counter name "lost" drop
    }
    chain go {
        type filter hook output priority 0;
$(for other in $(seq "$hosts"); do
    [ "$other" = "$host" ] || echo "        ip protocol udp ip daddr 10.77.0.1$other numgen random mod 100 < $doubled counter name \"doubled\" dup to 10.77.0.1$other device \"eth0\""
done)
    }
    counter lost {}
    counter doubled {}
}
NFT
done
"$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
"$GRAPHMILL" generate kronecker "$scale" 16 --weights f32 -o k.wel -q > /dev/null
"$GRAPHMILL" import k.wel -o one --undirected --weights f32 --batch-size "$((1 << (scale - 5)))" -q > /dev/null
read -r source _ < k.wel
failed=0
for asked in "pagerank --precision fixed" "wcc --method labels" "cdlp" "sssp --source $source"; do
    algorithm=${asked%% *}
    # shellcheck disable=SC2086
    "$GRAPHMILL" run $algorithm one ${asked#"$algorithm"} -o out/one.csv -q > /dev/null
    for seal in "" --plain-datagrams; do
        start=$(date +%s.%N)
        # shellcheck disable=SC2086
        job run $algorithm one ${asked#"$algorithm"} -o out/all.csv --metrics out/run.json --executor bucket --link udp \
            --datagram-address 10.77.0.1 $seal -q > /dev/null
        if cmp -s out/all.csv out/one.csv; then same=same; else same=DIFFERENT failed=1; fi
        echo "$asked $seal: $same bytes, $(python3 -c '
import json, sys, time
datagrams = json.load(open("out/run.json"))["datagrams"]
print(f"{time.time() - float(sys.argv[1]):.1f} s, {datagrams}")' "$start")"
        rm -f out/all.csv out/run.json
    done
done
for host in $(seq "$hosts"); do
    echo "host $host: $(ip netns exec "$name-$host" nft list counters | grep -E 'counter|packets' | tr -s '\n\t {' ' ')"
done
if [ "$failed" = 0 ]; then echo PASS; else echo FAIL; exit 1; fi
