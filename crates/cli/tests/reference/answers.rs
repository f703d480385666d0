//! The known answers to a reference graph: a summary for each, and for most the vectors.

use std::path::Path;

use crate::npz::{self, Vector};

/// The content of `answers/NAME.json` and `NAME.npz` that our algorithms need.
///
/// Vectors go by vertex 0..n.
pub(crate) struct Answers {
    pub(crate) vertices: u64,
    /// Distinct edges.
    pub(crate) edges: u64,
    pub(crate) arcs: u64,
    pub(crate) directed: bool,
    /// Of bfs and sssp.
    pub(crate) source: u64,
    pub(crate) components: Components,
    /// Of a directed graph; an undirected one has no other than its components.
    pub(crate) strong: Option<Components>,
    /// Vertices of the greedy independent set in order of ids.
    pub(crate) independent: u64,
    /// After ten rounds.
    pub(crate) communities: Communities,
    pub(crate) depths: Depths,
    pub(crate) distances: Distances,
    pub(crate) ranks: Ranks,
}

pub(crate) struct Components {
    pub(crate) count: u64,
    pub(crate) largest: u64,
    pub(crate) labels: Option<Vec<u64>>,
}

pub(crate) struct Communities {
    pub(crate) count: u64,
    pub(crate) labels: Option<Vec<u64>>,
}

pub(crate) struct Depths {
    pub(crate) reached: u64,
    pub(crate) greatest: u64,
    pub(crate) depths: Option<Vec<Option<u64>>>,
}

pub(crate) struct Distances {
    pub(crate) greatest: f64,
    pub(crate) sum: f64,
    pub(crate) distances: Option<Vec<Option<f64>>>,
}

/// Converged PageRank, and that of 20 iterations.
pub(crate) struct Ranks {
    pub(crate) top: Vec<(u64, f64)>,
    pub(crate) top_after_20: (u64, f64),
    pub(crate) after_20: Option<Vec<f64>>,
    /// With the relative precision of the file, which has 32-bit floats for large graphs.
    pub(crate) converged: Option<(Vec<f64>, f64)>,
}

impl Answers {
    fn summary(data: &Path, name: &str) -> serde_json::Value {
        let file = data.join("answers").join(format!("{name}.json"));
        let text = std::fs::read_to_string(file).expect("the summary");
        serde_json::from_str(&text).expect("a summary in JSON")
    }

    /// The number of vertices of a graph.
    pub(crate) fn vertices(data: &Path, name: &str) -> u64 {
        Self::summary(data, name)["n"].as_u64().expect("a number")
    }

    /// The number of arcs of a graph, and whether it is directed.
    pub(crate) fn kind(data: &Path, name: &str) -> (u64, bool) {
        let json = Self::summary(data, name);
        let arcs = json["arcs"].as_u64().expect("a number");
        (arcs, json["directed"].as_bool().expect("directed"))
    }

    pub(crate) fn load(data: &Path, name: &str) -> Answers {
        let folder = data.join("answers");
        let json = Self::summary(data, name);
        let float = |at: &str| {
            json.pointer(at)
                .and_then(|value| value.as_f64())
                .unwrap_or_else(|| panic!("{name}: {at}"))
        };
        let count = |at: &str| {
            json.pointer(at)
                .and_then(|value| value.as_u64())
                .unwrap_or_else(|| panic!("{name}: {at}"))
        };

        let file = folder.join(format!("{name}.npz"));
        let mut vectors = if file.exists() {
            npz::read(&file)
        } else {
            Default::default()
        };
        let mut integers = |name: &str| match vectors.remove(name)? {
            Vector::Integers(values) => Some(values),
            Vector::Floats(..) => panic!("{name} should be integers"),
        };
        let mut labels = |name: &str| -> Option<Vec<u64>> {
            let labels = integers(name)?.into_iter();
            Some(labels.map(|label| label as u64).collect())
        };
        let (weak_labels, strong_labels) = (labels("wcc"), labels("scc"));
        let community_labels = labels("cdlp10");
        let depths = integers("bfs").map(|depths| {
            depths
                .into_iter()
                .map(|depth| u64::try_from(depth).ok())
                .collect()
        });
        let reached = |distance: i64| (distance >= 0).then_some(distance as f64);
        let distances =
            integers("sssp").map(|distances| distances.into_iter().map(reached).collect());
        let mut floats = |name: &str| match vectors.remove(name)? {
            Vector::Floats(values, narrow) => Some((values, if narrow { 1.2e-7 } else { 1e-9 })),
            Vector::Integers(_) => panic!("{name} should be floats"),
        };

        let best = (0..10).map(|place| {
            (
                count(&format!("/pr/top10/{place}")),
                float(&format!("/pr/top10_values/{place}")),
            )
        });
        Answers {
            vertices: count("/n"),
            edges: count("/m"),
            arcs: count("/arcs"),
            directed: json["directed"].as_bool().expect("directed"),
            source: count("/source"),
            components: Components {
                count: count("/wcc/count"),
                largest: count("/wcc/largest"),
                labels: weak_labels,
            },
            strong: json.get("scc").map(|_| Components {
                count: count("/scc/count"),
                largest: count("/scc/largest"),
                labels: strong_labels,
            }),
            independent: count("/lexfirst_mis/size"),
            communities: Communities {
                count: count("/cdlp10/communities"),
                labels: community_labels,
            },
            depths: Depths {
                reached: count("/bfs/reached"),
                greatest: count("/bfs/ecc"),
                depths,
            },
            distances: Distances {
                greatest: float("/sssp/max"),
                sum: float("/sssp/sum"),
                distances,
            },
            ranks: Ranks {
                top: best.collect(),
                top_after_20: (count("/pr20/argmax"), float("/pr20/max")),
                after_20: floats("pr20").map(|(ranks, _)| ranks),
                converged: floats("pr"),
            },
        }
    }
}
