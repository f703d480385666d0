#!/usr/bin/env bash
# Counts the futex calls of passes by the bucket executor, with one role a thread: threads neither lock nor wake each other for a bucket.
#
#   tests/system/buckets/futex.sh        prints calls and buckets of three passes, and PASS or FAIL; exits with 0 or 1
#   SCALE=20                             of the Kronecker graph
#
# Skipped, with exit code 0 and the reason, where strace cannot trace. The command is GRAPHMILL, or is built.
set -euo pipefail
cd "$(dirname "$0")/../../.."
skip() { echo "skipped: $*"; exit 0; }
strace -o /dev/null true 2> /dev/null || skip "strace is not installed, or not allowed here"
if [ -z "${GRAPHMILL:-}" ]; then
    cargo build --locked -p graphmill-cli
    GRAPHMILL=$(realpath "${CARGO_TARGET_DIR:-target}/debug/graphmill")
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$GRAPHMILL" generate kronecker "${SCALE:-20}" 16 --undirected -o graph -q > /dev/null
# Futex calls, and buckets sent, of so many passes.
counted() {
    strace -f --seccomp-bpf -c -e trace=futex -U name,calls -o calls "$GRAPHMILL" run pagerank graph --iterations "$1" -o ranks.parquet -q \
        --executor bucket --link udp --combine never --ranks 2 --threads 6 --bucket-threads 1,1,1 --metrics run.json > /dev/null
    python3 -c '
import json
calls = [line.split() for line in open("calls")]
run = json.load(open("run.json"))
print(sum(int(words[1]) for words in calls if words[:1] == ["futex"]), sum(one["bytes_sent"] for one in run["passes"]) // 1472)'
}
read -r few_calls few < <(counted 1)
read -r calls buckets < <(counted 4)
calls=$((calls - few_calls)) buckets=$((buckets - few))
echo "$calls futex calls, $buckets buckets: $(python3 -c "print(f'{1000 * $calls / $buckets:.2f}')") in 1,000 buckets"
if [ $((1000 * calls)) -lt "$buckets" ]; then echo PASS; else echo FAIL; exit 1; fi
