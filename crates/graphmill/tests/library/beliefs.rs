//! Belief propagation: on forests the marginals of all states, elsewhere a simulator of the same rounds, on any ranks, in any memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill::{
    CancelToken, CheckpointConfig, CheckpointInterval, Config, EdgeKind, ImportConfig, Plan,
    Progress, ProgressFn, unwatched,
};
use graphmill_storage::SplitMix64;
use tempfile::TempDir;

use crate::common::{MEMORY, machine, on_ranks, values};
use crate::sums::{read, run};

/// A Markov random field: vertices by their ids with priors, edges with weights, and a potential.
struct Field {
    name: &'static str,
    ids: Vec<String>,
    priors: Vec<Option<f64>>,
    edges: Vec<(usize, usize, f64)>,
    potential: [[f64; 2]; 2],
    directed: bool,
}

impl Field {
    fn prior(&self, vertex: usize) -> [f64; 2] {
        let prior = self.priors[vertex].unwrap_or(0.5);
        [1.0 - prior, prior]
    }

    fn factor(&self, weight: f64, source: usize, destination: usize) -> f64 {
        self.potential[source][destination].powf(weight)
    }

    /// The probability of state 1 of each vertex, from the sum over all states of all vertices.
    fn marginals(&self) -> Vec<f64> {
        let mut ones = vec![0.0; self.ids.len()];
        let mut all = 0.0;
        for states in 0..1_usize << self.ids.len() {
            let state = |vertex: usize| states >> vertex & 1;
            let priors = (0..self.ids.len()).map(|vertex| self.prior(vertex)[state(vertex)]);
            // Self-loops do not count.
            let edges = self.edges.iter().filter(|edge| edge.0 != edge.1);
            let edges = edges.map(|(source, destination, weight)| {
                self.factor(*weight, state(*source), state(*destination))
            });
            let product = priors.chain(edges).product::<f64>();
            all += product;
            for (vertex, sum) in ones.iter_mut().enumerate() {
                *sum += state(vertex) as f64 * product;
            }
        }
        ones.iter().map(|sum| sum / all).collect()
    }

    /// The probability of state 1 of each vertex after rounds in which each edge sends both ways.
    fn rounds(&self, count: usize) -> Vec<f64> {
        let edges: Vec<_> = self.edges.iter().filter(|edge| edge.0 != edge.1).collect();
        let scaled = |[zero, one]: [f64; 2]| [zero / (zero + one), one / (zero + one)];
        // The messages to the source and to the destination of each edge.
        let mut messages = vec![[[0.5; 2]; 2]; edges.len()];
        let belief = |messages: &[[[f64; 2]; 2]], vertex: usize, without: Option<usize>| {
            let mut belief = self.prior(vertex);
            for (edge, (source, destination, _)) in edges.iter().enumerate() {
                for (end, place) in [(*source, 0), (*destination, 1)] {
                    if end == vertex && Some(edge) != without {
                        let message = messages[edge][place];
                        belief = scaled([belief[0] * message[0], belief[1] * message[1]]);
                    }
                }
            }
            belief
        };
        for _ in 0..count {
            let next = edges
                .iter()
                .enumerate()
                .map(|(edge, (source, destination, weight))| {
                    let from_source = belief(&messages, *source, Some(edge));
                    let from_destination = belief(&messages, *destination, Some(edge));
                    let factor = |s, t| self.factor(*weight, s, t);
                    let to_source = [0, 1].map(|s| {
                        from_destination[0] * factor(s, 0) + from_destination[1] * factor(s, 1)
                    });
                    let to_destination = [0, 1]
                        .map(|t| from_source[0] * factor(0, t) + from_source[1] * factor(1, t));
                    [scaled(to_source), scaled(to_destination)]
                });
            messages = next.collect();
        }
        let vertices = 0..self.ids.len();
        vertices
            .map(|vertex| belief(&messages, vertex, None)[1])
            .collect()
    }

    fn edges(&self) -> String {
        let line = |(source, destination, weight): &(usize, usize, f64)| {
            format!(
                "{} {} {weight}\n",
                self.ids[*source], self.ids[*destination]
            )
        };
        self.edges.iter().map(line).collect()
    }

