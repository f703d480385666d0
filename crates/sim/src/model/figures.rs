//! The rows of each figure of the paper that takes a cluster.

use graphmill_engine::chaos_model::{StealBias, batch_factor, utilization};

use super::algorithms::{ALGORITHMS, AlgorithmWork, algorithm};
use super::graph::ModelGraph;
use super::hardware::{CHUNK, ClusterSetup, Design, Hardware};
use super::job::{JobReport, run_job};

/// The figures, by the paper's numbers.
pub const FIGURES: [&str; 16] = [
    "fig5", "fig6", "fig7", "fig8", "capacity", "fig9", "fig10", "fig11", "fig12", "fig13",
    "fig14", "fig15", "fig16", "fig17", "fig18", "fig19",
];

const MACHINES: [usize; 6] = [1, 2, 4, 8, 16, 32];
const DESIGNS: [(Design, &str); 2] = [(Design::Chaos, "chaos"), (Design::Ours, "ours")];

/// The rows of a figure.
#[derive(Clone, Debug, Default)]
pub struct FigureTable {
    /// Content and unit of the rows.
    pub title: String,
    /// Names of the values of a row.
    pub columns: Vec<String>,
    /// Rows: a label and values.
    pub rows: Vec<(String, Vec<f64>)>,
    /// Where the model differs from the paper, and why.
    pub note: String,
}

impl FigureTable {
    fn new(title: &str, columns: &[impl ToString]) -> Self {
        FigureTable {
            title: title.to_string(),
            columns: columns.iter().map(ToString::to_string).collect(),
            ..FigureTable::default()
        }
    }

    fn row(&mut self, label: impl ToString, values: Vec<f64>) {
        self.rows.push((label.to_string(), values));
    }

    fn noted(mut self, note: &str) -> Self {
        self.note = note.to_string();
        self
    }

    /// Returns the values of a row.
    pub fn values(&self, label: &str) -> &[f64] {
        let found = self.rows.iter().find(|(of, _)| of == label);
        found.map_or(&[], |(_, values)| values)
    }
}

/// Returns the rows of a figure, or `None` if the model has no such figure.
///
/// `detail` is the number of chunks of edges a machine that are simulated in a pass; 2048 gives the published rows.
pub fn figure(name: &str, detail: f64) -> Option<FigureTable> {
    let model = Model { detail };
    Some(match name {
        "fig5" => utilizations(),
        "fig6" => model.weak_scaling(),
        "fig7" => model.strong_scaling(),
        "fig8" => model.data_commons(),
        "capacity" => model.capacity(),
        "fig9" => model.cores(),
        "fig10" => model.disks(),
        "fig11" => model.networks(),
        "fig12" => model.checkpoints(),
        "fig13" => model.bandwidth(),
        "fig14" => model.directory(),
        "fig15" => model.windows(),
        "fig16" => model.breakdown(),
        "fig17" => model.bias(),
        "fig18" => model.static_partitions(),
        "fig19" => model.balancing(),
        _ => return None,
    })
}

fn utilizations() -> FigureTable {
    let factors = ["k=1", "k=2", "k=3", "k=4", "k=5", "batch factor"];
    let mut table = FigureTable::new("Utilization of a storage engine, by machines", &factors);
    for machines in MACHINES {
        let mut values: Vec<f64> = (1..=5).map(|k| utilization(machines, k)).collect();
        values.push(batch_factor(machines) as f64);
        table.row(machines, values);
    }
    table
}

struct Model {
    detail: f64,
}

