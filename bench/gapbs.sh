#!/usr/bin/env bash
# Graphmill in memory in turn with the GAP benchmark suite on the same graphs: the table of bench/results/2026-11-22-performance.md.
#
#   bench/gapbs.sh GAPBS FOLDER GRAPH [ROUNDS]      default: 3 rounds
#   TRIALS=3 DELTA=2 SOURCE=4096 THREADS=2          of each round, of GAPBS's sssp, of searches, of both programs
#   JOBS="bfs wcc sssp pagerank"                    what is measured
#
# GAPBS is the folder of the suite, built by its own makefile. FOLDER keeps the graphs. GRAPH is the scale of a Kronecker graph, which the
# suite generates (16 edges a vertex, weights 1 to 255), or a file NAME.wel of undirected weighted edges with vertices 0, 1, 2, ...
# A figure is the median of a round's trials, seconds; loading is not in it. Needs python3.
set -euo pipefail
shopt -s inherit_errexit
gapbs=$(realpath "${1:?where is GAPBS?}") folder=${2:?which folder for the graphs?} graph=${3:?scale or file?} rounds=${4:-3}
trials=${TRIALS:-3} delta=${DELTA:-2} source=${SOURCE:-4096} jobs=${JOBS:-bfs wcc sssp pagerank}
export OMP_NUM_THREADS=${THREADS:-2}
mkdir -p "$folder"
folder=$(realpath "$folder")
case $graph in
    *.wel) graph=$(realpath "$graph") at=$folder/$(basename "$graph" .wel) made=(-s -f "$graph") ;;
    *) at=$folder/k$graph made=(-g"$graph" -k16) ;;
esac
cd "$(dirname "$0")/.."
if [ -z "${GRAPHMILL:-}" ]; then
    cargo build --release --locked
    GRAPHMILL=${CARGO_TARGET_DIR:-target}/release/graphmill
fi

# Makes a graph under another name, so that what is there is whole.
convert() {
    [ -e "$1" ] && return
    "$gapbs/converter" "${made[@]}" "${@:2}" -b "$folder/new" > /dev/null
    mv "$folder/new" "$1"
}
convert "$at.wsg" -w
convert "$at.sg"
rm -f "$folder/arcs.wel"
for order in id degree; do
    [ -e "$at-$order" ] && continue
    # Both arcs of each edge are in what the suite writes; vertices without edges are not.
    if [ ! -e "$folder/arcs.wel" ]; then
        nodes=$("$gapbs/converter" -f "$at.wsg" -w -e "$folder/arcs.wel" | sed -n 's/^Graph has \([0-9]*\) nodes.*/\1/p')
        seq 0 "$((${nodes:?how many vertices?} - 1))" > "$folder/vertices"
    fi
    # An import that is interrupted leaves nothing of that name.
    "$GRAPHMILL" import "$folder/arcs.wel" -o "$at-$order" --vertices "$folder/vertices" --undirected --weights f32 \
        --duplicates min --order "$order" -q > /dev/null
done
rm -f "$folder/arcs.wel" "$folder/vertices"

theirs() {
    case $1 in
        bfs) "$gapbs/bfs" -f "$at.sg" -n "$trials" -r "$source" ;;
        wcc) "$gapbs/cc" -f "$at.sg" -n "$trials" ;;
        sssp) "$gapbs/sssp" -f "$at.wsg" -n "$trials" -r "$source" -d "$delta" ;;
        # No tolerance, so that there are as many iterations.
        pagerank) "$gapbs/pr" -f "$at.sg" -n "$trials" -i 10 -t 0 ;;
    esac | sed -n 's/^Trial Time: *//p' | xargs
}

ours() {
    local job=$1 order=$2
    set --
    case $job in
        bfs | sssp) set -- --source "$source" ;;
        pagerank) set -- --iterations 10 --dangling drop ;;
    esac
    case $job in sssp | pagerank) set -- "$@" --precision f32 ;; esac
    "$GRAPHMILL" run "$job" "$at-$order" "$@" --place edges=dram --memory 20G --threads "$OMP_NUM_THREADS" \
        --trials "$trials" --metrics "$at.json" -q > /dev/null
    python3 -c 'import json, sys; run = json.load(open(sys.argv[1])); print(*run.get("trials", [run["seconds"]["run"]]))' "$at.json"
}

for _ in $(seq "$rounds"); do
    for job in $jobs; do
        seconds=$(theirs "$job")
        echo "$job GAPBS $seconds"
        seconds=$(ours "$job" id)
        echo "$job id $seconds"
        seconds=$(ours "$job" degree)
        echo "$job degree $seconds"
    done
done | python3 -c '
import statistics, sys
rounds = {}
for line in sys.stdin:
    print(line, end="", file=sys.stderr)
    job, who, *seconds = line.split()
    each = statistics.median(map(float, seconds)) / (10 if job == "pagerank" else 1)
    rounds.setdefault(job, {}).setdefault(who, []).append(each)
def figure(of):
    each = ", ".join(f"{one:.4f}" for one in of)
    return f"{statistics.median(of):.4f} ({each})"
print("| seconds | GAPBS | order of ids | ratio | order of degree | ratio |\n| --- | --- | --- | --- | --- | --- |")
for job, by in rounds.items():
    theirs = by["GAPBS"]
    cells = [job, figure(theirs)]
    for who in ("id", "degree"):
        cells += [figure(by[who]), f"{statistics.median(a / b for a, b in zip(theirs, by[who])):.1f}"]
    print("|", " | ".join(cells), "|")
'
