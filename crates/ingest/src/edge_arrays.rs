//! Edges in arrays in memory.

use std::sync::Arc;

use graphmill_graph::{EdgeKind, IdType};
use graphmill_storage::{CancelToken, Disk, MemoryBudget};

use crate::edge_data::{EdgeDataBatch, weight_bits};
use crate::error::IngestError;
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport, SIGN};

/// Edges of a piece.
const PIECE_EDGES: usize = 1 << 16;

/// Edges in arrays: the ends of each, and weights or none.
#[derive(Debug)]
pub struct EdgeArrays {
    edges: Vec<(u64, u64)>,
    weights: Option<Vec<f64>>,
    ids: Ids,
    id_type: IdType,
    vertices: Option<u64>,
}

impl EdgeArrays {
    /// Edges between integer ids, and a weight for each or none.
    ///
    /// `vertices`: the vertices are the integers below it.
    ///
    /// # Errors
    /// There are not as many weights as edges, a weight is not finite, or an id is not below `vertices`.
    pub fn new(
        edges: Vec<(i64, i64)>,
        weights: Option<Vec<f64>>,
        vertices: Option<u64>,
    ) -> Result<Self, IngestError> {
        let flip = match edges.iter().any(|edge| edge.0 < 0 || edge.1 < 0) {
            true => SIGN,
            false => 0,
        };
        let edges = edges.into_iter();
        let edges = edges.map(|(source, target)| (source as u64 ^ flip, target as u64 ^ flip));
        EdgeArrays::of(edges.collect(), flip, weights, vertices)
    }

    /// The same between ids without a sign.
    ///
    /// # Errors
    /// As for [`EdgeArrays::new`].
    pub fn unsigned(
        edges: Vec<(u64, u64)>,
        weights: Option<Vec<f64>>,
        vertices: Option<u64>,
    ) -> Result<Self, IngestError> {
        EdgeArrays::of(edges, 0, weights, vertices)
    }

    /// The same with ids of another integer type in results.
    #[must_use]
    pub fn with_type(self, id_type: IdType) -> Self {
        EdgeArrays { id_type, ..self }
    }

    /// Checks edges between ids in which `flip` is flipped.
    fn of(
        edges: Vec<(u64, u64)>,
        flip: u64,
        weights: Option<Vec<f64>>,
        vertices: Option<u64>,
    ) -> Result<Self, IngestError> {
        let count = edges.len();
        if let Some(weights) = &weights {
            if weights.len() != count {
                let what = format!("there are {count} edges and {} weights", weights.len());
                return Err(IngestError::Arrays { what });
            }
            if let Some(edge) = weights.iter().position(|weight| !weight.is_finite()) {
                let what = format!("the weight of edge {edge} is {}", weights[edge]);
                return Err(IngestError::Arrays { what });
            }
        }
        if let Some(all) = vertices {
            let is_in = |id: u64| flip == 0 && id < all || id & flip != 0 && id ^ flip < all;
            let wrong = |edge: &(u64, u64)| !is_in(edge.0) || !is_in(edge.1);
            if let Some(edge) = edges.iter().position(wrong) {
                let shown = |id: u64| match flip {
                    0 => i128::from(id),
                    flip => i128::from((id ^ flip) as i64),
                };
                let (source, target) = (shown(edges[edge].0), shown(edges[edge].1));
                let what = format!(
                    "edge {edge} goes from {source} to {target}, and the vertices are the integers below {all}"
                );
                return Err(IngestError::Arrays { what });
            }
        }
        Ok(EdgeArrays {
            edges,
            weights,
            ids: if flip == 0 { Ids::Integer } else { Ids::Signed },
            id_type: IdType::default(),
            vertices,
        })
    }
}

impl EdgeSource for EdgeArrays {
    fn pieces(&self) -> u64 {
        self.edges.len().div_ceil(PIECE_EDGES) as u64
    }

    fn ids(&self) -> Ids {
        self.ids
    }

    fn id_type(&self) -> IdType {
        self.id_type
    }

    fn weights(&self) -> EdgeKind {
        match self.weights {
            Some(_) => EdgeKind::F64,
            None => EdgeKind::None,
        }
    }

    fn vertices(&self) -> Option<u64> {
        self.vertices
    }

    fn edges(&self) -> Option<u64> {
        Some(self.edges.len() as u64)
    }

    fn amount(&self) -> u64 {
        self.edges.len() as u64
    }

    fn rereads_fast(&self) -> bool {
        true
    }

    fn reader_bytes(&self) -> u64 {
        0
    }

    fn reader(
        &self,
        _: &Arc<dyn Disk>,
        _: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(ArrayReader { source: self }))
    }
}

/// Reads pieces of arrays.
struct ArrayReader<'a> {
    source: &'a EdgeArrays,
}

impl PieceReader for ArrayReader<'_> {
    fn read(
        &mut self,
        piece: u64,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let source = self.source;
        let from = piece as usize * PIECE_EDGES;
        let to = source.edges.len().min(from + PIECE_EDGES);
        let mut data = EdgeDataBatch::with_capacity(BATCH_EDGES_MAX, source.weights());
        for from in (from..to).step_by(BATCH_EDGES_MAX) {
            IngestError::check_stop(stop)?;
            let batch = from..to.min(from + BATCH_EDGES_MAX);
            data.clear();
            if let Some(weights) = &source.weights {
                for weight in &weights[batch.clone()] {
                    data.push_low(weight_bits(*weight, EdgeKind::F64));
                }
            }
            sink.integers(&source.edges[batch.clone()], data.data())?;
            sink.progress(batch.len() as u64);
        }
        let edges = (to - from) as u64;
        Ok(PieceReport {
            lines: edges,
            edges,
            ..PieceReport::default()
        })
    }
}
