#!/usr/bin/env python3
"""The figures of Roy et al., "Chaos: Scale-out Graph Processing from Secondary Storage" (SOSP 2015), the paper's numbers beside ours.

  bench/chaos.py NAME FOLDER      fig5 to fig19, capacity, or model for all that come from the model
  bench/chaos.py table1 FOLDER    raw pairs to results, beside X-Stream, Chaos and the column executor
  bench/chaos.py bytes FOLDER     bytes of disk an edge and pass
  bench/chaos.py balance FOLDER   chunks that each rank processed
  bench/chaos.py list FOLDER      the names, and where their numbers come from

Figures that take 32 machines come from a model of the paper's cluster, `graphmill-sim model`: "chaos" rows are the paper's design, "ours" the stream
executor's. The paper prints few numbers; the others are in its plots only and have no row. fig9 to fig13 also measure what one machine can show.
Runs are made in turn; medians are printed. FOLDER keeps graphs, and the model's answers as JSON. --xstream and --chaos take benchmark_driver of those
systems, built for ids of four bytes, as their makefiles do. A slower disk takes root and cgroups, hosts take what tests/system/cluster/hosts.sh needs.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

import chaos_measured


class Paper:
    """A number of the paper: what it says, a text or a number, and where it stands."""

    def __init__(self, what, number, find):
        self.what, self.number, self.find = what, number, find


def at(label, column):
    """Finds a value of the model by row and column."""
    return lambda figure: figure.value(label, column)


def ratio(one, other, column="32"):
    return lambda figure: figure.value(one, column) / figure.value(other, column)


def mean_ratio(one, other):
    return lambda figure: statistics.mean(above / below for above, below in zip(figure.rows[one], figure.rows[other]))


def extreme(how, design, column="32"):
    """Finds the least or greatest value of a design's algorithms, with its name."""
    def find(figure):
        rows = {label: figure.value(label, column) for label in figure.rows
                if label.startswith(design) and "mean" not in label}
        label = how(rows, key=rows.get)
        return f"{rows[label]:.2f} ({label.split()[-1]})"
    return find


def mean_of(design, column):
    return lambda figure: statistics.mean(figure.value(label, column) for label in figure.rows if label.startswith(design))


def both(what, number, find):
    """The number of the paper beside that of each design; `find` makes a finder of a design."""
    return [Paper(f"{what}, {design}", number, find(design)) for design in ("chaos", "ours")]


