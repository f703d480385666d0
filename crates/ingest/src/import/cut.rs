//! Step 3 of an import, *cut*: counts alone say where batches and column files end, and with them where every arc goes.

use graphmill_graph::{Batches, EdgeKind, Shape};
use graphmill_storage::Lease;

use super::ids::Indexed;
use super::{Import, ImportOptions};
use crate::cut::{Granules, batch_arcs_max};
use crate::deal;
use crate::distribute;
use crate::error::IngestError;
use crate::layout::{Layout, Packing};
use crate::policy::{Duplicates, SelfLoops};

/// Counters of parts of a worker, over all buckets: what its caches can take.
const PARTS_TABLE: usize = 1 << 15;
const PARTS_MIN: usize = 16;
const PARTS_MAX: usize = 1024;

/// Bytes of tables for a batch: cuts here and in the shape, where its arcs go both ways, files.
const BATCH_BYTES: u64 = 128;

/// What follows from counts: where everything goes.
pub(super) struct Cut {
    pub(super) shape: Shape,
    pub(super) plan: distribute::Plan,
    /// What the tables of batches take.
    tables: Lease,
}

impl Cut {
    /// Bytes of the budget that it holds.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.bytes()
    }
}

/// The edges that are distributed, and what is to become of them.
struct Given {
    edges: u64,
    directed: bool,
    self_loops: SelfLoops,
    duplicates: Duplicates,
}

impl Import<'_> {
    /// Step 3, in batches of `size` vertices where that is given.
    pub(super) fn cut(
        &mut self,
        indexed: &Indexed<'_>,
        size: Option<u64>,
    ) -> Result<Cut, IngestError> {
        let options = self.options;
        let tables = self.tables(indexed.vertices, size)?;
        let cuts = indexed.arcs_in.batches(size);
        let given = Given {
            edges: self.report.edges,
            directed: options.directed,
            self_loops: options.self_loops,
            duplicates: options.duplicates,
        };
        let arcs_out = indexed.arcs_out.as_ref();
        self.lay_out(options, cuts, &indexed.arcs_in, arcs_out, given, tables)
    }

    /// The same for `arcs` arcs whose vertices are dealt over the batches, and with these the arcs, about.
    pub(super) fn cut_dealt(
        &mut self,
        options: &ImportOptions,
        vertices: u64,
        arcs: u64,
    ) -> Result<Cut, IngestError> {
        let tables = self.tables(vertices, options.batch_size)?;
        let batches = deal::batches(vertices, arcs, options.batch_size);
        let cuts = deal::cuts(vertices, batches);
        let even = Granules::new(vec![0, vertices], vec![arcs]);
        // What was to become of edges has been done.
        let given = Given {
            edges: arcs,
            directed: true,
            self_loops: SelfLoops::Keep,
            duplicates: Duplicates::Keep,
        };
        let arcs_out = options.turns_round().then_some(&even);
        self.lay_out(options, cuts, &even, arcs_out, given, tables)
    }

    /// Room for the tables of all batches.
    fn tables(&self, vertices: u64, size: Option<u64>) -> Result<Lease, IngestError> {
        let batches = size.map_or(0, |size| vertices / size.max(1));
        let budget = self.machine.budget;
        Ok(budget.lease("the table of batches", batches * BATCH_BYTES)?)
    }

    fn lay_out(
        &mut self,
        options: &ImportOptions,
        cuts: Vec<u64>,
        arcs_in: &Granules,
        arcs_out: Option<&Granules>,
        given: Given,
        tables: Lease,
    ) -> Result<Cut, IngestError> {
        let vertices = arcs_in.vertices();
        let too_many = || IngestError::TooManyVertices { vertices };
        let files = arcs_in.files(&cuts).ok_or_else(too_many)?;
        let reverse_files = match arcs_out {
            Some(arcs_out) => Some(arcs_out.files(&cuts).ok_or_else(too_many)?),
            None => None,
        };
        let weights = self.source.weights();
        let shape = Shape {
            batches: Batches::new(cuts.clone())?,
            edge: weights,
            directed: options.directed,
            strip_edges_max: 2 * batch_arcs_max(arcs_in.arcs()),
            csr_ratio: options.csr_ratio,
            files: files.clone(),
            reverse_files: reverse_files.clone(),
        };
        self.report.batches = shape.batches.len() as u64;

        let layout = Layout::new(cuts);
        let forward_files = files.len();
        let key_bits: Vec<u32> = files
            .iter()
            .chain(reverse_files.iter().flatten())
            .map(|file| layout.key_bits(file.len()))
            .collect();
        let sequenced = weights != EdgeKind::None && given.duplicates == Duplicates::First;
        let parts = (PARTS_TABLE / key_bits.len().max(1))
            .clamp(PARTS_MIN, PARTS_MAX)
            .next_power_of_two();
        let plan = distribute::Plan {
            forward: layout.columns(files, 0),
            reverse: reverse_files.map(|files| layout.columns(files, forward_files)),
            packing: Packing::new(
                key_bits.iter().copied().max().unwrap_or(0),
                weights,
                sequenced,
            ),
            layout,
            weights,
            directed: given.directed,
            self_loops: given.self_loops,
            duplicates: given.duplicates,
            edges: given.edges,
            part_shifts: key_bits
                .iter()
                .map(|bits| bits.saturating_sub(parts.trailing_zeros()))
                .collect(),
            parts,
            vertices,
        };
        Ok(Cut {
            shape,
            plan,
            tables,
        })
    }
}
