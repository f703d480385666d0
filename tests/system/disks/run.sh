#!/usr/bin/env bash
# Runs and imports on a disk of their own (ext4 on a loop device) that loses its power or is full, again and again, and goes on: the
# bytes are those of one that nothing disturbed.
#
#   tests/system/disks/run.sh            prints what was done; exits with 0 or 1
#   ROUNDS=12
#
# Needs root, loop devices and ext4; skipped, with exit code 0 and the reason, where there are none. The command is GRAPHMILL, or is built.
set -euo pipefail

cd "$(dirname "$0")/../../.."
rounds=${ROUNDS:-12}
skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "not root"
command -v mkfs.ext4 >/dev/null && command -v losetup >/dev/null || skip "mkfs.ext4 or losetup is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"

if [ -z "${GRAPHMILL:-}" ]; then
    cargo build --locked -p graphmill-cli
    GRAPHMILL=$(realpath "${CARGO_TARGET_DIR:-target}/debug/graphmill")
fi
graphmill=$GRAPHMILL
work=$(mktemp -d)
disk=$work/disk
cleanup() {
    umount "$disk" 2>/dev/null || umount -l "$disk" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
mkdir "$disk"
truncate -s 192M "$work/image"
mkfs.ext4 -q -F -m 0 "$work/image" 2>/dev/null || skip "mkfs.ext4 failed"
mount -o loop "$work/image" "$disk" 2>/dev/null || skip "no loop device can be mounted"

# What was not synced is lost, as when the power is cut: the file system writes nothing any more, not even its journal.
cut_power() {
    python3 - "$disk" <<'PY'
import fcntl, os, struct, sys
SHUTDOWN, WITHOUT_THE_JOURNAL = 0x8004587D, 2
folder = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_THE_JOURNAL))
PY
}
power_on() {
    umount "$disk"
    mount -o loop "$work/image" "$disk"
}
# Seconds that a command takes, and the most bytes of the disk at a time.
watch_disk() {
    python3 - "$disk" "$work/said" "$@" <<'PY'
import os, subprocess, sys, time
disk, said, *command = sys.argv[1:]
def free():
    of = os.statvfs(disk)
    return of.f_bavail * of.f_bsize
before, least, started = free(), free(), time.monotonic()
with open(said, "w") as out:
    running = subprocess.Popen(command, stdout=out, stderr=out)
    while running.poll() is None:
        least = min(least, free())
        time.sleep(0.002)
print(time.monotonic() - started, before - least)
sys.exit(running.returncode)
PY
}
fail() { echo "failed: $*" >&2; cat "$work/said" >&2; exit 1; }

cd "$work"
"$graphmill" generate kronecker 18 8 --undirected -q --batch-size 16384 -o graph >/dev/null
"$graphmill" generate kronecker 19 8 -q -o edges.el >/dev/null
sum() { # of a file, or of all files in a folder, with their names
    if [ -d "$1" ]; then (cd "$1" && find . -type f | LC_ALL=C sort | xargs cksum | cksum); else cksum <"$1"; fi
}

# name, output, words
jobs=(
    "pagerank|ranks.csv|run pagerank graph --iterations 40 --memory 20M --threads 1 --checkpoint-dir $disk/checkpoints --checkpoint-every 1 --resume"
    "pagerank by two ranks|sums.csv|run pagerank graph --iterations 40 --memory 48M --threads 2 --ranks 2 --checkpoint-dir $disk/checkpoints --checkpoint-every 1 --resume"
    "import|imported|import edges.el --memory 16M --threads 2 --checkpoint-every 0s"
)
# Whether going on gave what was wanted; nothing is left on the disk then.
check() {
    [ "$(sum "$disk/$2")" = "$3" ] || fail "$1: other bytes after $4"
    grep -q "resuming" "$work/said" && resumed=$((resumed + 1))
    rm -rf "${disk:?}/$2"
}

for job in "${jobs[@]}"; do
    IFS='|' read -r name output words <<<"$job"
    # shellcheck disable=SC2086
    command=("$graphmill" $words -o "$disk/$output")
    read -r took used < <(watch_disk "${command[@]}") || fail "$name"
    wanted=$(sum "$disk/$output")
    rm -rf "${disk:?}/$output"
    cuts=0 fulls=0 resumed=0
    for round in $(seq "$rounds"); do
        # Power is cut later and later; where it comes to its end before, that is well too.
        "${command[@]}" >"$work/said" 2>&1 &
        running=$!
        python3 -c "import time; time.sleep($took * $round / ($rounds + 1))"
        cut_power
        wait "$running" || cuts=$((cuts + 1))
        power_on
        if [ -e "$disk/$output" ]; then
            check "$name" "$output" "$wanted" "power cut $round"
        fi
        "${command[@]}" >"$work/said" 2>&1 || fail "$name does not resume after power cut $round"
        check "$name" "$output" "$wanted" "power cut $round"
    done
    for round in $(seq "$rounds"); do
        # All but some of what it takes is taken.
        free=$(df --output=avail -B1 "$disk" | tail -1)
        fallocate -l $((free - used * round / (rounds + 1))) "$disk/filler"
        if ! "${command[@]}" >"$work/said" 2>&1; then
            fulls=$((fulls + 1))
            grep -q -e "No space left" -e "bytes are free" "$work/said" || fail "$name on a full disk says something else"
        elif [ -e "$disk/$output" ]; then
            check "$name" "$output" "$wanted" "a disk that was nearly full, $round"
        fi
        rm -f "$disk/filler"
        "${command[@]}" >"$work/said" 2>&1 || fail "$name does not resume after full disk $round"
        check "$name" "$output" "$wanted" "full disk $round"
    done
    [ "$cuts" -gt 0 ] && [ "$fulls" -gt 0 ] && [ "$resumed" -gt 0 ] ||
        fail "$name: $cuts power cuts and $fulls full disks came in its way, and it resumed $resumed times"
    echo "$name: $cuts power cuts and $fulls full disks in its way; it resumed $resumed times, with the same bytes each time"
    rm -rf "${disk:?}"/*
done
