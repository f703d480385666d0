# shellcheck shell=bash
# Hosts on one machine, for a script that sources this: network namespaces on a bridge, every host with a disk of its own that reads and
# writes so many bytes a second, and a memory limit. `job` runs graphmill on all of them by mpirun; `rate_links` sets the rate of their links.
#
# The script sets hosts, disk (bytes a second) and limit (of memory), and defines no trap of its own for EXIT. Needs root, network namespaces,
# loop devices and Open MPI; the script ends, with exit code 0 and the reason, where there are none. The command is GRAPHMILL, or is built.
skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "not root"
for tool in ip tc losetup mkfs.ext4 unshare mpirun mpicc; do
    command -v "$tool" > /dev/null || skip "there is no $tool"
done
name=gm$BASHPID
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
        -x GRAPHMILL_MPI="$work/plugin.so" -x GRAPHMILL_DPDK="$work/dpdk.so" --wdir "$work" -n "$hosts" "$GRAPHMILL" "$@"
}

# Lets so many bits a second to and from each host.
rate_links() {
    local rate=$1 burst=256k queue=2m host
    [ "$rate" = 10gbit ] && burst=2560k queue=20m
    for host in $(seq "$hosts"); do
        tc qdisc replace dev "$name-$host" root tbf rate "$rate" burst "$burst" limit "$queue"
        ip netns exec "$name-$host" tc qdisc replace dev eth0 root tbf rate "$rate" burst "$burst" limit "$queue"
    done
}