    /// Writes the files of priors and of vertices; returns the options of a run.
    fn write(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let [priors, vertices] = ["priors.csv", "vertices.txt"].map(|name| folder.join(name));
        let mut text = "vertex,p\n".to_string();
        for (id, prior) in self.ids.iter().zip(&self.priors).rev() {
            if let Some(prior) = prior {
                text += &format!("{id},{prior}\n");
            }
        }
        std::fs::write(&priors, text).expect("room");
        std::fs::write(&vertices, self.ids.join("\n")).expect("room");
        (priors, vertices)
    }

    fn import(&self, folder: &Path, batch_size: Option<u64>) -> PathBuf {
        let (file, graph) = (folder.join("edges.txt"), folder.join("graph"));
        let _ = std::fs::remove_dir_all(&graph);
        std::fs::write(&file, self.edges()).expect("room for edges");
        let config = ImportConfig {
            directed: self.directed,
            weights: EdgeKind::F64,
            edge_vertices: true,
            batch_size,
            vertices: vec![self.write(folder).1],
            ..ImportConfig::default()
        };
        let done = machine().import(&[file], &graph, &config, &unwatched());
        done.expect("a graph");
        graph
    }

    fn potential(&self) -> String {
        let [[a, b], [c, d]] = self.potential;
        format!("{a},{b},{c},{d}")
    }

    /// Runs it and compares; returns the bytes of the result.
    fn check(
        &self,
        graph: &Path,
        how: (usize, Option<u64>),
        rounds: usize,
        expected: &[f64],
    ) -> String {
        let case = format!("{}, {how:?}", self.name);
        let folder = graph.parent().expect("a folder");
        let (priors, result) = (folder.join("priors.csv"), folder.join("result.csv"));
        let (potential, rounds) = (self.potential(), rounds.to_string());
        let options = [
            ("priors", priors.to_str().expect("UTF-8")),
            ("potential", potential.as_str()),
            ("iterations", rounds.as_str()),
        ];
        let done = run("bp", &options, graph, &result, how).expect(&case);
        assert_eq!(done.vertices, self.ids.len() as u64, "{case}");
        let text = read(&result);
        let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
        let found: BTreeMap<String, f64> = rows
            .map(|(id, value)| (id.to_string(), value.parse().expect("a number")))
            .collect();
        assert_eq!(found.len(), self.ids.len(), "{case}: {text}");
        assert!(
            found.values().all(|value| (0.0..=1.0).contains(value)),
            "{case}: {text}"
        );
        let allowed = if self.name == "forest" { 1e-12 } else { 1e-9 };
        for (id, expected) in self.ids.iter().zip(expected) {
            let found = found[id];
            assert!(
                (found - expected).abs() <= allowed,
                "{case}, {id}: {found}, not {expected}"
            );
        }
        let check = Config::new("bp", graph);
        let check = options
            .iter()
            .fold(check, |config, (name, value)| config.option(*name, *value));
        let plan = Plan::new(check).expect("a plan");
        let verdict = plan.check_result(&result, &CancelToken::new(), &unwatched());
        let verdict = verdict.expect("a verdict");
        assert!(verdict.is_same(), "{case}: {:?}", verdict.described);
        text
    }
}

