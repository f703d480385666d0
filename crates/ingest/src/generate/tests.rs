//! Generated edges: any of them, by number and seed alone, and what rules promise of all of them.

use graphmill_graph::EdgeKind;

use graphmill_storage::MemoryBudget;

use super::circulant::Circulant;
use super::counter_rng::Permutation;
use super::edge_at::EdgeGenerator;
use super::rule::{Generated, GraphRule, KroneckerLabels};
use super::sorted_arcs::{ArcDirections, SortedArcs};
use crate::edge_data::EdgeDataBatch;
use crate::options::SelfLoops;

/// Edges number `from` up to `to`, with their weights.
fn some(graph: Generated, from: u64, to: u64) -> (Vec<(u64, u64)>, Vec<f64>) {
    let (mut edges, mut drawn) = (Vec::new(), EdgeDataBatch::default());
    EdgeGenerator::new(graph).draw(from, to, &mut edges, &mut drawn);
    let weights = (0..edges.len()).map_while(|i| drawn.data().weight(i, EdgeKind::F32));
    let weights = weights.collect();
    (edges, weights)
}

fn all(rule: GraphRule, seed: u64) -> (Vec<(u64, u64)>, Vec<f64>) {
    let graph = Generated::new(rule, seed, EdgeKind::F32).unwrap();
    let (edges, weights) = some(graph, 0, graph.edges);
    assert_eq!(
        (edges.len() as u64, weights.len()),
        (graph.edges, edges.len())
    );
    assert!(
        edges
            .iter()
            .all(|&(s, d)| s < graph.vertices && d < graph.vertices)
    );
    assert!(
        weights
            .iter()
            .all(|w| (1.0..=255.0).contains(w) && w.fract() == 0.0)
    );
    (edges, weights)
}

#[test]
fn edge_depends_on_its_number_and_seed_only() {
    for rule in [
        GraphRule::Kronecker {
            scale: 10,
            degree: 7,
            labels: KroneckerLabels::Permuted,
        },
        GraphRule::Uniform {
            vertices: 999,
            edges: 5000,
        },
        GraphRule::Grid {
            rows: 30,
            columns: 41,
        },
        GraphRule::Scattered {
            vertices: 50,
            degree: 6,
            gap: 99,
        },
    ] {
        let (edges, weights) = all(rule, 1);
        let graph = Generated::new(rule, 1, EdgeKind::F32).unwrap();
        let (some, their) = some(graph, 100, 230);
        assert_eq!(
            (some.as_slice(), their.as_slice()),
            (&edges[100..230], &weights[100..230])
        );
        if matches!(
            rule,
            GraphRule::Kronecker { .. } | GraphRule::Uniform { .. }
        ) {
            assert_ne!(all(rule, 2).0, edges);
        }
    }
}

#[test]
fn grid_has_each_edge_once() {
    for (rows, columns) in [(1, 1), (1, 5), (5, 1), (2, 2), (3, 4)] {
        let (mut edges, _) = all(GraphRule::Grid { rows, columns }, 1);
        let mut expected = Vec::new();
        for v in 0..rows * columns {
            if v % columns + 1 < columns {
                expected.push((v, v + 1));
            }
            if v / columns + 1 < rows {
                expected.push((v, v + columns));
            }
        }
        edges.sort_unstable();
        assert_eq!(edges, expected, "{rows} x {columns}");
    }
}

#[test]
fn kronecker_degree_skew_follows_quadrants() {
    let (edges, _) = all(
        GraphRule::Kronecker {
            scale: 12,
            degree: 16,
            labels: KroneckerLabels::Permuted,
        },
        3,
    );
    let mut degrees = vec![0u32; 1 << 12];
    edges.iter().for_each(|&(s, _)| degrees[s as usize] += 1);
    degrees.sort_unstable();
    // The heaviest source has quadrants A or B at every level: 0.76^12 of all edges.
    let heaviest = 0.76f64.powi(12) * edges.len() as f64;
    let found = f64::from(degrees[degrees.len() - 1]);
    assert!(
        (0.8..1.25).contains(&(found / heaviest)),
        "{found} where about {heaviest} are expected"
    );
    let silent = degrees.iter().filter(|d| **d == 0).count();
    assert!(silent > 300, "{silent} sources without an edge");
}

