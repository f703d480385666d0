#!/bin/busybox sh
# The first process of the guest: makes the devices, runs graphmill on each tier of memory, says what came of it, and powers off.
# Lines for the one who started it begin with "guest: ".
/bin/busybox --install -s /bin
export PATH=/opt:/bin
say() { printf '\nguest: %s\n' "$*"; }
failed=0
fail() { say "FAILED: $*"; failed=1; }

mkdir -p /proc /sys /dev /tmp /pmem
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for module in libnvdimm nd_btt nd_pmem nd_e820 device_dax dax_pmem; do
    insmod /modules/$module.ko || fail "module $module"
done
sleep 1

# The first region is a disk for ext4. The second becomes a device, as `ndctl create-namespace --mode devdax` would make it.
devices=/sys/bus/nd/devices
seed=$(cat $devices/region1/dax_seed)
echo namespace1.0 > /sys/bus/nd/drivers/nd_pmem/unbind
cat /proc/sys/kernel/random/uuid > $devices/$seed/uuid
echo ram > $devices/$seed/mode
echo 2097152 > $devices/$seed/align
echo namespace1.0 > $devices/$seed/namespace
echo "$seed" > /sys/bus/nd/drivers/dax_pmem/bind
sleep 1
device=$(ls /dev/dax* 2> /dev/null | head -n 1)

say "nodes $(cat /sys/devices/system/node/has_memory), with processors $(cat /sys/devices/system/node/has_cpu); device ${device:-none}"
/opt/mke2fs -q -t ext4 -b 4096 /dev/pmem0 && mount -t ext4 -o dax /dev/pmem0 /pmem || fail "ext4 -o dax"

raw-tests numa > /tmp/raw.log 2>&1 && say "ok: pages lie on the nodes they are bound to" || fail "$(tail -n 20 /tmp/raw.log)"

cd /tmp
graphmill generate kronecker 10 16 --undirected --weights f32 --batch-size 256 -o graph -q > /tmp/log 2>&1 ||
    fail "generate: $(cat /tmp/log)"

# Runs an algorithm with more arguments: the result is in $1.csv.
run() {
    name=$1; shift
    algorithm=$1; shift
    # shellcheck disable=SC2086
    graphmill run $algorithm graph -q -o "$name.csv" --metrics "$name.json" --memory 64M "$@" > /tmp/log 2>&1
}

for algorithm in "pagerank --iterations 5" "bfs --source 1" wcc "sssp --source 1" \
    "pagerank --iterations 5 --method pregel-push --threads 1"; do
    run dram "$algorithm" || fail "$algorithm: $(cat /tmp/log)"
    for tier in numa:1 numa:2 numa:2:preferred numa:0-2:interleave numa:0,2:preferred file:/pmem file:/pmem/new "file:$device"; do
        for place in slow rw-split; do
            what="$algorithm --slow-tier $tier --place $place"
            if ! run placed "$algorithm" --slow-tier "$tier" --place $place; then
                fail "$what: $(cat /tmp/log)"
            elif ! cmp -s dram.csv placed.csv; then
                fail "$what: another answer"
            elif [ "${tier#file:}" != "$tier" ] && ! grep -q "$tier (MAP_SYNC)" placed.json; then
                fail "$what: mapped without MAP_SYNC"
            fi
        done
    done
    say "ok: $algorithm"
done

[ -z "$(ls -A /pmem | grep -v lost+found)" ] || fail "left on the file system: $(ls -A /pmem)"
run placed wcc --slow-tier numa:4 && fail "a node that is not there"
grep -q "no memory on node 4, but on nodes 0-3" /tmp/log || fail "node 4: $(cat /tmp/log)"
run placed wcc --slow-tier numa:2 && grep -q "numa:0-1:bind" placed.json || fail "vertices are not bound to the nodes of DRAM"

# A node smaller than the data: edges stream from disk, or the run is refused; no process is killed.
graphmill generate kronecker 17 24 --undirected --weights f32 -o large -q > /tmp/log 2>&1 || fail "generate: $(cat /tmp/log)"
search() { graphmill run sssp large --source 1 --memory 256M -q -o "$@" > /tmp/log 2>&1; }
search dram.csv || fail "a large graph: $(cat /tmp/log)"
for place in slow rw-split; do
    search placed.csv --slow-tier numa:3 --place $place && cmp -s dram.csv placed.csv && say "ok: a small node, $place" ||
        fail "a small node, $place: $(cat /tmp/log)"
done
# Nearly all of the node is taken by a file in memory.
mkdir /taken && mount -t tmpfs -o mpol=bind:3,size=52M tmpfs /taken && dd if=/dev/zero of=/taken/full bs=1M > /dev/null 2>&1
search placed.csv --slow-tier numa:3 --place slow
[ $? = 1 ] && grep -q -- "--place messages=dram" /tmp/log && say "ok: a node without memory" || fail "a full node: $(cat /tmp/log)"
umount /taken

# A full file system is an error, not a signal.
dd if=/dev/zero of=/pmem/full bs=1M > /dev/null 2>&1
run placed wcc --slow-tier file:/pmem
[ $? = 1 ] && grep -q "free some space" /tmp/log && say "ok: a full file system" || fail "full: $(cat /tmp/log)"

[ $failed = 0 ] && say PASS || say FAIL
poweroff -f