fn random_field(seed: u64, name: &'static str, vertices: usize, edges: usize) -> Field {
    let mut random = SplitMix64::new(seed);
    let mut share = |least: f64, most: f64| {
        least + (most - least) * (random.below(1 << 20) as f64 / (1 << 20) as f64)
    };
    let mut numbers = |count| (0..count).map(|_| share(0.0, 1.0)).collect::<Vec<f64>>();
    let directed = !seed.is_multiple_of(3);
    let [a, b, c, d] = numbers(4)[..] else {
        unreachable!()
    };
    let potential = [[a + 0.3, b + 0.3], [c + 0.3, d + 0.3]];
    let place = |share: f64, count: usize| (share * count as f64) as usize;
    let edges: Vec<_> = (0..edges)
        .map(|edge| {
            let [one, other, weight, turn] = numbers(4)[..] else {
                unreachable!()
            };
            let (source, destination) = match name {
                // The vertex after each hangs on one before it, or on none.
                "forest" => (edge + 1, place(one, edge + 2).min(edge + 1)),
                _ => (place(one, vertices), place(other, vertices)),
            };
            let weight = 3.0 * weight - 1.0;
            match turn < 0.5 {
                true => (source, destination, weight),
                false => (destination, source, weight),
            }
        })
        .collect();
    let priors = numbers(vertices).into_iter().map(|prior| match prior {
        prior if prior < 0.3 => None,
        prior if prior < 0.35 => Some(0.0),
        prior if prior > 0.95 => Some(1.0),
        prior => Some(prior),
    });
    Field {
        name,
        ids: (0..vertices).map(|v| (v * 7 + 3).to_string()).collect(),
        priors: priors.collect(),
        edges,
        potential: match directed {
            true => potential,
            false => [[potential[0][0], 0.6], [0.6, potential[1][1]]],
        },
        directed,
    }
}

#[test]
fn beliefs_of_forests_are_marginals() {
    for seed in 0..30 {
        let vertices = 1 + (seed * 7 % 15) as usize;
        let field = random_field(seed, "forest", vertices, vertices - 1);
        let folder = TempDir::new().expect("a folder");
        let graph = field.import(folder.path(), Some([1, 64][seed as usize % 2]));
        let how = (1 + seed as usize % 3, Some(MEMORY));
        field.check(&graph, how, 16, &field.marginals());
    }
}

#[test]
fn beliefs_of_loopy_graphs_are_those_of_a_simulator() {
    for (seed, vertices, edges) in [(1, 20, 45), (2, 60, 80), (3, 7, 30)] {
        let field = random_field(seed, "loopy", vertices, edges);
        let (folder, rounds) = (TempDir::new().expect("a folder"), 6);
        let expected = field.rounds(rounds);
        let mut results = Vec::new();
        for batch_size in [Some(1), Some(64), None] {
            let graph = field.import(folder.path(), batch_size);
            let hows = [
                (1, Some(MEMORY)),
                (1, None),
                (2, Some(MEMORY)),
                (4, None),
                (8, Some(MEMORY)),
            ];
            let texts = hows.map(|how| field.check(&graph, how, rounds, &expected));
            assert!(texts.iter().all(|text| *text == texts[0]), "{batch_size:?}");
            results.push(texts[0].clone());
        }
        assert_eq!(results.len(), 3);
    }
}

#[test]
fn beliefs_of_odd_graphs() {
    let big = |v: u64| (v * 3_000_000_019 + 1).to_string();
    let numbers = |count: u64| (0..count).map(|v| v.to_string()).collect::<Vec<_>>();
    let prior = |v: usize| [Some(0.9), None, Some(0.2), Some(1.0), Some(0.5)][v % 5];
    let shape = |name, ids: Vec<String>, edges: Vec<(usize, usize, f64)>| Field {
        name,
        priors: (0..ids.len()).map(prior).collect(),
        ids,
        edges,
        potential: [[4.0, 1.0], [1.0, 3.0]],
        directed: true,
    };
    let star = (1..70).map(|v| (0, v, 0.1));
    let path = (0..89).map(|v| (v, v + 1, 0.5));
    let texts = (0..90).map(|v| format!("v{v:02}")).collect();
    for field in [
        shape("one vertex", numbers(1), vec![]),
        shape("a loop", numbers(1), vec![(0, 0, 2.0)]),
        shape(
            "loops",
            numbers(4),
            vec![(0, 0, 1.0), (1, 1, 1.0), (0, 1, 3.0), (2, 2, 1.0)],
        ),
        shape(
            "duplicates",
            numbers(3),
            vec![(0, 1, 1.0), (0, 1, 1.0), (1, 0, 2.0), (2, 0, 0.0)],
        ),
        shape(
            "star beyond 32 bits",
            (0..70).map(big).collect(),
            star.collect(),
        ),
        shape("path of texts", texts, path.collect()),
        shape("isolated vertices", numbers(150), vec![(3, 140, 1.0)]),
        // Potentials beyond the range of floats, and messages that cancel.
        shape("heavy", numbers(3), vec![(0, 1, 300.0), (1, 2, -300.0)]),
    ] {
        let folder = TempDir::new().expect("a folder");
        let expected = field.rounds(5);
        for batch_size in [Some(1), None] {
            let graph = field.import(folder.path(), batch_size);
            let hows = [(1, Some(MEMORY)), (3, Some(MEMORY))];
            let texts = hows.map(|how| field.check(&graph, how, 5, &expected));
            assert_eq!(texts[0], texts[1], "{}", field.name);
        }
    }
    let folder = TempDir::new().expect("a folder");
    let field = shape("no vertices", vec![], vec![]);
    let graph = field.import(folder.path(), None);
    field.check(&graph, (2, Some(MEMORY)), 3, &[]);
    // Weights so great that products overflow: the checker alone knows them.
    let field = shape("far", numbers(3), vec![(0, 1, 1e300), (1, 2, -1e308)]);
    let graph = field.import(folder.path(), None);
    field.check(&graph, (1, Some(MEMORY)), 4, &[]);
}

