//! The case that a seed draws: a graph, a question about it, and the machines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use graphmill::advanced::{CombineChoice, StealBias, UpdateResidency};
use graphmill::{CheckpointInterval, EdgeKind, ImportConfig, Layout, Order};
use graphmill_storage::SplitMix64;

/// The file of values, and of the vertices of a set.
pub(crate) const VECTOR: &str = "/vector.txt";

/// A graph, a question and a cluster.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The seed of the case.
    pub seed: u64,
    /// Edges between ids, with weights.
    pub edges: Vec<(u64, u64, u32)>,
    /// Options of the import.
    pub import: ImportConfig,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Options of the algorithm by name.
    pub options: Vec<(&'static str, String)>,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of threads of a rank.
    pub threads: usize,
    /// Bytes of memory of a rank beyond the least that it needs.
    pub slack: u64,
    /// True if edges belong in memory, where they fit: then searches and components run over lists.
    pub over_lists: bool,
    /// The choices of the stream executor, if the graph is in chunks.
    pub chunks: Option<ChunkChoices>,
    /// When messages are combined, if the bucket executor runs the case.
    pub buckets: Option<CombineChoice>,
    /// True if each rank has its own disk.
    pub own_disks: bool,
    /// True if the run names a checkpoint directory.
    pub named: bool,
    /// Interval between checkpoints.
    pub every: CheckpointInterval,
    /// Number of checkpoints that are kept.
    pub keep: usize,
    /// Number of attempts with faults.
    pub attempts: usize,
}

/// The choices of the stream executor.
#[derive(Debug, Clone, Copy)]
pub struct ChunkChoices {
    /// Where updates go.
    pub updates: UpdateResidency,
    /// When ranks help others.
    pub steal: StealBias,
    /// Requests on their way.
    pub window: Option<usize>,
}

impl Scenario {
    /// Draws the case of a seed.
    pub fn draw(seed: u64) -> Scenario {
        let mut case = Scenario::draw_usual(seed);
        // Small seeds stay the cases that they were before there were these.
        if seed >= LATER_SEEDS && seed % 5 == 4 {
            let random = &mut SplitMix64::new(seed ^ 0x5a5a);
            (case.algorithm, case.options) = case.draw_sum(random);
        } else if seed >= LATER_SEEDS && seed % 5 == 3 {
            case.draw_beliefs(&mut SplitMix64::new(seed ^ 0x5a5a));
        }
        // Half of the cases are in chunks.
        let random = &mut SplitMix64::new(seed ^ 0xc4a0);
        if random.below(2) == 0 {
            case.draw_chunks(random);
        } else if seed >= LATER_SEEDS {
            case.draw_buckets(&mut SplitMix64::new(seed ^ 0xb0c4));
        }
        case
    }

    /// Draws a case of the algorithms that every seed may have.
    fn draw_usual(seed: u64) -> Scenario {
        let mut random = SplitMix64::new(seed);
        let mut one_of = |count: u64| random.below(count);
        let directed = one_of(2) == 0;
        let ranks = [1, 1, 2, 3, 4][one_of(5) as usize];
        // Every rank has at least one batch.
        let spread = 2 << one_of(8);
        let vertices = ranks as u64 * 4 + one_of(spread);
        let (arcs, kind) = (one_of(4 * vertices + 1), one_of(4));
        let (stride, first) = [(1, 0), (7, 3), (1 << 33, 5)][one_of(3) as usize];
        let mut edges = vec![];
        for i in 0..arcs {
            let (from, to) = match kind {
                // Random edges, with loops and duplicates.
                0 => (one_of(vertices), one_of(vertices)),
                // A path.
                1 => (i % vertices, (i + 1) % vertices),
                // A hub.
                2 => (0, one_of(vertices)),
                // Neighbours.
                _ => {
                    let from = one_of(vertices);
                    (from, (from + one_of(3)) % vertices)
                }
            };
            edges.push((from, to, 1 + one_of(9) as u32));
        }
        // Each vertex gets an edge, so that the graph has as many vertices as were drawn. The edge is a loop, or comes from another
        // vertex; then some vertices may have no outgoing edge.
        let are_sinks = one_of(3) == 0;
        edges.extend((0..vertices).map(|v| (if are_sinks { 0 } else { v }, v, 1)));
        for (from, to, _) in &mut edges {
            (*from, *to) = (*from * stride + first, *to * stride + first);
        }
        let source = edges[one_of(edges.len() as u64) as usize].0.to_string();
        let (algorithm, options) = match one_of(6) {
            0 => (
                "pagerank",
                vec![("iterations", (1 + one_of(8)).to_string())],
            ),
            1 => ("bfs", vec![("source", source)]),
            2 => ("wcc", vec![("method", "labels".to_string())]),
            3 => (
                "pagerank",
                vec![
                    ("method", "pregel-pull".to_string()),
                    ("iterations", (1 + one_of(5)).to_string()),
                ],
            ),
            4 => ("sssp", vec![("source", source)]),
            _ => (
                "sssp",
                vec![("source", source), ("method", "bellman-ford".to_string())],
            ),
        };
        let every = match one_of(4) {
            0 => CheckpointInterval::Calls(1 + one_of(3)),
            1 => CheckpointInterval::Time(Duration::from_millis(one_of(200))),
            _ => CheckpointInterval::Calls(1),
        };
        let mut case = Scenario {
            seed,
            edges,
            import: ImportConfig {
                directed,
                weights: match one_of(2) {
                    0 => EdgeKind::F32,
                    _ => EdgeKind::None,
                },
                reverse: directed && one_of(4) == 0,
                order: [Order::Degree, Order::Id, Order::Id, Order::Id][one_of(4) as usize],
                batch_size: Some([1, 3, 7, 64][one_of(4) as usize]),
                keep_every: (one_of(4) > 0).then_some(Duration::ZERO),
                ..ImportConfig::default()
            },
            algorithm,
            options,
            ranks,
            threads: 1 + one_of(3) as usize,
            slack: [0, 0, 1 << 16, 1 << 24][one_of(4) as usize],
            over_lists: false,
            chunks: None,
            buckets: None,
            own_disks: one_of(2) == 0,
            named: one_of(3) > 0,
            every,
            keep: 1 + one_of(2) as usize,
            attempts: one_of(7) as usize,
        };
        case.draw_exact(&mut one_of);
        case.over_lists = one_of(4) == 0;
        if case.over_lists {
            case.slack = 1 << 24;
            if case.algorithm == "wcc" {
                case.options.clear();
            }
        }
        case
    }

