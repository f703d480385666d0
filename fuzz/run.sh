#!/usr/bin/env bash
# Every fuzz target for so many seconds, from the seeds and from what earlier runs found worth keeping; stops at the first that fails.
#
#   fuzz/run.sh [SECONDS [TARGET...]]      default: 20, all of them
#
# By the stable compiler, whose passes count what is reached; `cargo fuzz run TARGET` with a nightly one looks for misused memory too.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-20}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls seeds)

host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-../target/fuzz} CARGO_INCREMENTAL=0
passes="-Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    passes+=" -Cllvm-args=-sanitizer-coverage-$option"
done
# With a target given, what is built to build others is not counted.
RUSTFLAGS="--cfg fuzzing -Cdebug-assertions $passes" cargo build --release --locked --target "$host"

for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target"
    # No input may take two seconds. What it may ask for at once is limited by the targets' allocator (src/lib.rs): `-malloc_limit_mb`
    # holds only with a sanitizer.
    "$CARGO_TARGET_DIR/$host/release/$target" "corpus/$target" "seeds/$target" -artifact_prefix="artifacts/$target/" \
        -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=2 -print_final_stats=1 2>&1 |
        grep -E '^(INFO: seed corpus|stat::number_of_executed|==|SUMMARY|.*(ERROR|panicked))' | sed "s/^/$target: /"
done
