//! Vertex programs, pull and push, give what passes give.

use graphmill_algorithms::{AlgorithmError, pagerank, sssp, wcc};
use graphmill_engine::{Engine, Mode as How, PregelMode};

use crate::common::vertex_programs::{VERSIONS, graphs, in_modes};
use crate::{all, engines};

#[test]
fn pregel_pagerank_equals_passes() {
    for graph in graphs() {
        for (tolerance, dangling) in [
            (None, pagerank::Dangling::Redistribute),
            (Some(1e-3), pagerank::Dangling::Drop),
        ] {
            let ranking = |method| pagerank::Options {
                method,
                damping: 0.85,
                iterations: 12,
                tolerance,
                dangling,
                sources: Vec::new(),
                vectors: pagerank::Vectors::default(),
                weighted: false,
            };
            let ranks = |method| {
                move |engine: &mut Engine| {
                    pagerank::run::<f64>(engine, &ranking(method)).map(|r| all(engine, r))
                }
            };
            let expected = std::cell::OnceCell::new();
            in_modes(
                &graph,
                |engine| {
                    let passes = ranks(pagerank::PageRankMethod::Passes)(engine)?;
                    graphmill_engine::job::release(engine);
                    let pull = ranks(pagerank::PageRankMethod::Pregel(PregelMode::Pull))(engine)?;
                    Ok((passes, pull))
                },
                |mode, (passes, pull)| {
                    let bits = |ranks: &[f64]| -> Vec<u64> {
                        ranks.iter().map(|rank| rank.to_bits()).collect()
                    };
                    assert!(bits(&passes) == bits(&pull), "{}, {mode:?}", graph.name);
                    assert!(passes.iter().sum::<f64>() < 1.0 + 1e-9, "{mode:?}");
                    expected.get_or_init(|| passes);
                },
            );
            let expected = expected.into_inner().unwrap();
            let close = |found: &[f64]| {
                let mut pairs = found.iter().zip(&expected);
                pairs.all(|(found, expected)| (found - expected).abs() <= 1e-12)
            };
            for version in VERSIONS {
                in_modes(
                    &graph,
                    ranks(pagerank::PageRankMethod::Pregel(version)),
                    |mode, found| {
                        assert!(close(&found), "{}, {version:?}, {mode:?}", graph.name);
                    },
                );
            }
        }
    }
}

#[test]
fn first_superstep_activates_all_vertices() {
    let graph = &graphs()[3];
    for version in VERSIONS {
        let ranking = pagerank::Options {
            method: pagerank::PageRankMethod::Pregel(version),
            damping: 0.85,
            iterations: 2,
            tolerance: None,
            dangling: pagerank::Dangling::Redistribute,
            sources: Vec::new(),
            vectors: pagerank::Vectors::default(),
            weighted: false,
        };
        let active = |engine: &mut Engine| {
            pagerank::run::<f64>(engine, &ranking)?;
            let passes = engine.metrics().passes.iter();
            let mut of_edges = passes.filter(|pass| pass.mode != How::Vertices);
            Ok(of_edges.next().map(|pass| pass.active))
        };
        in_modes(graph, active, |mode, active| {
            assert_eq!(active, Some(2000), "{version:?}, {mode:?}");
        });
    }
}

#[test]
fn pregel_shortest_paths_equal_passes() {
    for graph in graphs() {
        let expected = std::cell::RefCell::new(None);
        let bellman_ford = |engine: &mut Engine| {
            let paths = sssp::run::<f64>(engine, 0, sssp::SsspMethod::BellmanFord);
            engines(paths.map(|d| all(engine, d)))
        };
        in_modes(&graph, bellman_ford, |_, found| {
            expected.borrow_mut().get_or_insert(found);
        });
        let expected = expected.into_inner().unwrap();
        for version in VERSIONS {
            let paths = |engine: &mut Engine| {
                let paths = sssp::run::<f64>(engine, 0, sssp::SsspMethod::Pregel(version));
                engines(paths.map(|d| all(engine, d)))
            };
            in_modes(&graph, paths, |mode, found| {
                assert!(found == expected, "{}, {version:?}, {mode:?}", graph.name);
            });
        }
    }
}

#[test]
fn pregel_components_equal_passes() {
    for graph in graphs() {
        let components = |method| {
            move |engine: &mut Engine| match wcc::run::<u32>(engine, method) {
                Err(AlgorithmError::Directed { .. }) => Ok(None),
                labels => engines(labels.map(|labels| Some(all(engine, labels)))),
            }
        };
        let expected = std::cell::OnceCell::new();
        in_modes(&graph, components(wcc::WccMethod::Labels), |_, found| {
            expected.get_or_init(|| found);
        });
        // Messages go along the arcs only.
        let is_refused = !graph.symmetric && !graph.arcs.is_empty();
        let expected = expected.into_inner().filter(|_| !is_refused).flatten();
        for version in VERSIONS {
            let method = wcc::WccMethod::Pregel(version);
            in_modes(&graph, components(method), |mode, found| {
                assert!(found == expected, "{}, {version:?}, {mode:?}", graph.name);
            });
        }
    }
}
