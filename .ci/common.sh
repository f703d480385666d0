# What the gate and the soak share: where builds are kept, steps and their seconds, tools, and what needs no step before it.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_INCREMENTAL=0           # what has changed is built once
export CARGO_PROFILE_DEV_DEBUG=0     # a panic says its line without; a sixth of the time of a build is saved
GIB_MAX=16                           # of builds that are kept

skipped=()
have() { "$@" >/dev/null 2>&1; }

# The name and the seconds of each step as it ends, and of all at the end.
table=() step_name='' step_began=0 aside_jobs=() aside_process='' logs=$(mktemp -d)
step_ends() {
    [ -n "$step_name" ] || return 0
    table+=("$(printf '%6d s  %s' $((SECONDS - step_began)) "$step_name")")
    printf -- '-- %d s\n' $((SECONDS - step_began))
    step_name=
}
step() {
    step_ends
    step_name=$* step_began=$SECONDS
    printf '\n== %s\n' "$step_name"
}
at_end() {
    status=$?
    [ "$status" = 0 ] || step_name="$step_name: FAILED"
    step_ends
    printf '\n== skipped\n'
    [ ${#skipped[@]} = 0 ] || printf '%s\n' "${skipped[@]}"
    printf '\n== seconds\n'
    printf '%s\n' "${table[@]}" "$(printf '%6d s  all' $SECONDS)"
    rm -rf "$logs"
    # What is still at work beside the steps has no reader any more.
    [ -z "$aside_process" ] || kill -- "-$aside_process" 2>/dev/null || true
}
trap at_end EXIT

# A command whose output may say that it was skipped, and why.
may_skip() {
    local said
    said=$("${@:2}" 2>&1) || { printf '%s\n' "$said"; return 1; }
    printf '%s\n' "$said"
    case $said in skipped:*) skipped+=("$1: ${said%%$'\n'*}") ;; esac
}

# Whether files below these paths differ from the newest commit that the remote's main and this have in common.
covered_by() {
    [ -n "$base" ] || return 0
    { git diff --name-only "$base" && git ls-files --others --exclude-standard; } >"$logs/changed"
    local path
    for path in .ci "$@"; do
        grep -q "^$path" "$logs/changed" && return 0
    done
    return 1
}
# No remote, or nothing that it has not: everything counts as changed.
find_base() {
    base=$(git merge-base HEAD origin/main 2>/dev/null) || base=
    if [ "$base" = "$(git rev-parse HEAD 2>/dev/null)" ] && [ -z "$(git status --porcelain)" ]; then base=; fi
}

# Builds are kept in the user's cache folder, and made in a copy of this checkout there: cargo finds the crates of a workspace again only
# in the same folder, where the files that are the same have kept their times.
keep_builds() {
    [ -z "${CARGO_TARGET_DIR:-}" ] || return 0
    local cache=${XDG_CACHE_HOME:-${HOME:-/nowhere}/.cache}/graphmill here=$PWD
    export CARGO_TARGET_DIR=$here/target
    mkdir -p "$cache" 2>/dev/null || return 0
    exec 9>"$cache/ci-lock"
    flock -n 9 || { echo "another run is at work in $cache: builds go to target/"; return 0; }
    mkdir -p "$cache/ci-target" "$cache/checkout"
    local gib
    gib=$(du -s --block-size=1G "$cache/ci-target" | cut -f 1)
    [ "$gib" -le "$GIB_MAX" ] || rm -rf "$cache/ci-target"
    local tree
    tree=$(cp "$(git rev-parse --git-path index)" "$logs/index" && export GIT_INDEX_FILE=$logs/index && git add -A && git write-tree) &&
        GIT_INDEX_FILE=$cache/ci-index git --work-tree="$cache/checkout" read-tree --reset -u "$tree" || return 0
    ln -sfn "$here/../shared" "$cache/shared"     # where there are reference graphs
    export CARGO_TARGET_DIR=$cache/ci-target
    cd "$cache/checkout"
    echo "builds are kept in $CARGO_TARGET_DIR"
}

# What tests use where it is there: two MPIs (which one is `mpicc` stays as it is: Open MPI comes first among Debian's alternatives), what
# kills the command at system calls of its own, and what makes hosts and disks.
install_tools() {
    have command -v mpicc && have command -v mpirun && have command -v mpicc.mpich && have strace -V && have command -v ip && have command -v nft &&
        have command -v tc && have command -v mkfs.ext4 && have command -v losetup && have command -v unshare && return 0
    local wanted
    for wanted in "libopenmpi-dev openmpi-bin" "mpich libmpich-dev" strace "iproute2 e2fsprogs util-linux mount nftables"; do
        # shellcheck disable=SC2086
        have apt-get install -y --no-install-recommends $wanted ||
            { have apt-get update && have apt-get install -y --no-install-recommends $wanted; } || true
    done
}
say_what_is_missing() {
    have command -v mpirun && have command -v mpicc || skipped+=("ranks by mpirun: Open MPI is not installed (libopenmpi-dev, openmpi-bin)")
    have command -v mpicc.mpich || skipped+=("ranks by another MPI: MPICH is not installed (mpich, libmpich-dev)")
    have strace -V || skipped+=("kills at system calls: strace is not installed")
    skipped+=("security advisories: their database has to be fetched from the network")
}

# Each of these needs nothing of a step before it.
dependencies() {
    # Apart from the builds that steps are at work on, and not kept.
    cargo deny --version >/dev/null 2>&1 ||
        CARGO_TARGET_DIR=$CARGO_TARGET_DIR/tools cargo install --debug --locked cargo-deny >/dev/null 2>&1 ||
        { echo "skipped: cargo-deny could not be installed"; return 0; }
    rm -rf "$CARGO_TARGET_DIR/tools"
    cargo deny check licenses bans sources
}
every_order() {     # of the accesses of structures without locks
    RUSTFLAGS="--cfg loom" cargo test -p graphmill-raw --lib --locked --target-dir "$CARGO_TARGET_DIR/loom" every_order
}
drawn_orders() {    # of more threads
    RUSTFLAGS="--cfg shuttle" cargo test -p graphmill-raw --lib --locked --target-dir "$CARGO_TARGET_DIR/shuttle" every_order
}
races() {
    # The standard library is built with it, or what goes through its locks looks like a race.
    watched() {
        RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread cargo test -Zbuild-std --target "$(rustc -vV | sed -n 's/^host: //p')" \
            -p graphmill-raw --lib --locked --target-dir "$CARGO_TARGET_DIR/tsan" -- "$@"
    }
    if rustup component add rust-src >/dev/null 2>&1 && watched --list >/dev/null 2>&1; then
        watched
    else
        echo "skipped: there is no source of the standard library (rust-src), or no ThreadSanitizer for this system"
    fi
}
fuzzed() { CARGO_TARGET_DIR=$CARGO_TARGET_DIR/fuzz fuzz/run.sh "$@"; }

# Some of them in turn, in what steps leave of the machine.
aside() { aside_jobs+=("$*"); }
start_aside() {
    set -m      # a process group, so that all of it can be ended
    (
        trap - EXIT
        for job in "${aside_jobs[@]}"; do
            began=$SECONDS status=0
            # shellcheck disable=SC2086
            nice -n 19 bash -euo pipefail -c "$(declare -f ${job%% *}); $job" >"$logs/$job" 2>&1 || status=$?
            echo "$status $((SECONDS - began))" >"$logs/$job: end"
        done
    ) </dev/null &
    aside_process=$!
    set +m
}
end_aside() {
    [ ${#aside_jobs[@]} -gt 0 ] || return 0
    local job status seconds failed=0
    wait "$aside_process" || true
    aside_process=
    for job in "${aside_jobs[@]}"; do
        printf '\n== %s (beside other steps)\n' "$job"
        cat "$logs/$job"
        grep '^skipped:' "$logs/$job" >"$logs/said" && skipped+=("$job: $(cat "$logs/said")")
        read -r status seconds <"$logs/$job: end"
        table+=("$(printf '%6d s  %s (beside other steps)' "$seconds" "$job")")
        [ "$status" = 0 ] || { echo "FAILED: $job"; failed=1; }
    done
    return $failed
}