PAPER = {
    "fig5": [Paper("utilization at 32 machines, k = 5 (section 10.1)", 0.9956, at("32", "k=5"))],
    "fig6": [
        *both("mean of ten at 32 machines", 1.66, lambda of: at(f"{of} mean at 32", "1")),
        *both("least", "0.97 (Cond)", lambda of: extreme(min, of)),
        *both("greatest", "2.29 (MCST)", lambda of: extreme(max, of)),
    ],
    "fig7": [
        *both("mean speedup of ten at 32 machines", 13.5, lambda of: at(f"{of} mean at 32", "1")),
        *both("greatest", "23 (Cond)", lambda of: extreme(max, of)),
        *both("least", "8 (MCST)", lambda of: extreme(min, of)),
    ],
    "fig8": [
        *both("speedup of BFS at 32 machines", 20, lambda of: at(f"{of} BFS", "32")),
        *both("speedup of PR at 32 machines", 18.5, lambda of: at(f"{of} PR", "32")),
    ],
    "capacity": [
        *both("TB of I/O, BFS", 214, lambda of: at(f"{of} BFS", "TB")),
        *both("TB of I/O, 5 iterations of PR", 395, lambda of: at(f"{of} PR", "TB")),
        *both("hours, BFS", "a little over 9", lambda of: at(f"{of} BFS", "hours")),
        *both("hours, PR", 19, lambda of: at(f"{of} PR", "hours")),
        *both("GB/s of all disks, PR", 7, lambda of: at(f"{of} PR", "GB/s")),
    ],
    "fig9": both("PR with 8 of 16 cores at 32 machines, over 16", "adequate", lambda of: ratio(f"{of} PR p=8", f"{of} PR p=16")),
    "fig10": [
        *both("BFS on HDD over SSD, mean of 1 to 32 machines", "2 (inverse to bandwidth)", lambda of: mean_ratio(f"{of} BFS HDD", f"{of} BFS SSD")),
        *both("PR on HDD over SSD, mean of 1 to 32 machines", "2 (inverse to bandwidth)", lambda of: mean_ratio(f"{of} PR HDD", f"{of} PR SSD")),
        *both("BFS on HDD at 32 machines, over SSD", "2 (inverse to bandwidth)", lambda of: ratio(f"{of} BFS HDD", f"{of} BFS SSD")),
        *both("PR on HDD at 32 machines, over SSD", "2 (inverse to bandwidth)", lambda of: ratio(f"{of} PR HDD", f"{of} PR SSD")),
    ],
    "fig11": [
        *both("BFS with 1 GigE at 32 machines, over 40", "does not scale", lambda of: ratio(f"{of} BFS 1GigE", f"{of} BFS 40GigE")),
        *both("PR with 1 GigE at 32 machines, over 40", "does not scale", lambda of: ratio(f"{of} PR 1GigE", f"{of} PR 40GigE")),
    ],
    "fig12": [
        *both("BFS with checkpoints", "under 1.06", lambda of: at(f"{of} BFS", "with checkpoints")),
        *both("PR with checkpoints", "under 1.06", lambda of: at(f"{of} PR", "with checkpoints")),
    ],
    "fig13": both("share of the disks' rate at 32 machines, PR", "0.97", lambda of: at(f"{of} PR", "32")),
    "fig14": [
        Paper("PR at 32 machines, no directory", "rises slowly", at("0 us a request", "32")),
        Paper("PR at 32 machines, directory of 200 us", "rises faster", at("200 us a request", "32")),
        Paper("PR at 32 machines, directory of 500 us", "rises faster", at("500 us a request", "32")),
    ],
    "fig15": [
        Paper("window 10", "1 (best)", at("10", "time")),
        Paper("window 1", "worse", at("1", "time")),
        Paper("window 32", "worse (queues, incast)", at("32", "time")),
        Paper("window phi k", 1, at("phi k", "time")),
    ],
    "fig16": [
        *both("processing, mean of ten", "0.83 (0.74 to 0.87)", lambda of: lambda figure: mean_of(of, "own")(figure) + mean_of(of, "stolen")(figure)),
        *both("copying and merging, mean of ten", "0.14 (0 to 0.22)", lambda of: mean_of(of, "copy and merge")),
        *both("idle, mean of ten", "below 0.04", lambda of: mean_of(of, "idle")),
    ],
    "fig17": [paper for name in ("BFS", "PR") for bias in ("0", "0.8", "1.2", "inf")
              for paper in both(f"{name}, bias {bias}", "worse than 1", lambda of, name=name, bias=bias: at(f"{of} {name}", bias))],
    "fig18": [
        Paper("speedup of Chaos at 32 machines", "scales", at("chaos", "32")),
        Paper("speedup of static ranges at 32 machines", "", at("static ranges", "32")),
        Paper("speedup of static hashed partitions (Giraph's) at 32 machines", "hardly scales", at("static hashed", "32")),
    ],
    "fig19": [Paper(f"{name}: balancing over partitioning by PowerGraph", "0.1", lambda figure, name=name: (
        f"{figure.value(name, 'seconds'):.0f} s of balancing")) for name in ("BFS", "PR")],
}


class Figure:
    """The model's answer to one figure."""

    def __init__(self, answer):
        self.title, self.columns, self.note = answer["title"], answer["columns"], answer["note"]
        self.rows = {row["label"]: row["values"] for row in answer["rows"]}

    def value(self, label, column):
        return self.rows[label][self.columns.index(column)]


