#!/usr/bin/env bash
# How much of a link buckets fill: two hosts of namespaces (tests/system/cluster/hosts.sh), whose links `tc` limits, or two processes over
# memif (DPDK) with a token bucket.
#
#   bench/line.sh GRAPH [LINK...]        prints a line for each link and seal; a link is a rate as `tc` takes it, memif-RATE, or "none"
#   ROUNDS=5 ITERATIONS=1                PageRank on the stored graph; the best round counts
#   WAYS=1                               all arcs go from the first half of the vertices to the second, such as those of
#                                        awk '{print $1, $2 + 2 ^ 20}' over a Kronecker graph of scale 20
#
# Before each round a raw blaster (blaster.py) fills the same link of the hosts. A bucket of 177 messages counts as traffic control counts
# it, 1,514 bytes; what is sent again does not count. Needs what hosts.sh needs, for memif also DPDK, and a release build in GRAPHMILL.
set -euo pipefail
shopt -s inherit_errexit
graph=$(realpath "$1") here=$(realpath "$(dirname "$0")")
shift
cd "$here/.."
hosts=2 disk=2000000000 limit=4G ways=${WAYS:-2}
. tests/system/cluster/hosts.sh
"$GRAPHMILL" mpi build -o "$work/plugin.so" > /dev/null
export GRAPHMILL_MPI=$work/plugin.so GRAPHMILL_DPDK=$work/dpdk.so

blast() {
    local from
    for from in $(seq "$ways"); do
        ip netns exec "$name-$((3 - from))" timeout 9 python3 "$here/blaster.py" receive "10.77.0.1$((3 - from))" 0.5 > "$work/blast-$from" &
        ip netns exec "$name-$from" python3 "$here/blaster.py" send "10.77.0.1$((3 - from))" 1.5 &
    done
    wait
    cat "$work"/blast-* | python3 -c 'import sys; rates = [float(line) for line in sys.stdin]; print(sum(rates) / len(rates))'
}
beside() { mpirun --allow-run-as-root --bind-to none -n 2 "$GRAPHMILL" "$@"; }

cd "$work"
for link in "${@:-1gbit}"; do
    rate=${link#memif-} start=job way=(--link udp --datagram-address 10.77.0.1)
    case $link in
        memif-*)
            "$GRAPHMILL" dpdk build -o "$work/dpdk.so" > /dev/null
            start=beside way=(--link dpdk --dpdk-device memif --link-rate "$((${rate%gbit} * 125))M")
            ;;
        none) for host in 1 2; do tc qdisc del dev "$name-$host" root; ip netns exec "$name-$host" tc qdisc del dev eth0 root; done 2> /dev/null || true ;;
        *) rate_links "$rate" ;;
    esac
    for seal in sealed plain; do
        : > rounds
        for _ in $(seq "${ROUNDS:-5}"); do
            if [ $start = job ]; then blast; else echo nan; fi >> rounds
            option=
            [ $seal = sealed ] || option=--plain-datagrams
            # shellcheck disable=SC2086
            $start run pagerank "$graph" --iterations "${ITERATIONS:-1}" --precision f32 -q -o out/ranks.parquet --metrics out/run.json \
                --executor bucket --combine never --threads 1 "${way[@]}" $option > /dev/null 2> said || { cat said; exit 1; }
            tr -d '\n' < out/run.json >> rounds
            echo >> rounds
        done
        python3 - "$link" "${rate%gbit}" $seal rounds "$ways" << 'PY'
import json, sys
link, rate, seal, path, ways = sys.argv[1:]
lines = open(path).read().splitlines()
raw = sorted(float(line) / 1e9 for line in lines[::2])
runs = [json.loads(line) for line in lines[1::2]]
gbits, roles = [], []
for run in runs:
    sent = sum(one["messages_sent"] for one in run["passes"] if one["edges"])
    gbits.append(sent / int(ways) / 177 * 1514 * 8 / run["datagrams"]["exchange_seconds"] / 1e9)
    roles.append({name: round(seconds * 1e9 / sent, 2) for name, seconds in run["datagrams"]["role_seconds"].items()})
best = max(gbits)
of = f", {best / float(rate):.1%} of the limit" if rate != "none" else ""
print(f"{link} {seal}: {best:.3f} Gbit/s{of}; median {sorted(gbits)[len(gbits) // 2]:.3f}; blaster {raw[-1]:.3f}, median {raw[len(raw) // 2]:.3f}; "
      f"{sum(run['datagrams']['resent'] for run in runs)} resent; ns a message, of the best: {roles[gbits.index(best)]}", flush=True)
PY
    done
done
echo "load $(cut -d' ' -f1 /proc/loadavg), $(nproc) processors"
