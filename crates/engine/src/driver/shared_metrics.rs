//! The metrics of all ranks together.

use std::sync::atomic::Ordering;

use graphmill_fabric::bucket::Refusal;
use graphmill_fabric::protocol_error;
use graphmill_raw::lock;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::metrics::run::{DatagramMetrics, Metrics, RankMetrics};

/// Adds up what the passes did at all ranks. Every rank calls it once, at the end.
///
/// # Errors
/// A rank is lost.
pub fn share_metrics(engine: &mut Engine) -> Result<(), EngineError> {
    let common = &engine.common;
    if let Some(plane) = &engine.buckets {
        let counters = &plane.exchange.state.counters;
        let counts = [&counters.resent, &counters.doubled].into_iter();
        let counts = counts.chain(&counters.role_nanos).chain(&counters.refused);
        let mut counts: Vec<u64> = counts.map(|count| count.load(Ordering::Relaxed)).collect();
        common.ranks.add_up(&mut counts)?;
        engine.metrics.datagrams = Some(DatagramMetrics {
            resent: counts[0],
            doubled: counts[1],
            refused: Refusal::NAMES.into_iter().zip(counts.drain(5..)).collect(),
            role_seconds: (["work", "send", "accumulate"].into_iter())
                .zip(counts[2..].iter().map(|nanos| *nanos as f64 / 1e9))
                .collect(),
            exchange_seconds: counters.exchange_nanos.load(Ordering::Relaxed) as f64 / 1e9,
        });
    }
    let (ranks, Some(wire)) = (&common.ranks, &common.wire) else {
        return Ok(());
    };
    let own = ranks.own();
    let sent = |which: usize| lock(wire).to.iter().map(|to| to[which]).collect();
    let graph = &engine.stored.graph;
    let arcs_into = |batch| match graph.chunks() {
        Some(chunks) => chunks.arcs_into(batch),
        None => graph.column(batch).edges(),
    };
    let of_rank = RankMetrics {
        batches: [own.start as u64, own.end as u64],
        vertices: common.arrays.vertices(),
        edges: own.clone().map(arcs_into).sum(),
        peak_memory: common.budget.peak(),
        chunks: engine.metrics.chunks(),
        messages_to: sent(0),
        bytes_to: sent(1),
    };
    let mut counts = engine.metrics.put_counts();
    ranks.add_up(&mut counts)?;
    engine.metrics.take_counts(&counts);
    let payload = ranks.gather(Metrics::put(&of_rank))?;
    let taken = engine.metrics.take(&payload);
    taken.ok_or_else(|| protocol_error().into())
}
