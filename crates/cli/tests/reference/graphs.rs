//! The reference graphs: their many formats read into one list of edges over vertices 0..n, written as text that `import` reads.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::webgraph;

/// How a file of the collection is to be read.
#[derive(Clone, Copy)]
enum Format {
    /// `n,m,u|d,...`, then `u,v` from 1.
    SnapJulia,
    /// METIS: `n m [0]`, then a line of neighbours from 1 for each vertex.
    Metis,
    /// `a u v w` from 0.
    Road,
    /// 32-bit pairs from 1; the weight is the distance of the two points in the `.co.bin.gz` beside it.
    Points,
    /// `u v [w]` between the vertices that occur or that the `.v.gz` beside it lists; numbered by rank.
    Ranked,
    /// `u v` from 0.
    Plain,
    /// BVGraph.
    Web,
}

/// Every graph with an answer for our algorithms that can be read here: name, file, format.
const FILES: &[(&str, &str, Format)] = &[
    (
        "amsterdam-roads",
        "roads/amsterdam.gr.bin.gz",
        Format::Points,
    ),
    (
        "as-caida20071105",
        "snapjl/as-caida20071105.jlg.gz",
        Format::SnapJulia,
    ),
    (
        "ca-AstroPh-cc1",
        "snapjl/astro-ph-cc1.jlg.gz",
        Format::SnapJulia,
    ),
    (
        "cit-HepPh",
        "snapjl/arxiv-cit-hep-ph.jlg.gz",
        Format::SnapJulia,
    ),
    ("cnr-2000", "webgraph-cnr-2000/cnr-2000.graph", Format::Web),
    (
        "email-Enron",
        "snapjl/email-enron.jlg.gz",
        Format::SnapJulia,
    ),
    (
        "facebook-combined",
        "snapjl/facebook-combined.jlg.gz",
        Format::SnapJulia,
    ),
    ("metis-4elt", "networkit/4elt.graph.gz", Format::Metis),
    (
        "metis-PGPgiantcompo",
        "networkit/PGPgiantcompo.graph",
        Format::Metis,
    ),
    ("metis-airfoil1", "networkit/airfoil1.graph", Format::Metis),
    (
        "metis-astro-ph",
        "networkit/astro-ph.graph.gz",
        Format::Metis,
    ),
    ("metis-hep-th", "networkit/hep-th.graph", Format::Metis),
    ("metis-polblogs", "networkit/polblogs.graph", Format::Metis),
    ("metis-power", "networkit/power.graph", Format::Metis),
    ("metis-wing", "networkit/wing.graph.gz", Format::Metis),
    ("p2p-31-directed", "ldbc-p2p-31/p2p-31.e.gz", Format::Ranked),
    ("road-bremen_dist", "roads/bremen_dist.gr.gz", Format::Road),
    ("road-graph_23rd", "roads/graph_23rd.gr.gz", Format::Road),
    (
        "road-graph_ballard",
        "roads/graph_ballard.gr.gz",
        Format::Road,
    ),
    (
        "road-south_seattle_car",
        "roads/south_seattle_car.gr.gz",
        Format::Road,
    ),
    ("wiki-Vote", "networkit/wiki-Vote.txt.gz", Format::Ranked),
    ("wordnet30", "wordnet/wordnet30.el.gz", Format::Plain),
];

/// A graph as its file has it, duplicates and both directions of an undirected edge included.
pub(crate) struct Graph {
    /// The id that the file uses for each vertex, ascending.
    pub(crate) ids: Vec<u64>,
    /// Edges between positions in `ids`, with their weights.
    pub(crate) edges: Vec<(u64, u64, f64)>,
    pub(crate) directed: bool,
}

