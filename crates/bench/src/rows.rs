//! The rows of cells of one rank in memory, in the order in which the bucket executor goes through them.

use std::error::Error;
use std::ops::Range;
use std::path::PathBuf;

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, StoredGraph, partition};
use graphmill_raw::simd;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A cell, and the first vertices of its two batches.
struct RowCell {
    column: usize,
    starts: [u64; 2],
    bytes: Range<usize>,
}

/// The rows of one rank.
pub(crate) struct TargetRows {
    /// The first vertex of each rank, and the end.
    pub(crate) cuts: Vec<u64>,
    pub(crate) rank: usize,
    /// Arcs that leave vertices of this rank.
    pub(crate) arcs: u64,
    /// The rank of each batch.
    owners: Vec<usize>,
    cells: Vec<RowCell>,
    data: Vec<u8>,
}

/// A message of 4 + 4 bytes.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct TargetMessage {
    /// The destination, counted from the first vertex of its rank.
    pub(crate) vertex: u32,
    pub(crate) value: f32,
}

/// Where messages go.
pub(crate) trait TargetSink {
    /// Returns room for `messages` messages to a rank, at most 4,096. All of it is written.
    fn room(&mut self, rank: usize, messages: usize) -> &mut [TargetMessage];
}

/// Memory to decode a block.
pub(crate) struct RowScratch([Box<[u32; BLOCK_EDGES_MAX]>; 2]);

impl Default for RowScratch {
    fn default() -> Self {
        RowScratch([
            Box::new([0; BLOCK_EDGES_MAX]),
            Box::new([0; BLOCK_EDGES_MAX]),
        ])
    }
}

impl TargetRows {
    /// Reads the rows of `rank` of `ranks`: the columns of the next rank first, and its own last.
    pub(crate) fn read(
        graph: &StoredGraph,
        rank: usize,
        ranks: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let batches = graph.batches();
        let here = vec![vec![true; batches.len()]; ranks];
        let cuts = partition(graph, &here, None).ok_or("the graph has fewer batches than ranks")?;
        let owner = |batch: usize| cuts.partition_point(|cut| *cut <= batch) - 1;
        let (mut cells, mut data, mut arcs) = (Vec::new(), Vec::new(), 0);
        let own = cuts[rank]..cuts[rank + 1];
        // The column file that was read last.
        let mut file: Option<(PathBuf, Vec<u8>)> = None;
        for column in (own.end..batches.len()).chain(0..own.end) {
            for cell in graph.column(column).cells() {
                if !own.contains(&cell.source_batch()) {
                    continue;
                }
                let extent = graph.data_extent(column, cell);
                let begin = data.len();
                data.resize(begin + cell.data_bytes() as usize, 0);
                let path = extent.file.path(graph.path());
                if file.as_ref().is_none_or(|(of, _)| *of != path) {
                    let bytes = graph.disk().read_small(&path, u64::MAX)?;
                    file = Some((path, bytes));
                }
                let (_, bytes) = file.as_ref().ok_or("no column file")?;
                let range = extent.bytes.start as usize..extent.bytes.end as usize;
                data[begin..]
                    .copy_from_slice(bytes.get(range).ok_or("a column file is too short")?);
                arcs += cell.edges();
                cells.push(RowCell {
                    column,
                    starts: [batches.start(cell.source_batch()), batches.start(column)],
                    bytes: begin..data.len(),
                });
            }
        }
        Ok(TargetRows {
            owners: (0..batches.len()).map(owner).collect(),
            cuts: cuts.iter().map(|cut| batches.cut(*cut)).collect(),
            rank,
            arcs,
            cells,
            data,
        })
    }

    /// The vertices of a rank.
    pub(crate) fn vertices(&self, rank: usize) -> usize {
        (self.cuts[rank + 1] - self.cuts[rank]) as usize
    }

    /// Bytes of the cells.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Writes a message for each arc, with the value of its source, into the rooms of `sink`.
    ///
    /// Sources and destinations are counted from the first vertex of their ranks.
    pub(crate) fn walk(
        &self,
        values: &[f32],
        scratch: &mut RowScratch,
        sink: &mut impl TargetSink,
    ) {
        let [sources, destinations] = &mut scratch.0;
        for cell in &self.cells {
            let owner = self.owners[cell.column];
            let from = (cell.starts[0] - self.cuts[self.rank]) as usize;
            let to = (cell.starts[1] - self.cuts[owner]) as u32;
            let offset = cell.starts[1] as i64 - cell.starts[0] as i64;
            let (mut data, values) = (&self.data[cell.bytes.clone()], &values[from..]);
            while let Ok(Some((block, used))) = BlockView::parse(data, offset) {
                data = &data[used..];
                let mut room = sink.room(owner, block.edges()).iter_mut();
                simd::dispatch(
                    #[inline(always)]
                    || {
                        block.sources(sources);
                        block.for_each_edge(
                            destinations,
                            #[inline(always)]
                            |position, destination, _| {
                                let source = sources[position & (BLOCK_EDGES_MAX - 1)];
                                let value = values[source as usize];
                                if let Some(place) = room.next() {
                                    *place = TargetMessage {
                                        vertex: to + destination,
                                        value,
                                    };
                                }
                            },
                        );
                    },
                );
            }
        }
    }
}
