//! Edges in memory, and random ones.

use std::sync::Arc;

use graphmill_graph::{EdgeField, EdgeFields, EdgeKind, FieldType, VertexId};
use graphmill_ingest::{
    BATCH_EDGES_MAX, EdgeDataBatch, EdgeSink, EdgeSource, Ids, IngestError, PieceReader,
    PieceReport,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SplitMix64};

/// One edge: two ids and a weight.
pub(crate) type Edge = (VertexId, VertexId, f64);

/// Edges in memory, in pieces.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) pieces: Vec<Vec<Edge>>,
    pub(crate) ids: Ids,
    pub(crate) weights: EdgeKind,
    pub(crate) vertices: Option<u64>,
    pub(crate) rereads_fast: bool,
}

impl EdgeSource for Memory {
    fn pieces(&self) -> u64 {
        self.pieces.len() as u64
    }
    fn ids(&self) -> Ids {
        self.ids
    }
    fn weights(&self) -> EdgeKind {
        self.weights
    }
    fn fields(&self) -> EdgeFields {
        let bytes = self.weights.bytes() * usize::from(self.weights.is_record());
        let field = |i| EdgeField {
            name: format!("byte {i}"),
            kind: FieldType::U8,
        };
        EdgeFields::new((0..bytes).map(field).collect()).unwrap()
    }
    fn vertices(&self) -> Option<u64> {
        self.vertices
    }
    fn edges(&self) -> Option<u64> {
        Some(self.amount())
    }
    fn amount(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
    fn rereads_fast(&self) -> bool {
        self.rereads_fast
    }
    fn identity(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
    fn reader_bytes(&self) -> u64 {
        0
    }
    fn reader(
        &self,
        _: &Arc<dyn Disk>,
        _: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(self))
    }
}

impl PieceReader for &Memory {
    fn read(
        &mut self,
        piece: u64,
        _: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let edges = &self.pieces[piece as usize];
        // Uneven batches, so that nothing relies on their size.
        let mut rest = &edges[..];
        let mut random = SplitMix64::new(piece);
        while !rest.is_empty() {
            let (now, later) = rest
                .split_at((1 + random.below(BATCH_EDGES_MAX as u64 / 8) as usize).min(rest.len()));
            rest = later;
            let mut data = EdgeDataBatch::default();
            now.iter()
                .for_each(|edge| data.push(data_of(edge.2, self.weights), self.weights));
            match self.ids {
                Ids::Integer | Ids::Signed | Ids::Wrapping => {
                    let pairs: Vec<(u64, u64)> = now
                        .iter()
                        .map(|edge| (self.number(&edge.0), self.number(&edge.1)))
                        .collect();
                    sink.integers(&pairs, data.data())?;
                }
                Ids::Text | Ids::Uuid => {
                    let pairs: Vec<(&[u8], &[u8])> = now
                        .iter()
                        .map(|edge| (text(&edge.0), text(&edge.1)))
                        .collect();
                    sink.texts(&pairs, data.data())?;
                }
            }
            sink.progress(now.len() as u64);
        }
        let count = edges.len() as u64;
        Ok(PieceReport {
            lines: count,
            edges: count,
            ..PieceReport::default()
        })
    }
}

impl Memory {
    fn number(&self, id: &VertexId) -> u64 {
        match id {
            VertexId::Integer(id) => *id,
            VertexId::Signed(id) if self.ids == Ids::Wrapping => *id as u64,
            VertexId::Signed(id) => *id as u64 ^ 1 << 63,
            VertexId::Text(_) | VertexId::Uuid(_) => panic!("bytes where a number is expected"),
        }
    }
}

fn text(id: &VertexId) -> &[u8] {
    match id {
        VertexId::Text(id) => id,
        VertexId::Uuid(id) => id,
        VertexId::Integer(_) | VertexId::Signed(_) => panic!("a number where a text is expected"),
    }
}

/// The stored bits of an edge with this weight, from which a record follows too.
pub(crate) fn data_of(weight: f64, kind: EdgeKind) -> u128 {
    match kind {
        EdgeKind::None => 0,
        EdgeKind::F32 => (weight as f32).to_bits().into(),
        EdgeKind::F64 => weight.to_bits().into(),
        EdgeKind::Record(bytes) => {
            let mixed = SplitMix64::new(weight.to_bits()).next_u64();
            let all = u128::from(weight.to_bits()) << 64 | u128::from(mixed);
            all >> (128 - 8 * u32::from(bytes))
        }
    }
}

/// How ids of a random input look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// 0, 1, 2, ...
    Dense,
    /// Integers with gaps.
    Gaps,
    /// Integers far apart, below 2^24.
    Sparse,
    /// Integers of all 64 bits.
    Huge,
    /// Words, some with long common beginnings.
    Words,
    /// Integers in two's complement, half of them near 0, some negative.
    Signed,
    /// UUIDs.
    Uuids,
}