    /// Replaces the algorithm in four seeds of nine, so that other seeds keep their cases.
    fn draw_exact(&mut self, one_of: &mut impl FnMut(u64) -> u64) {
        match self.seed % 9 {
            1 => {
                let priority = ["hash", "id"][one_of(2) as usize];
                self.algorithm = "mis";
                self.options = vec![
                    ("priority", priority.to_string()),
                    ("seed", one_of(5).to_string()),
                ];
            }
            2 => (self.algorithm, self.options) = ("scc", Vec::new()),
            3 if self.seed >= LATER_SEEDS => (self.algorithm, self.options) = ("mst", Vec::new()),
            8 if self.seed >= LATER_SEEDS => {
                self.algorithm = "cdlp";
                self.options = vec![("iterations", one_of(9).to_string())];
            }
            _ => (),
        }
    }
}

/// Seeds from which on some cases are about sums over one pass or beliefs, or are in buckets.
const LATER_SEEDS: u64 = 64;

impl Scenario {
    /// Draws a question that takes one pass and a file or a rule for its vertices.
    fn draw_sum(&self, random: &mut SplitMix64) -> (&'static str, Vec<(&'static str, String)>) {
        let mut one_of = |count: u64| random.below(count);
        let (algorithm, mut options, flag) = match one_of(2) {
            0 => {
                let set = ["odd", "even", VECTOR][one_of(3) as usize];
                ("conductance", vec![("set", set.to_string())], "weighted")
            }
            _ => {
                let vector = ["ones", VECTOR, VECTOR][one_of(3) as usize];
                ("spmv", vec![("vector", vector.to_string())], "transpose")
            }
        };
        if one_of(2) == 0 {
            options.push((flag, "true".to_string()));
        }
        (algorithm, options)
    }

    /// Draws a question about beliefs, whose edges need vertices.
    fn draw_beliefs(&mut self, random: &mut SplitMix64) {
        let mut one_of = |count: u64| random.below(count);
        let potential = ["4,1,1,2", "1,3,3,2", "1,2,3,4"]
            [one_of(if self.import.directed { 3 } else { 2 }) as usize];
        self.algorithm = "bp";
        self.options = vec![
            ("potential", potential.to_string()),
            ("iterations", (1 + one_of(4)).to_string()),
        ];
        if one_of(4) > 0 {
            self.options.push(("priors", VECTOR.to_string()));
        }
        self.import = ImportConfig {
            edge_vertices: true,
            order: Order::Id,
            reverse: false,
            ..self.import.clone()
        };
    }

    /// Puts the graph in chunks, and draws the choices of their executor.
    fn draw_chunks(&mut self, random: &mut SplitMix64) {
        let mut one_of = |count: u64| random.below(count) as usize;
        // Labels of groups need columns.
        if self.algorithm == "cdlp" {
            let method = ("method", "labels".to_string());
            let options = [vec![], vec![method]][one_of(2)].clone();
            (self.algorithm, self.options) = ("wcc", options);
        }
        // Each of these edges would be a vertex.
        if !self.import.edge_vertices && one_of(4) == 0 {
            self.add_edges(&mut one_of);
        }
        self.over_lists = false;
        self.import = ImportConfig {
            layout: Layout::Stream,
            chunk_size: Some(4096),
            order: Order::Id,
            batch_size: Some([1, 2, 8, 64][one_of(4)].max(self.least_batch())),
            ..self.import.clone()
        };
        let updates = [
            UpdateResidency::Auto,
            UpdateResidency::Memory,
            UpdateResidency::Disk,
            UpdateResidency::Disk,
        ];
        let updates = updates[one_of(4)];
        if updates == UpdateResidency::Memory {
            self.slack = 1 << 20;
        }
        let never_to_always = [StealBias::NEVER, StealBias::PAPER, StealBias::ALWAYS];
        self.chunks = Some(ChunkChoices {
            updates,
            steal: never_to_always[one_of(3)],
            window: [None, Some(1), Some(3)][one_of(3)],
        });
    }

    /// Gives half of the cases that the bucket executor can run to it.
    fn draw_buckets(&mut self, random: &mut SplitMix64) {
        let has_rows = self.option("method").starts_with("pregel");
        let has_edge_vertices = self.import.edge_vertices;
        if self.over_lists || has_rows || has_edge_vertices || random.below(2) == 0 {
            return;
        }
        let choices = [
            CombineChoice::Auto,
            CombineChoice::Never,
            CombineChoice::Always,
        ];
        self.buckets = Some(choices[random.below(3) as usize]);
        self.import.reverse = self.import.directed;
    }

    /// Returns the vertices of a batch at least: each batch takes memory in each pass.
    fn least_batch(&self) -> u64 {
        let ends = self.edges.iter().flat_map(|edge| [edge.0, edge.1]);
        let ids = ends.collect::<BTreeSet<u64>>().len() as u64;
        let of_edges = u64::from(self.import.edge_vertices) * self.edges.len() as u64;
        ((ids + of_edges) / 16).next_power_of_two()
    }

    /// Adds edges, from one vertex, a few or all: then some batches have many chunks.
    fn add_edges(&mut self, one_of: &mut impl FnMut(u64) -> usize) {
        let count = self.edges.len() as u64;
        let sources = [1, 4, count][one_of(3)];
        for _ in 0..one_of(12_000) {
            let (from, to) = (self.edges[one_of(sources)].0, self.edges[one_of(count)].1);
            self.edges.push((from, to, 1 + one_of(9) as u32));
        }
    }

    /// True if two results are the same: sums of floats in any order within 1e-9, others byte by byte.
    pub(crate) fn are_same(&self, one: &[u8], other: &[u8]) -> bool {
        let adds = matches!(self.algorithm, "pagerank" | "spmv" | "bp" | "conductance");
        let has_order = self.chunks.is_none() && self.buckets.is_none();
        one == other || !has_order && adds && are_close(one, other)
    }

    /// Returns the value of an option; empty if it is not given.
    pub(crate) fn option(&self, name: &str) -> &str {
        let found = self.options.iter().find(|option| option.0 == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the values that the file has: of each third vertex.
    pub(crate) fn vector(&self) -> BTreeMap<u64, f64> {
        let ends = self.edges.iter().flat_map(|edge| [edge.0, edge.1]);
        let ids: BTreeSet<u64> = ends.collect();
        let some = ids.into_iter().step_by(3).zip(1..);
        // Of beliefs, probabilities.
        let most = if self.algorithm == "bp" { 5 } else { u32::MAX };
        some.map(|(id, number)| (id, f64::from(number % most) / 4.0))
            .collect()
    }
}

/// True if two tables have the same fields, where numbers may differ by 1e-9 of them.
fn are_close(one: &[u8], other: &[u8]) -> bool {
    let fields = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        text.split([',', '\n']).map(String::from).collect()
    };
    let (one, other) = (fields(one), fields(other));
    let is_close = |(one, other): (&String, &String)| {
        let numbers = one.parse::<f64>().ok().zip(other.parse::<f64>().ok());
        let near =
            |(one, other): (f64, f64)| (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
        one == other || numbers.is_some_and(near)
    };
    one.len() == other.len() && one.iter().zip(&other).all(is_close)
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let if_so = |is_so, text| if is_so { text } else { "" };
        write!(
            f,
            "{} edges, {}{}, batches of {:?}, {} {:?}{}, {} ranks of {} threads{}, {:?}, {} kept",
            self.edges.len(),
            ["undirected", "directed"][usize::from(self.import.directed)],
            if_so(self.import.reverse, " both ways"),
            self.import.batch_size,
            self.algorithm,
            self.options,
            match &self.chunks {
                Some(chunks) => format!(" over chunks {chunks:?}"),
                None => match &self.buckets {
                    Some(combine) => format!(" in buckets, combine {combine:?}"),
                    None => if_so(self.over_lists, " over lists").to_string(),
                },
            },
            self.ranks,
            self.threads,
            if_so(self.own_disks, " with disks of their own"),
            self.every,
            self.keep,
        )
    }
}
