//! Step 3 of an import, *cut*: counts alone say where batches and column files end, and with them where every arc goes.

use graphmill_graph::{Batches, EdgeKind, GraphSpec, Order};
use graphmill_storage::Lease;

use super::assign_ids::ArcStats;
use super::context::ImportContext;
use crate::build::distribute::DistributionPlan;
use crate::error::IngestError;
use crate::layout::batch_cut::{RangeCounts, batch_arcs_max};
use crate::layout::degree_order;
use crate::layout::edge_key::{EdgeKeyLayout, RecordPacking};
use crate::options::{Duplicates, ImportOptions};

/// Counters of parts of a worker, over all buckets: what its caches can take.
const PARTS_TABLE: usize = 1 << 15;
const PARTS_MIN: usize = 16;
const PARTS_MAX: usize = 1024;

/// Bytes of tables for a batch: cuts here and in the shape, where its arcs go both ways, files.
pub(crate) const BATCH_BYTES: u64 = 128;

/// The destination of distributed arcs.
#[derive(Clone, Copy)]
pub(crate) struct ShuffleTarget<'p> {
    pub(crate) plan: &'p DistributionPlan,
    /// The rank of each bucket; empty: all are this one's.
    pub(crate) owners: &'p [usize],
}

/// The plan that follows from counts.
pub(crate) struct CutPlan {
    pub(crate) shape: GraphSpec,
    pub(crate) plan: DistributionPlan,
    /// The rank that writes the column file of each bucket.
    pub(crate) owners: Vec<usize>,
    /// The memory of the tables of batches.
    tables: Lease,
}

impl CutPlan {
    /// Returns the destination of the arcs of all column files.
    pub(crate) fn to_all(&self) -> ShuffleTarget<'_> {
        ShuffleTarget {
            plan: &self.plan,
            owners: &self.owners,
        }
    }

    /// Bytes of the budget that it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables.bytes()
    }
}

/// The counts that decide where batches and column files end.
pub(crate) struct CutInput<'c> {
    pub(crate) vertices: u64,
    pub(crate) edges: u64,
    pub(crate) arcs_in: &'c RangeCounts,
    pub(crate) arcs_out: Option<&'c RangeCounts>,
    pub(crate) weights: EdgeKind,
}

/// Cuts the graph: where batches and column files end, where arcs go, and which rank writes each file.
pub(crate) fn cut(
    counted: &CutInput<'_>,
    ranks: usize,
    options: &ImportOptions,
) -> Result<(GraphSpec, DistributionPlan, Vec<usize>), IngestError> {
    let (vertices, weights) = (counted.vertices, counted.weights);
    let (arcs_in, arcs_out) = (counted.arcs_in, counted.arcs_out);
    let size = options.batch_size;
    let cuts = match options.order {
        Order::Id => arcs_in.batches(size, options.edge_vertices),
        Order::Degree => {
            let batches = degree_order::batches(vertices, arcs_in.arcs(), size);
            degree_order::cuts(vertices, batches)
        }
    };
    let too_many = || IngestError::TooManyVertices { vertices };
    let files = arcs_in.files(&cuts).ok_or_else(too_many)?;
    let reverse_files = arcs_out.map(|arcs_out| arcs_out.files(&cuts).ok_or_else(too_many));
    let reverse_files = reverse_files.transpose()?;
    let mut owners = arcs_in.owners(&cuts, &files, ranks);
    if let (Some(arcs_out), Some(files)) = (arcs_out, &reverse_files) {
        owners.extend(arcs_out.owners(&cuts, files, ranks));
    }
    let shape = GraphSpec {
        chunk_bytes: None,
        batches: Batches::new(cuts.clone())?,
        edge: weights,
        directed: options.directed,
        strip_edges_max: 2 * batch_arcs_max(arcs_in.arcs()),
        csr_ratio: options.csr_ratio,
        files: files.clone(),
        reverse_files: reverse_files.clone(),
    };

    let layout = EdgeKeyLayout::new(cuts);
    let forward_files = files.len();
    let all_files = files.iter().chain(reverse_files.iter().flatten());
    let key_bits: Vec<u32> = all_files.map(|file| layout.key_bits(file.len())).collect();
    let key_bits_max = key_bits.iter().copied().max().unwrap_or(0);
    let sequenced = weights != EdgeKind::None && options.duplicates == Duplicates::First;
    let parts = (PARTS_TABLE / key_bits.len().max(1))
        .clamp(PARTS_MIN, PARTS_MAX)
        .next_power_of_two();
    let plan = DistributionPlan {
        forward: layout.columns(files, 0),
        reverse: reverse_files.map(|files| layout.columns(files, forward_files)),
        packing: RecordPacking::new(key_bits_max, weights, sequenced),
        layout,
        weights,
        first_edge_vertex: (options.edge_vertices).then(|| vertices - counted.edges),
        directed: options.directed,
        self_loops: options.self_loops,
        duplicates: options.duplicates,
        edges: counted.edges,
        part_shifts: key_bits
            .iter()
            .map(|bits| bits.saturating_sub(parts.trailing_zeros()))
            .collect(),
        parts,
        vertices,
    };
    Ok((shape, plan, owners))
}

impl ImportContext<'_> {
    /// Step 3.
    pub(crate) fn cut(&mut self, arc_stats: &ArcStats) -> Result<CutPlan, IngestError> {
        let options = self.options;
        let (vertices, size) = (arc_stats.vertices, options.batch_size);
        let batches = size.map_or(0, |size| vertices / size.max(1));
        let budget = self.resources.budget;
        let tables = budget.lease("the table of batches", batches * BATCH_BYTES)?;
        let counted = CutInput {
            vertices,
            edges: self.report.edges,
            arcs_in: &arc_stats.arcs_in,
            arcs_out: arc_stats.arcs_out.as_ref(),
            weights: self.source.weights(),
        };
        let (shape, plan, owners) = cut(&counted, self.comm.count(), options)?;
        self.report.batches = shape.batches.len() as u64;
        Ok(CutPlan {
            shape,
            plan,
            owners,
            tables,
        })
    }
}
