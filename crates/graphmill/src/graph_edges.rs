//! The edges of a small stored graph, in memory.

use std::path::Path;

use graphmill_graph::{Order, PageCache};
use graphmill_storage::Lease;

use crate::arc_reader::ArcReader;
use crate::error::Error;
use crate::machine::resources::Machine;

/// The edges of a stored graph, each once.
#[derive(Debug)]
pub struct GraphEdges {
    /// The ordinals of their sources: places in ascending order of ids.
    pub sources: Vec<u64>,
    /// Of their destinations.
    pub destinations: Vec<u64>,
    /// Their weights; empty in a graph without weights.
    pub weights: Vec<f64>,
    _lease: Lease,
}

impl Machine {
    /// Reads the edges of the stored graph in the directory `path`.
    ///
    /// # Errors
    /// It is not a graph, or not as it was written; the budget has no room for the edges.
    pub fn edges(&self, path: &Path) -> Result<GraphEdges, Error> {
        let graph = self.graph(path)?;
        let has_weights = graph.edge_kind().is_weight();
        let each = if has_weights { 24 } else { 16 };
        let bytes = graph.arcs().saturating_mul(each) + graph.vertices() * 8;
        let mut edges = GraphEdges {
            sources: Vec::new(),
            destinations: Vec::new(),
            weights: Vec::new(),
            _lease: self.budget().lease("edges", bytes)?,
        };
        let mut ordinals = Vec::new();
        if graph.order() == Order::Degree {
            let mut reader = PageCache::new(&graph, self.budget(), 1)?;
            graph.each_rank(&mut reader, 0..graph.vertices(), |rank| ordinals.push(rank))?;
        }
        let ordinal = |vertex: u64| ordinals.get(vertex as usize).copied().unwrap_or(vertex);
        let is_symmetric = !graph.directed();
        let mut arcs = ArcReader::new(&graph, self.budget(), has_weights)?;
        arcs.each(self.stop(), |source, destination, weight| {
            let (source, destination) = (ordinal(source), ordinal(destination));
            // An undirected edge is two arcs, a self-loop one.
            if is_symmetric && source > destination {
                return;
            }
            edges.sources.push(source);
            edges.destinations.push(destination);
            if has_weights {
                edges.weights.push(weight);
            }
        })?;
        Ok(edges)
    }
}