/// The scale of RMAT that weak scaling has on this many machines.
fn weak(machines: usize) -> i32 {
    27 + machines.ilog2() as i32
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Model {
    fn setup(&self, machines: usize, hardware: Hardware, design: Design) -> ClusterSetup {
        ClusterSetup {
            sample: self.detail,
            ..ClusterSetup::new(machines, hardware, design)
        }
    }

    /// Runs an algorithm on RMAT of a scale.
    fn run(&self, setup: &ClusterSetup, scale: i32, name: &str) -> JobReport {
        run_job(setup, ModelGraph::rmat(scale), algorithm(name))
    }

    /// Seconds of weak scaling from RMAT-27, by machines.
    fn weak(&self, setup: impl Fn(usize) -> ClusterSetup, name: &str) -> [f64; 6] {
        MACHINES.map(|machines| self.run(&setup(machines), weak(machines), name).seconds)
    }

    /// Adds a row for BFS and for PR in both designs.
    fn rows(&self, table: &mut FigureTable, values: impl Fn(Design, &str) -> Vec<f64>) {
        for (design, of) in DESIGNS {
            for name in ["BFS", "PR"] {
                table.row(format!("{of} {name}"), values(design, name));
            }
        }
    }

    fn weak_scaling(&self) -> FigureTable {
        let title = "Weak scaling, RMAT-27 to RMAT-32, SSD: time over that of 1 machine";
        let mut table = FigureTable::new(title, &MACHINES);
        let more = ["seconds of 1", "X-Stream's", "Chaos'"];
        table.columns.extend(more.map(String::from));
        for (design, of) in DESIGNS {
            let mut all = Vec::new();
            for work in &ALGORITHMS {
                let seconds = self.weak(|m| self.setup(m, Hardware::SSD, design), work.name);
                let mut values = seconds.map(|time| time / seconds[0]).to_vec();
                all.push(values[5]);
                values.extend([seconds[0], work.table_1.0, work.table_1.1]);
                table.row(format!("{of} {}", work.name), values);
            }
            table.row(format!("{of} mean at 32"), vec![mean(&all)]);
        }
        table.noted(
            "The number of passes does not grow with the graph, and only chunks and state take the network. So the spread \
             is smaller than the paper's.",
        )
    }

    fn speedups(
        &self,
        title: &str,
        works: &[&AlgorithmWork],
        hardware: Hardware,
        graph: ModelGraph,
    ) -> FigureTable {
        let mut table = FigureTable::new(title, &MACHINES);
        for (design, of) in DESIGNS {
            let mut all = Vec::new();
            for work in works {
                let seconds = MACHINES
                    .map(|m| run_job(&self.setup(m, hardware, design), graph, work).seconds);
                all.push(seconds[0] / seconds[5]);
                table.row(
                    format!("{of} {}", work.name),
                    seconds.map(|time| seconds[0] / time).to_vec(),
                );
            }
            table.row(format!("{of} mean at 32"), vec![mean(&all)]);
        }
        table
    }

    fn strong_scaling(&self) -> FigureTable {
        let works: Vec<&AlgorithmWork> = ALGORITHMS.iter().collect();
        let title = "Strong scaling, RMAT-27, SSD: speedup over 1 machine";
        self.speedups(title, &works, Hardware::SSD, ModelGraph::rmat(27))
            .noted("At 32 machines a pass takes seconds. The paper has costs a pass that the model lacks.")
    }

    fn data_commons(&self) -> FigureTable {
        let works = [algorithm("BFS"), algorithm("PR")];
        let title = "Strong scaling, Data Commons, HDD: speedup over 1 machine";
        self.speedups(title, &works, Hardware::HDD, ModelGraph::data_commons())
            .noted(
                "The skew of Data Commons is not known here: ranges are taken as even, and BFS has the levels of RMAT. \
                 Ours exceeds 32 because rows are on disk on 1 and 2 machines, and in memory on more.",
            )
    }

    fn capacity(&self) -> FigureTable {
        let columns = ["TB", "hours", "GB/s", "updates folded"];
        let mut table = FigureTable::new("RMAT-36 on 32 machines, HDD: I/O and time", &columns);
        self.rows(&mut table, |design, name| {
            let found = self.run(&self.setup(32, Hardware::HDD, design), 36, name);
            let rate = found.bytes / found.seconds;
            vec![
                found.bytes / 1e12,
                found.seconds / 3600.0,
                rate / 1e9,
                found.folded,
            ]
        });
        table.noted(
            "2^36 vertices and 2^40 edges: the paper's 250 billion vertices is a slip. The paper's 7 GB/s is more than 32 \
             times the 200 MB/s of section 8, which bound the model at 6.4 GB/s.",
        )
    }

    fn by_hardware(&self, title: &str, cases: &[(&str, Hardware)]) -> FigureTable {
        let mut table = FigureTable::new(title, &MACHINES);
        for (design, of) in DESIGNS {
            for name in ["BFS", "PR"] {
                let base = self
                    .run(&self.setup(1, Hardware::SSD, design), 27, name)
                    .seconds;
                for &(case, hardware) in cases {
                    let seconds = self.weak(|m| self.setup(m, hardware, design), name);
                    let values = seconds.map(|time| time / base).to_vec();
                    table.row(format!("{of} {name} {case}"), values);
                }
            }
        }
        table
    }

    fn cores(&self) -> FigureTable {
        let of = |cores| Hardware {
            cores,
            ..Hardware::SSD
        };
        let cases = [("p=16", of(16.0)), ("p=12", of(12.0)), ("p=8", of(8.0))];
        let title = "Cores, weak scaling: time over that of 1 machine with 16 cores";
        self.by_hardware(title, &cases)
    }

    fn disks(&self) -> FigureTable {
        let cases = [("SSD", Hardware::SSD), ("HDD", Hardware::HDD)];
        self.by_hardware(
            "SSD and HDD, weak scaling: time over that of 1 machine with an SSD",
            &cases,
        )
        .noted(
            "At 32 machines PR is 1.84 times: merging does not follow the disk. With the faster rate of merging it is \
             1.95 times.",
        )
    }

    fn networks(&self) -> FigureTable {
        let cases = [("40GigE", Hardware::SSD), ("1GigE", Hardware::GIGABIT)];
        self.by_hardware("40 and 1 GigE, weak scaling: time over that of 1 machine", &cases)
            .noted(
                "Ours sends an accumulator for each vertex and machine, the paper's design an update for each edge. With \
                 16 edges a vertex these are equally many bytes at 32 machines.",
            )
    }

    fn checkpoints(&self) -> FigureTable {
        let title = "Checkpoints, RMAT-35 on 32 machines, HDD: time over that without";
        let mut table = FigureTable::new(title, &["with checkpoints"]);
        self.rows(&mut table, |design, name| {
            let seconds = |checkpoints| {
                let setup = self.setup(32, Hardware::HDD, design);
                let setup = ClusterSetup {
                    checkpoints,
                    ..setup
                };
                self.run(&setup, 35, name).seconds
            };
            vec![seconds(true) / seconds(false)]
        });
        table.noted(
            "One checkpoint a pass, after the gather phase: scatter changes no vertex value. Ours moves less than half of \
             the bytes in a pass, and its checkpoint is as large.",
        )
    }

    fn bandwidth(&self) -> FigureTable {
        let title = "Aggregate bandwidth, weak scaling: share of the rate of all disks";
        let mut table = FigureTable::new(title, &MACHINES);
        self.rows(&mut table, |design, name| {
            let busy = |machines| {
                let setup = self.setup(machines, Hardware::SSD, design);
                let found = self.run(&setup, weak(machines), name);
                found.disk_busy / found.seconds
            };
            MACHINES.map(busy).to_vec()
        });
        table.noted("Means of the whole run, with barriers, tails of phases and merging. Equation 2 draws all requests \
         anew at each moment. Here a queue stays until it is served, so that phi k requests leave disks idle more often; \
         a window of 32 gives weak scaling of 1.15 instead of 1.26.")
    }

    fn directory(&self) -> FigureTable {
        let title = "PR with a central directory, weak scaling: time over that of 1 machine";
        let mut table = FigureTable::new(title, &MACHINES);
        let with = |directory| {
            let setup = |m| ClusterSetup {
                directory,
                ..self.setup(m, Hardware::SSD, Design::Chaos)
            };
            self.weak(setup, "PR")
        };
        let base = with(None)[0];
        for micros in [0, 50, 200, 500] {
            let seconds = with((micros > 0).then_some(micros * 1000));
            let values = seconds.map(|time| time / base).to_vec();
            table.row(format!("{micros} us a request"), values);
        }
        table.noted(
            "32 disks of 400 MB/s serve 3,050 chunks of 4 MiB a second, so a directory binds above 330 us a request only. \
             The paper sees it earlier and does not say how long a request takes there.",
        )
    }

    fn windows(&self) -> FigureTable {
        let title =
            "Window, PR, RMAT-32 on 32 machines, latency = service: time over that of window 10";
        let mut table = FigureTable::new(title, &["time", "disks busy"]);
        // "The latency to the SSD is approximately equal to that on the 40 GigE network."
        let service = CHUNK as f64 / Hardware::SSD.disk;
        let hardware = Hardware {
            round_trip: (service * 1e9) as u64,
            ..Hardware::SSD
        };
        let run = |window| {
            let setup = self.setup(32, hardware, Design::Chaos);
            self.run(&ClusterSetup { window, ..setup }, 32, "PR")
        };
        let base = run(Some(10)).seconds;
        let mut add = |label: String, window| {
            let found = run(window);
            table.row(
                label,
                vec![found.seconds / base, found.disk_busy / found.seconds],
            );
        };
        for window in [1, 2, 3, 5, 10, 16, 32] {
            add(window.to_string(), Some(window));
        }
        add("phi k".to_string(), None);
        table.noted(
            "Wide windows do no harm here: the model has no incast, and long queues cost nothing. They help, because \
             queues at engines stay uneven.",
        )
    }

    fn breakdown(&self) -> FigureTable {
        let columns = ["own", "stolen", "copy and merge", "idle"];
        let title = "Breakdown of time, RMAT-32 on 32 machines, SSD: shares";
        let mut table = FigureTable::new(title, &columns);
        for (design, of) in DESIGNS {
            for work in &ALGORITHMS {
                let found = self.run(&self.setup(32, Hardware::SSD, design), 32, work.name);
                let all: f64 = found.split.iter().sum();
                let values = found.split.map(|part| part / all).to_vec();
                table.row(format!("{of} {}", work.name), values);
            }
        }
        table.noted(
            "Workers of the paper's design idle longer here than its 4 %. Of 0.155 for PR, 25 times the cores leave \
             0.129, so cores explain a part only; the rest is not taken apart. Uniform placement gives the fullest of 32 \
             engines 3 % more edges than the mean.",
        )
    }

    fn bias(&self) -> FigureTable {
        let biases = ["0", "0.8", "1", "1.2", "inf"];
        let title = "Bias of stealing, RMAT-32 on 32 machines, SSD: time over that of bias 1";
        let mut table = FigureTable::new(title, &biases);
        self.rows(&mut table, |design, name| {
            let seconds = biases.map(|bias| {
                let bias: StealBias = bias.parse().unwrap_or_default();
                let setup = self.setup(32, Hardware::SSD, design);
                self.run(&ClusterSetup { bias, ..setup }, 32, name).seconds
            });
            seconds.map(|time| time / seconds[2]).to_vec()
        });
        table.noted(
            "Ours has batches of a few chunks, which one worker asks for at once, and messages of a batch are small: any \
             bias above 0 decides alike.",
        )
    }

    fn static_partitions(&self) -> FigureTable {
        let title =
            "PR, RMAT-27: speedup over 1 machine, static partitions on the disks of their owners";
        let mut table = FigureTable::new(title, &MACHINES);
        let cases = [
            ("chaos", ModelGraph::rmat(27), false),
            ("static ranges", ModelGraph::rmat(27), true),
            ("static hashed", ModelGraph::hashed(27), true),
        ];
        for (label, graph, local) in cases {
            let seconds = MACHINES.map(|machines| {
                let mut setup = self.setup(machines, Hardware::SSD, Design::Chaos);
                if local {
                    (setup.local, setup.bias) = (true, StealBias::NEVER);
                }
                run_job(&setup, graph, algorithm("PR")).seconds
            });
            table.row(label, seconds.map(|time| seconds[0] / time).to_vec());
        }
        table.noted(
            "Giraph hashes its vertices. Hashed partitions of RMAT-27 are even, so skew alone does not explain its figure.",
        )
    }

    fn balancing(&self) -> FigureTable {
        let columns = [
            "seconds",
            "share of the run",
            "M edges/s for ten times as long",
        ];
        let title = "Copying, merging and idle time of a machine, RMAT-32 on 32 machines, SSD";
        let mut table = FigureTable::new(title, &columns);
        for work in &ALGORITHMS {
            let found = self.run(&self.setup(32, Hardware::SSD, Design::Chaos), 32, work.name);
            let cost = found.split[2] + found.split[3];
            let edges = ModelGraph::rmat(32).edges / 32.0;
            table.row(
                work.name,
                vec![cost, cost / found.seconds, edges / (10.0 * cost) / 1e6],
            );
        }
        table.noted(
            "PowerGraph is not modelled. The last column is the rate at which a machine partitions if that takes ten \
             times as long, as the paper says.",
        )
    }
}
