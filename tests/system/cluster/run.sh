#!/usr/bin/env bash
# Four hosts on one machine: network namespaces on a bridge that carries 1 and then 10 Gbit/s to and from each, every host with a disk of
# its own that reads and writes so many bytes a second, and a memory limit. `mpirun` imports a graph over them, which leaves each host with
# its part, and runs the four algorithms; graph and results have to be the bytes of one process, and parts of a result on each host its rows.
#
#   tests/system/cluster/run.sh          prints what was done, seconds, and PASS or FAIL; exits with 0 or 1
#   SCALE=16 DISK=200000000 LIMIT=256M MEMORY=96M RATES="1gbit 10gbit" HOSTS=4
#
# Needs root, network namespaces, loop devices and Open MPI; skipped, with exit code 0 and the reason, where there are none. The command
# is GRAPHMILL, or is built.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../../.."
scale=${SCALE:-16} disk=${DISK:-200000000} limit=${LIMIT:-256M} memory=${MEMORY:-96M} hosts=${HOSTS:-4}
rates=${RATES:-1gbit 10gbit}

skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "not root"
for tool in ip tc losetup mkfs.ext4 unshare mpirun mpicc; do
    command -v "$tool" > /dev/null || skip "there is no $tool"
done
name=gm$$
ip netns add "$name-0" 2> /dev/null || skip "no network namespaces here"
ip netns del "$name-0"

if [ -z "${GRAPHMILL:-}" ]; then
    cargo build --locked -p graphmill-cli
    GRAPHMILL=$(realpath "${CARGO_TARGET_DIR:-target}/debug/graphmill")
fi

work=$(mktemp -d)
groups=/sys/fs/cgroup
loops=()
clean() {
    for host in $(seq "$hosts"); do
        ip netns del "$name-$host" 2> /dev/null || true
        rmdir "$groups"/{memory,blkio}/"$name-$host" 2> /dev/null || true
    done
    ip link del "$name" 2> /dev/null || true
    for loop in "${loops[@]}"; do losetup -d "$loop" 2> /dev/null || true; done
    rm -rf "$work"
}
trap clean EXIT

mkdir "$work"/{data,out}
ip link add "$name" type bridge
ip addr add 10.77.0.1/24 dev "$name"
ip link set "$name" up
list=
for host in $(seq "$hosts"); do
    ip netns add "$name-$host"
    ip link add "$name-$host" type veth peer name eth0 netns "$name-$host"
    ip link set "$name-$host" master "$name" up
    ip -n "$name-$host" addr add "10.77.0.1$host/24" dev eth0
    ip -n "$name-$host" link set eth0 up
    ip -n "$name-$host" link set lo up
    truncate -s 2G "$work/disk-$host"
    mkfs.ext4 -q "$work/disk-$host"
    loop=$(losetup --direct-io=on --show -f "$work/disk-$host")
    loops+=("$loop")
    echo "$loop" > "$work/loop-$host"
    if mkdir "$groups/memory/$name-$host" 2> /dev/null; then
        echo "$limit" > "$groups/memory/$name-$host/memory.limit_in_bytes"
    else
        echo "memory is not limited: no cgroups of version 1"
    fi
    if mkdir "$groups/blkio/$name-$host" 2> /dev/null; then
        for way in read write; do
            echo "$((16#$(stat -c %t "$loop"))):$((16#$(stat -c %T "$loop"))) $disk" \
                > "$groups/blkio/$name-$host/blkio.throttle.${way}_bps_device"
        done
    fi
    list+="${list:+,}$name-$host"
done

# What starts a process on a host, as ssh would.
cat > "$work/rsh" << SH
#!/bin/sh
host=\$1
shift
number=\${host#$name-}
for kind in memory blkio; do
    [ -d $groups/\$kind/\$host ] && echo \$\$ > $groups/\$kind/\$host/cgroup.procs
done
exec ip netns exec "\$host" unshare --uts --mount sh -c "
    hostname \$host
    mount \$(cat $work/loop-\$number) $work/data
    cd $work
    \$*"
SH
chmod +x "$work/rsh"

job() {
    mpirun --allow-run-as-root --bind-to none --map-by slot --host "$list" \
        --mca plm_rsh_agent "$work/rsh" --mca pml ob1 --mca btl tcp,self --mca mpi_yield_when_idle 1 \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
        -x GRAPHMILL_MPI="$work/plugin.so" --wdir "$work" -n "$hosts" "$GRAPHMILL" "$@"
}

cd "$work"
"$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
"$GRAPHMILL" generate kronecker "$scale" 16 --weights f32 -o k.wel -q > /dev/null
storing=(--undirected --weights f32 --batch-size "$((1 << (scale - 5)))" -q)
"$GRAPHMILL" import k.wel -o one "${storing[@]}" > /dev/null
read -r source _ < k.wel
asked=("pagerank --iterations 5" "wcc" "bfs --source $source" "sssp --source $source")
for algorithm in "${asked[@]}"; do
    # shellcheck disable=SC2086
    "$GRAPHMILL" run ${algorithm%% *} one ${algorithm#"${algorithm%% *}"} -o "out/${algorithm%% *}.csv" -q > /dev/null
done

failed=0
for rate in $rates; do
    for host in $(seq "$hosts"); do
        burst=256k queue=2m
        [ "$rate" = 10gbit ] && burst=2560k queue=20m
        tc qdisc replace dev "$name-$host" root tbf rate "$rate" burst "$burst" limit "$queue"
        ip netns exec "$name-$host" tc qdisc replace dev eth0 root tbf rate "$rate" burst "$burst" limit "$queue"
    done
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