#[test]
fn stopped_runs_resume_to_the_same_bytes() {
    let field = random_field(5, "loopy", 60, 140);
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let graph = field.import(at, Some(16));
    let config = |ranks: usize, result: &Path| {
        let mut config = Config::new("bp", &graph)
            .option("priors", at.join("priors.csv").to_str().expect("UTF-8"))
            .option("potential", field.potential())
            .option("iterations", "5");
        config.output = Some(result.to_path_buf());
        config.ranks = ranks;
        config.machine.memory = Some(MEMORY);
        config.checkpoints = CheckpointConfig {
            folder: Some(at.join("kept")),
            every: CheckpointInterval::Calls(1),
            keep: 1,
            resume: true,
        };
        config
    };
    for ranks in [1, 4] {
        let (whole, result) = (at.join("whole.csv"), at.join("result.csv"));
        let done = Plan::new(config(ranks, &whole)).expect("a plan");
        done.run(&CancelToken::new(), &unwatched())
            .expect("a result");
        for last in (1..20).step_by(3) {
            let (stop, passes) = (CancelToken::new(), Arc::new(AtomicU64::new(0)));
            let on_pass = stop.clone();
            let watcher: ProgressFn = Arc::new(move |progress| {
                if matches!(progress, Progress::Superstep { .. })
                    && passes.fetch_add(1, Ordering::Relaxed) + 1 == last
                {
                    on_pass.request();
                }
            });
            let plan = Plan::new(config(ranks, &result)).expect("a plan");
            let stopped = plan.run(&stop, &watcher);
            assert!(
                stopped.is_err_and(|error| error.is_interrupted()),
                "{ranks}, {last}"
            );
            plan.run(&CancelToken::new(), &unwatched())
                .expect("a result");
            assert_eq!(
                read(&result),
                read(&whole),
                "{ranks} ranks, stopped at pass {last}"
            );
            std::fs::remove_file(&result).expect("a result");
        }
    }
}

#[test]
fn sessions_know_which_vertices_have_ids() {
    let field = random_field(4, "loopy", 10, 20);
    let folder = TempDir::new().expect("a folder");
    let graph = field.import(folder.path(), Some(8));
    for ranks in [1, 2] {
        let rows = on_ranks(&graph, ranks, |mut session| {
            assert_eq!(session.vertices(), 30);
            assert_eq!(session.graph().named_vertices(), 10);
            assert_eq!(session.id_of(9)?.to_string(), "66");
            let error = session.id_of(10).expect_err("the vertex of an edge");
            assert!(error.to_string().contains("10"), "{error}");
            assert_eq!(session.index_of("10")?, 1);
            let array = session.vertex_array::<u64>("indices")?;
            session.process_vertices(array.write(), None, |v, index| *index = v)?;
            values(&mut session, array)
        });
        let expected = field.ids.iter().cloned().zip(0..);
        assert!(rows.expect("values").into_iter().eq(expected));
    }
}
