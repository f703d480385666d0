//! Passes over odd graphs: what they answer, and what they keep.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cache;
#[path = "../../../engine/tests/passes/common/mod.rs"]
mod common;
mod exact;
mod forest;
mod in_memory;
mod lost_ranks;
mod modes;
mod on_disk;
mod pregel;
mod refused_memory;
mod slow_tier;

use graphmill_algorithms::{AlgorithmError, pagerank};
use graphmill_engine::EngineError;

use common::{Edge, Memory, Mode, Plain, Ranks, all, engine, gathered, random, run, settings};

/// Whether everything is asked for that takes long: GRAPHMILL_SOAK=1.
fn is_soak() -> bool {
    std::env::var_os("GRAPHMILL_SOAK").is_some()
}

/// What the engine had to say: these graphs leave an algorithm nothing else to complain of.
fn engines<T>(outcome: Result<T, AlgorithmError>) -> Result<T, EngineError> {
    match outcome {
        Ok(value) => Ok(value),
        Err(AlgorithmError::Engine(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// Options for a number of iterations from all vertices.
fn ranking(iterations: u32) -> pagerank::Options {
    pagerank::Options {
        method: pagerank::PageRankMethod::Passes,
        damping: 0.85,
        iterations,
        tolerance: None,
        dangling: pagerank::Dangling::Redistribute,
        sources: Vec::new(),
        vectors: pagerank::Vectors::default(),
        weighted: false,
    }
}