/// Random edges between `vertices` vertices, with self-loops and duplicates both ways.
pub(crate) fn random_source(
    seed: u64,
    look: Look,
    vertices: u64,
    edges: usize,
    weights: EdgeKind,
    rereads_fast: bool,
) -> Memory {
    let mut random = SplitMix64::new(seed);
    let mut used = Vec::new();
    for vertex in 0..vertices {
        used.push(match look {
            Look::Dense => VertexId::Integer(vertex),
            Look::Gaps => VertexId::Integer(vertex * 2 + random.below(2)),
            Look::Sparse => VertexId::Integer(random.below(1 << 24)),
            Look::Huge => VertexId::Integer(random.next_u64() >> (random.below(8) * 8)),
            Look::Signed => VertexId::Signed(match random.below(2) {
                0 => random.below(vertices) as i64 - (seed % 3) as i64,
                _ => {
                    random.next_u64() as i64 >> (random.below(7) * 8)
                        & !(i64::from(seed.is_multiple_of(3)) << 63)
                }
            }),
            Look::Uuids => {
                let near = u128::from(random.below(1 << 20)) << (random.below(5) * 20);
                VertexId::Uuid(near.to_be_bytes())
            }
            Look::Words => VertexId::Text(match random.below(4) {
                0 => format!("{}", random.below(1000)).into_bytes(),
                1 => format!(
                    "http://example.org/a/rather/long/path/{}",
                    random.below(100_000)
                )
                .into_bytes(),
                2 => vec![b'x'; 1 + random.below(40) as usize],
                _ => random.next_u64().to_le_bytes()[..1 + random.below(8) as usize].to_vec(),
            }),
        });
    }
    let mut pieces = vec![Vec::new(); 1 + random.below(5) as usize];
    let count = pieces.len() as u64;
    let hub = random.below(vertices.max(1));
    let mut before: Vec<(u64, u64)> = Vec::new();
    // A path names every vertex of a dense graph.
    let path = if look == Look::Dense {
        vertices as usize
    } else {
        0
    };
    for i in 0..edges.max(path) {
        let mut pair = (random.below(vertices), random.below(vertices));
        match random.below(8) {
            0 if !before.is_empty() => pair = before[random.below(before.len() as u64) as usize],
            1 if !before.is_empty() => {
                let (a, b) = before[random.below(before.len() as u64) as usize];
                pair = (b, a);
            }
            2 => pair.1 = pair.0,
            3 => pair.1 = hub,
            _ => {}
        }
        if i < path {
            pair.0 = i as u64;
        }
        before.push(pair);
        let weight = match random.below(3) {
            0 => random.below(5) as f64,
            1 => random.unit() * 1e6,
            _ => -random.unit(),
        };
        let weight = if weights == EdgeKind::F32 {
            f64::from(weight as f32)
        } else {
            weight
        };
        let edge = (
            used[pair.0 as usize].clone(),
            used[pair.1 as usize].clone(),
            weight,
        );
        pieces[(i as u64 * count / edges.max(path) as u64) as usize].push(edge);
    }
    let ids = match look {
        Look::Words => Ids::Text,
        Look::Uuids => Ids::Uuid,
        Look::Signed => Ids::Wrapping,
        _ => Ids::Integer,
    };
    Memory {
        pieces,
        ids,
        weights,
        vertices: None,
        rereads_fast: rereads_fast && !ids.are_bytes(),
    }
}