#[test]
fn drawn_labels_put_a_quarter_of_the_edges_in_the_first_of_32_ranges() {
    let rule = |labels| GraphRule::Kronecker {
        scale: 12,
        degree: 16,
        labels,
    };
    for (labels, expected) in [
        (KroneckerLabels::Drawn, 0.76f64.powi(5)),
        (KroneckerLabels::Permuted, 1.0 / 32.0),
    ] {
        let (edges, _) = all(rule(labels), 3);
        for end in [|edge: &(u64, u64)| edge.0, |edge: &(u64, u64)| edge.1] {
            let first = edges.iter().filter(|edge| end(edge) < 1 << 7).count();
            let share = first as f64 / edges.len() as f64;
            assert!((share - expected).abs() < 0.01, "{labels:?}: {share}");
        }
    }
    // Only the labels differ.
    let (drawn, weights) = all(rule(KroneckerLabels::Drawn), 3);
    let labels = Permutation::new(12, 3);
    let permuted = drawn.iter().map(|&(s, d)| (labels.map(s), labels.map(d)));
    let expected = (permuted.collect(), weights);
    assert_eq!(all(rule(KroneckerLabels::Permuted), 3), expected);
}

#[test]
fn seed_gives_the_same_graph_in_every_release() {
    let kronecker = |scale| GraphRule::Kronecker {
        scale,
        degree: 4,
        labels: KroneckerLabels::Permuted,
    };
    for (rule, expected) in [
        (kronecker(7), 0x934f_e3ba_b3bd_e247),
        (kronecker(11), 0x7f7d_032c_52f3_8394),
        (
            GraphRule::Uniform {
                vertices: 1000,
                edges: 3000,
            },
            0xdda9_dffd_6ba1_b4c9,
        ),
        (
            GraphRule::Grid {
                rows: 17,
                columns: 33,
            },
            0x347f_ad6d_f12a_c410,
        ),
    ] {
        let (edges, weights) = all(rule, 7);
        let numbers = edges
            .iter()
            .zip(&weights)
            .flat_map(|(&(s, d), &w)| [s, d, w as u64]);
        let hash = numbers.fold(0xcbf2_9ce4_8422_2325_u64, |hash, number| {
            (hash ^ number).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!(hash, expected, "{rule:?}: {hash:#x}");
    }
}

#[test]
fn graph_rule_out_of_range_is_refused() {
    for rule in [
        GraphRule::Kronecker {
            scale: 0,
            degree: 1,
            labels: KroneckerLabels::Permuted,
        },
        GraphRule::Kronecker {
            scale: 48,
            degree: 1 << 20,
            labels: KroneckerLabels::Permuted,
        },
        GraphRule::Uniform {
            vertices: 0,
            edges: 1,
        },
        GraphRule::Grid {
            rows: 1 << 40,
            columns: 1 << 40,
        },
        GraphRule::Consecutive {
            vertices: 5,
            degree: 5,
        },
        GraphRule::Consecutive {
            vertices: 0,
            degree: 1,
        },
        GraphRule::Scattered {
            vertices: 0,
            degree: 1,
            gap: 1,
        },
        GraphRule::Scattered {
            vertices: 1 << 40,
            degree: 1 << 24,
            gap: 1,
        },
    ] {
        assert!(Generated::new(rule, 1, EdgeKind::None).is_err(), "{rule:?}");
    }
    assert_eq!(
        all(
            GraphRule::Uniform {
                vertices: 0,
                edges: 0
            },
            1
        )
        .0,
        []
    );
    assert_eq!(
        all(
            GraphRule::Grid {
                rows: 0,
                columns: 9
            },
            1
        )
        .0,
        []
    );
}

/// The edges of a circulant graph, as the definition says.
fn circulant(vertices: u64, degree: u64, gap: u64) -> Vec<(u64, u64)> {
    let to = |i, k| (u128::from(i) + u128::from(k) * u128::from(gap)) % u128::from(vertices);
    (0..vertices)
        .flat_map(|i| (1..=degree).map(move |k| (i, to(i, k) as u64)))
        .collect()
}

#[test]
fn circulant_neighbours_match_the_definition() {
    for (vertices, degree) in [(1, 0), (2, 1), (7, 3), (7, 6), (100, 99), (1000, 0)] {
        let rule = GraphRule::Consecutive { vertices, degree };
        assert_eq!(all(rule, 1).0, circulant(vertices, degree, 1), "{rule:?}");
    }
    for vertices in [1, 2, 6, 10, 97] {
        for gap in [0, 1, 4, 10, 20, 97, 100_000, u64::MAX] {
            for degree in [0, 1, 2, 5, 11, 200] {
                let rule = GraphRule::Scattered {
                    vertices,
                    degree,
                    gap,
                };
                let expected = circulant(vertices, degree, gap);
                assert_eq!(all(rule, 1).0, expected, "{rule:?}");
                let mut from_first: Vec<_> = expected.iter().take_while(|arc| arc.0 == 0).collect();
                from_first.sort_unstable();
                from_first.dedup();
                let different = from_first.len() as u64;
                let graph = Generated::new(rule, 1, EdgeKind::None).unwrap();
                let coinciding = (different < degree).then_some(different);
                assert_eq!(graph.coinciding(), coinciding, "{rule:?}");
            }
        }
    }
}

#[test]
fn circulant_steps_list_arcs_in_order() {
    let budget = MemoryBudget::new(16 << 20);
    for (vertices, degree, gap) in [
        (1, 0, 1),
        (1, 3, 1),
        (10, 9, 1),
        (11, 3, 4),
        (12, 3, 4),
        (12, 7, 4),
        (60, 5, 17),
        (60, 70, 59),
    ] {
        let graph = Circulant::new(vertices, degree, gap);
        let edges = circulant(vertices, degree, gap);
        for directions in [
            ArcDirections::Forth,
            ArcDirections::Back,
            ArcDirections::Both,
        ] {
            for self_loops in [SelfLoops::Keep, SelfLoops::Drop] {
                // Every arc: batch-wise order, and the number of its edge.
                let mut arcs: Vec<(u64, u64, u64)> = Vec::new();
                for (number, &(s, d)) in (0..).zip(&edges) {
                    if s == d && self_loops == SelfLoops::Drop {
                        continue;
                    }
                    if directions != ArcDirections::Back {
                        arcs.push((s, d, number));
                    }
                    if directions == ArcDirections::Back
                        || directions == ArcDirections::Both && s != d
                    {
                        arcs.push((d, s, number));
                    }
                }
                let repeats = {
                    let mut ends: Vec<_> = arcs.iter().map(|arc| (arc.0, arc.1)).collect();
                    ends.sort_unstable();
                    let before = ends.len();
                    ends.dedup();
                    ends.len() < before
                };
                if self_loops == SelfLoops::Keep {
                    assert_eq!(
                        graph.repeats(directions == ArcDirections::Both),
                        repeats,
                        "{graph:?} {directions:?}"
                    );
                }
                let steps = SortedArcs::new(graph, directions, self_loops, &budget).unwrap();
                assert_eq!(steps.len() * vertices, arcs.len() as u64);
                assert!(
                    SortedArcs::bytes(graph, directions) + budget.available() >= budget.total()
                );
                for (start, span) in [(0, vertices), (vertices / 3, vertices.div_ceil(4))] {
                    let mut expected: Vec<_> = arcs
                        .iter()
                        .copied()
                        .filter(|arc| (start..start + span).contains(&arc.1))
                        .collect();
                    let mut arcs_of = arcs_of(&steps, start, span, 0);
                    assert!(arcs_of.is_sorted_by_key(|arc| (arc.0, arc.1)));
                    arcs_of.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(arcs_of, expected, "{graph:?} {directions:?} {start} {span}");
                }
            }
        }
    }
}

/// The arcs from sources from `source` on into a range: source, destination, number of the edge.
fn arcs_of(steps: &SortedArcs, start: u64, span: u64, source: u64) -> Vec<(u64, u64, u64)> {
    let range = steps.reaching(start, span);
    let mut arcs_of = Vec::new();
    let mut next = range.next_source(source);
    while let Some(source) = next {
        let mut arcs = range.at_source(source);
        while arcs.len() > 0 {
            let ends = arcs.destinations().zip(arcs.edges());
            arcs_of.extend(ends.map(|(local, edge)| (arcs.source, start + local, edge)));
            next = Some(arcs.source + 1);
            if arcs.source + 1 == steps.vertices() {
                break;
            }
            arcs.advance();
        }
        next = next.and_then(|source| range.next_source(source));
    }
    arcs_of
}

#[test]
fn circulant_steps_exceed_32_bit_indices() {
    let (vertices, degree, gap) = ((1 << 33) + 7, 5, (1 << 31) + 3);
    let graph = Circulant::new(vertices, degree, gap);
    let budget = MemoryBudget::new(1 << 20);
    let steps = SortedArcs::new(graph, ArcDirections::Forth, SelfLoops::Keep, &budget).unwrap();
    // In the middle, and at the end of the range, where neighbours wrap around to the beginning.
    for start in [1 << 32, vertices - 20] {
        let span = 20;
        let mut expected: Vec<_> = (start..start + span)
            .flat_map(|d| {
                (1..=degree).map(move |k| {
                    let source = (d + vertices - k * gap % vertices) % vertices;
                    (source, d, source * degree + k - 1)
                })
            })
            .collect();
        expected.sort_unstable();
        assert_eq!(arcs_of(&steps, start, span, 0), expected);
    }
    // Edges are drawn there too, from one source and the next.
    let source = (1 << 32) + 1;
    let drawn: Vec<_> = graph
        .edges(source * degree + 3, source * degree + 7)
        .collect();
    let expected = [(source, 4), (source, 5), (source + 1, 1), (source + 1, 2)]
        .map(|(source, k)| (source, (source + k * gap) % vertices));
    assert_eq!(drawn, expected);
}
