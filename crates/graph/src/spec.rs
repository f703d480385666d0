//! What must be known of a graph before its edges can be written.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::batches::Batches;
use crate::error::FormatError;

/// The data of an edge, apart from its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// Nothing.
    None,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
    /// A record of [fields](crate::EdgeFields), which has 1 to 16 bytes.
    #[cfg_attr(feature = "clap", value(skip))]
    Record(u8),
}

impl EdgeKind {
    /// Bytes of the data of one edge: 0 to 16.
    pub fn bytes(self) -> usize {
        match self {
            EdgeKind::None => 0,
            EdgeKind::F32 => 4,
            EdgeKind::F64 => 8,
            EdgeKind::Record(bytes) => bytes.into(),
        }
    }
    /// True if it is a record of fields.
    pub fn is_record(self) -> bool {
        matches!(self, EdgeKind::Record(_))
    }
    /// True if the data of an edge is a number.
    pub fn is_weight(self) -> bool {
        matches!(self, EdgeKind::F32 | EdgeKind::F64)
    }
}

/// How the arcs of a graph are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Sorted, in cells by source batch and destination batch.
    #[default]
    Column,
    /// Unsorted, in chunks by source batch.
    Stream,
}

/// The layout of a graph to be written. It follows from counts alone, never from the machine.
#[derive(Clone, Debug)]
pub struct GraphSpec {
    /// The cut of the vertices.
    pub batches: Batches,
    /// What an edge carries.
    pub edge: EdgeKind,
    /// False when every edge is given both ways.
    pub directed: bool,
    /// Edges of a strip, at most, unless it is one cell.
    pub strip_edges_max: u64,
    /// A cell whose source span over edges is at most this gets a bitmap of its sources.
    pub csr_ratio: u32,
    /// Bytes of a chunk at most, in the stream layout, which has no column files.
    pub chunk_bytes: Option<usize>,
    /// The destination batches of each column file: runs that together are all batches, in order.
    pub files: Vec<Range<usize>>,
    /// The same for the reverse graph, when there is one.
    pub reverse_files: Option<Vec<Range<usize>>>,
}

impl GraphSpec {
    /// |V|.
    pub fn vertices(&self) -> u64 {
        self.batches.vertices()
    }
    /// Checks that the files cover the batches.
    ///
    /// # Errors
    /// They do not.
    pub(crate) fn check(&self) -> Result<(), FormatError> {
        if self.chunk_bytes.is_some() {
            let mut files = self.files.iter().chain(self.reverse_files.iter().flatten());
            let misuse = |_| FormatError::misuse("a graph of chunks has column files");
            return files.next().map_or(Ok(()), |file| Err(misuse(file)));
        }
        for files in std::iter::once(&self.files).chain(&self.reverse_files) {
            let mut next = 0;
            for run in files {
                if run.start != next || run.end <= run.start {
                    let what = format!("a column file of batches {run:?} follows batch {next}");
                    return Err(FormatError::misuse(what));
                }
                next = run.end;
            }
            let batches = self.batches.len();
            if next != batches {
                let what = format!("column files end at batch {next} of {batches}");
                return Err(FormatError::misuse(what));
            }
        }
        if self.batches.len() > u32::MAX as usize {
            return Err(FormatError::misuse("a graph has at most 2^32 - 1 batches"));
        }
        Ok(())
    }
    /// A hash of the shape: FNV-1a over its numbers, then mixed.
    pub fn graph_id(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |number: u64| {
            for byte in number.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        self.batches.cuts().iter().for_each(|&cut| add(cut));
        // A record has another number than a weight of the same bytes.
        add(u64::from(self.edge.is_record()) << 8 | self.edge.bytes() as u64);
        add(u64::from(self.directed));
        add(self.strip_edges_max);
        add(u64::from(self.csr_ratio));
        self.chunk_bytes.iter().for_each(|&bytes| add(bytes as u64));
        for files in [Some(&self.files), self.reverse_files.as_ref()] {
            add(files.map_or(u64::MAX, |files| files.len() as u64));
            (files.into_iter().flatten()).for_each(|run| add(run.end as u64));
        }
        hash ^ (hash >> 29)
    }
}