class Bench:
    def __init__(self, asked):
        self.asked, self.folder = asked, pathlib.Path(asked.folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def modelled(self, name):
        """Prints what the paper says beside the model, then all rows of the model."""
        command = [self.asked.sim, "model", name, "--json"]
        answer = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
        (self.folder / f"{name}.json").write_text(answer)
        figure = Figure(json.loads(answer))
        print(f"\n## {name}: {figure.title}\n")
        print(markdown(["", "paper", "model"], [[of.what, cell(of.number), cell(of.find(figure))] for of in PAPER[name]]), end="\n\n")
        rows = [[label, *map(cell, values)] for label, values in figure.rows.items()]
        width = len(figure.columns) + 1
        print(markdown(["model", *figure.columns], [row + [""] * (width - len(row)) for row in rows]))
        if figure.note:
            print(f"\n{figure.note}")
        return figure

    def measured(self, name):
        """Prints what the model says, then what this machine does."""
        figure = self.modelled(name)
        try:
            rows = chaos_measured.FIGURES[name](self, figure)
        except OSError as failed:
            rows = f"skipped: no limits of the disk's rate here: {failed}"
        if isinstance(rows, str):
            return print(f"\n{rows}")
        print(f"\nMedians of {self.asked.rounds} rounds in turn, load {os.getloadavg()[0]:.1f}\n")
        print(markdown(["this machine", "paper", "model", "measured"], [[cell(value) for value in row] for row in rows]))


def cell(value):
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}" if isinstance(value, float) else str(value)


def markdown(heads, rows):
    line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
    return "\n".join([line(heads), line("---" for _ in heads), *map(line, rows)])


# Maps a name to the function that prints its numbers, and to their source.
FIGURES = {name: (lambda bench, name=name: bench.modelled(name), "model") for name in PAPER}
FIGURES |= {name: (lambda bench, name=name: bench.measured(name), "model, this machine") for name in chaos_measured.FIGURES}
FIGURES |= chaos_measured.WHOLE


def model(bench):
    for name in PAPER:
        bench.modelled(name)


def listed(_):
    print(markdown(["name", "source"], [[name, source] for name, (_, source) in FIGURES.items()]))


def main():
    whole = {"model": model, "list": listed}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*FIGURES, *whole])
    parser.add_argument("folder", help="where graphs and answers are kept")
    parser.add_argument("--sim", help="the command graphmill-sim [built from here]")
    parser.add_argument("--graphmill", help="the command graphmill [built from here]")
    for name in ("xstream", "chaos"):
        parser.add_argument(f"--{name}", type=pathlib.Path, help="its benchmark_driver, for table1 [no row]")
    parser.add_argument("--scale", type=int, help="of the graph: 2^SCALE vertices [24; of figures 20]")
    parser.add_argument("--memory", default="512M", help="of each system")
    parser.add_argument("--limit", default="640M", help="of memory with the page cache, in table1; needs root")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--disk-rate", type=float, default=100e6,
                        help="of a slower disk: bytes a second; the paper has 400 MB/s for 16 cores [%(default).0f]")
    asked = parser.parse_args()
    source = FIGURES.get(asked.name, (None, "model" if asked.name == "model" else ""))[1]
    if "model" in source or "simulated" in source:
        asked.sim = asked.sim or built("graphmill-sim", "graphmill-sim")
    if "machine" in source:
        asked.graphmill = pathlib.Path(asked.graphmill or built("graphmill-cli", "graphmill")).resolve()
    of = whole.get(asked.name) or FIGURES[asked.name][0]
    of(Bench(asked))


def built(package, command):
    root = pathlib.Path(__file__).resolve().parent.parent
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", package], check=True, cwd=root)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"), "release", command).absolute()


if __name__ == "__main__":
    main()