impl Graph {
    /// Reads the graph that `answers/NAME.json` is about; none when its format is not read here.
    pub(crate) fn load(data: &Path, name: &str, vertices: u64, directed: bool) -> Option<Graph> {
        let (_, file, format) = FILES.iter().find(|row| row.0 == name)?;
        let path = data.join(file);
        let ids = (0..vertices).collect();
        let unweighted = |edges: Vec<(u64, u64)>| {
            edges
                .into_iter()
                .map(|(u, v)| (u, v, rule_weight(u, v)))
                .collect()
        };
        let (ids, edges) = match format {
            Format::SnapJulia => {
                let text = text(&path);
                let header = text.lines().next().unwrap_or_default();
                assert_eq!(
                    header.split(',').nth(2) == Some("d"),
                    directed,
                    "{name}: direction in the header"
                );
                let edges = text
                    .lines()
                    .skip(1)
                    .map(|line| pair(&numbers(line, ',')))
                    .map(|(u, v)| (u - 1, v - 1));
                (ids, unweighted(edges.collect()))
            }
            Format::Metis => {
                let text = text(&path);
                let mut lines = text.lines().filter(|line| !line.starts_with('%'));
                let header = numbers(lines.next().expect("a header"), ' ');
                assert!(
                    header.len() < 3 || header[2] == 0,
                    "{name}: METIS without weights"
                );
                let lists = (0..header[0]).zip(lines);
                let edges = lists
                    .flat_map(|(u, line)| numbers(line, ' ').into_iter().map(move |v| (u, v - 1)));
                (ids, unweighted(edges.collect()))
            }
            Format::Road => {
                let text = text(&path);
                let lines = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("a "))
                    .map(|line| numbers(line, ' '));
                (
                    ids,
                    lines
                        .map(|line| (line[0], line[1], line[2] as f64))
                        .collect(),
                )
            }
            Format::Points => {
                let pairs = |path: &Path| -> Vec<(i32, i32)> {
                    let bytes = bytes(path);
                    let number = |at: &[u8]| i32::from_le_bytes(at.try_into().expect("4 bytes"));
                    bytes
                        .chunks_exact(8)
                        .map(|pair| (number(&pair[..4]), number(&pair[4..])))
                        .collect()
                };
                let points = pairs(&data.join("roads/amsterdam.co.bin.gz"));
                let edges = pairs(&path).into_iter().map(|(u, v)| {
                    let (a, b) = (points[u as usize - 1], points[v as usize - 1]);
                    let distance =
                        (f64::from(a.0) - f64::from(b.0)).hypot(f64::from(a.1) - f64::from(b.1));
                    (
                        u as u64 - 1,
                        v as u64 - 1,
                        (distance + 0.5).floor().max(1.0),
                    )
                });
                (ids, edges.collect())
            }
            Format::Ranked => {
                let text_of_edges = text(&path);
                let lines = text_of_edges.lines().filter(|line| !line.starts_with('#'));
                let lines: Vec<Vec<u64>> = lines
                    .map(|line| numbers(line, ' '))
                    .filter(|line| !line.is_empty())
                    .collect();
                let list = PathBuf::from(path.to_string_lossy().replace(".e.gz", ".v.gz"));
                let mut ids: Vec<u64> = if list == path {
                    lines.iter().flat_map(|line| [line[0], line[1]]).collect()
                } else {
                    text(&list)
                        .lines()
                        .map(|line| numbers(line, ' ')[0])
                        .collect()
                };
                ids.sort_unstable();
                ids.dedup();
                let rank = |id: u64| ids.binary_search(&id).expect("a listed vertex") as u64;
                let edge = |line: &Vec<u64>| {
                    let (u, v) = (rank(line[0]), rank(line[1]));
                    (
                        u,
                        v,
                        line.get(2)
                            .map_or(rule_weight(u, v), |weight| *weight as f64),
                    )
                };
                let edges = lines.iter().map(edge).collect();
                (ids, edges)
            }
            Format::Web => (ids, unweighted(webgraph::arcs(&bytes(&path), vertices))),
            Format::Plain => (
                ids,
                unweighted(
                    text(&path)
                        .lines()
                        .map(|line| pair(&numbers(line, ' ')))
                        .collect(),
                ),
            ),
        };
        Some(Graph {
            ids,
            edges,
            directed,
        })
    }

    /// The file of the collection itself, where it is one that `import` reads as it is, without weights.
    pub(crate) fn own_file(data: &Path, name: &str) -> Option<PathBuf> {
        let (_, file, format) = FILES.iter().find(|row| row.0 == name)?;
        matches!(format, Format::Ranked | Format::Plain).then(|| data.join(file))
    }

    /// Each arc once, with the least of its weights, both ways unless the graph is directed.
    pub(crate) fn arcs(&self) -> Vec<(u64, u64, f64)> {
        let mut arcs = self.edges.clone();
        if !self.directed {
            arcs.extend(self.edges.iter().map(|&(u, v, weight)| (v, u, weight)));
        }
        deduplicate(&mut arcs);
        arcs
    }

    /// Writes the edges (`u v w` in the file's own ids) and the vertices; returns the two paths.
    pub(crate) fn write(&self, folder: &Path) -> (PathBuf, PathBuf) {
        self.write_edges(&self.edges, folder)
    }

    /// Writes each edge once, with the least of its weights, for imports that keep duplicates.
    ///
    /// With `undirected` an edge and its opposite are one.
    pub(crate) fn write_once(&self, undirected: bool, folder: &Path) -> (PathBuf, PathBuf) {
        let mut edges = self.edges.clone();
        if undirected {
            let ordered = |edge: &mut (u64, u64, f64)| {
                *edge = (edge.0.min(edge.1), edge.0.max(edge.1), edge.2);
            };
            edges.iter_mut().for_each(ordered);
        }
        deduplicate(&mut edges);
        self.write_edges(&edges, folder)
    }

    fn write_edges(&self, list: &[(u64, u64, f64)], folder: &Path) -> (PathBuf, PathBuf) {
        let (mut edges, mut vertices) = (String::new(), String::new());
        for &(u, v, weight) in list {
            writeln!(
                edges,
                "{} {} {weight}",
                self.ids[u as usize], self.ids[v as usize]
            )
            .expect("a string grows");
        }
        for id in &self.ids {
            writeln!(vertices, "{id}").expect("a string grows");
        }
        let paths = (folder.join("edges.txt"), folder.join("vertices.txt"));
        std::fs::write(&paths.0, edges).expect("the edges are written");
        std::fs::write(&paths.1, vertices).expect("the vertices are written");
        paths
    }
}

/// Sorts edges, and leaves each once with the least of its weights.
fn deduplicate(edges: &mut Vec<(u64, u64, f64)>) {
    edges.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    edges.dedup_by_key(|edge| (edge.0, edge.1));
}

/// The weight that the collection gives to unweighted graphs.
fn rule_weight(u: u64, v: u64) -> f64 {
    (1 + (31 * u.min(v) + 17 * u.max(v)) % 64) as f64
}

/// The content of a file, unpacked when its name ends in .gz.
pub(crate) fn text(path: &Path) -> String {
    String::from_utf8(bytes(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bytes(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|extension| extension != "gz") {
        return packed;
    }
    let mut bytes = Vec::new();
    let unpacked = flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut bytes);
    unpacked.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    bytes
}

/// The numbers of a line, between `separator` or white space.
fn numbers(line: &str, separator: char) -> Vec<u64> {
    let words = line
        .split(|c: char| c == separator || c.is_whitespace())
        .filter(|word| !word.is_empty());
    words
        .map(|word| {
            word.parse()
                .unwrap_or_else(|error| panic!("{line:?}: {error}"))
        })
        .collect()
}

fn pair(numbers: &[u64]) -> (u64, u64) {
    (numbers[0], numbers[1])
}
