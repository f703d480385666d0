//! What a pass over unsorted chunks would move (Chaos, section 5; `exec/stream/`).
//!
//! | what | scatter | hand over | gather |
//! | --- | --- | --- | --- |
//! | chunks, with a page for the ends of each | read once; sent to the rank that works on them | | |
//! | updates of batches without accumulators in memory | written, sent to the engine drawn | | read, sent |
//! | accumulators of batches of other ranks | | sent | |
//!
//! Ranks have equal shares of the chunks. Messages to helpers are left out: who helps depends on the time.

use graphmill_graph::DISK_PAGE_BYTES;

use crate::config::UpdateResidency;
use crate::estimate::model::{PassTraffic, PlannedRank, RankEstimator, RunEstimate};
use crate::memory::stream::{BIN_HEADER_BYTES, StreamMemory};
use crate::messages::run_codec;

impl PlannedRank<'_> {
    /// Returns the estimate of passes over chunks.
    pub(crate) fn stream(&self) -> RunEstimate {
        let of = &self.of;
        let arcs = of.question.outline.arcs / of.ranks() as u64;
        let read = of.chunks_read();
        let mut facts = RunEstimate {
            start: self.start,
            arcs,
            cell_bytes: read,
            ..self.facts_of_rank()
        };
        if self.unites() {
            let united = self.unite();
            return RunEstimate {
                early: united.pass,
                pass: united.pass,
                ..facts
            };
        }
        let memory = of.memory_of_chunks();
        let updates = memory.as_ref().map_or(0, |memory| of.updates_bytes(memory));
        let pass = PassTraffic {
            read: self.pass.read + read + updates,
            written: self.pass.written + updates,
            sent: self.pass.sent
                + of.sent_part(read.saturating_add(updates.saturating_mul(2)))
                + memory.as_ref().map_or(0, |memory| of.handed_over(memory)),
        };
        let transposes = of.sizes.against
            && of.question.outline.measure.orientations == 1
            && !of.question.outline.symmetric();
        if transposes {
            let copy = of.chunks_bytes() / of.ranks() as u64;
            facts.start.read += read;
            facts.start.written += copy;
            facts.start.sent += of.sent_part(copy);
            facts.temporary_bytes += copy;
        }
        if !self.vertex_state_resident {
            let touched = of.sizes.signal.or(of.sizes.apply);
            facts.temporary_bytes += 3 * of.rows_bytes(touched.written);
        }
        RunEstimate {
            early: pass,
            pass,
            messages_resident: updates == 0,
            temporary_bytes: facts.temporary_bytes + updates,
            ..facts
        }
    }
}

impl RankEstimator<'_> {
    /// True if the graph is in the stream layout.
    pub(crate) fn is_stream(&self) -> bool {
        self.question.outline.measure.chunks.is_some()
    }

    /// Returns the bytes of pages that hold the chunks at this rank's storage engine.
    pub(crate) fn chunks_read(&self) -> u64 {
        let outline = self.question.outline;
        let most = outline.measure.chunks.map_or(1, |dims| dims.edges_max);
        // Of each batch the last chunk is not full.
        let chunks = outline.arcs.div_ceil(most.max(1) as u64) + outline.columns.len() as u64 / 2;
        let ends = chunks * DISK_PAGE_BYTES;
        self.chunks_bytes().saturating_add(ends) / self.ranks() as u64
    }

    /// Returns the bytes of all chunks, with weights if passes read them.
    fn chunks_bytes(&self) -> u64 {
        let files = &self.question.outline.files;
        let weights = if self.sizes.weighted {
            files.weights
        } else {
            0
        };
        files.data.saturating_add(weights)
    }

    /// Returns how a pass shares out the memory that rows leave.
    fn memory_of_chunks(&self) -> Option<StreamMemory> {
        let besides = self.shape.beside_chunks(self.sizes);
        let most = match self.question.updates {
            UpdateResidency::Disk => 0,
            UpdateResidency::Auto | UpdateResidency::Memory => usize::MAX,
        };
        let free = self.free.saturating_sub(besides);
        self.shape.chunks()?.plan(self.sizes, free, most)
    }

    /// The arcs into each batch, the greatest number first, whose accumulators stay in memory first.
    fn arcs_into(&self) -> Vec<u64> {
        let columns = self.question.outline.columns.iter();
        let mut arcs: Vec<u64> = columns.map(|column| column.edges).collect();
        arcs.sort_unstable_by(|one, other| other.cmp(one));
        arcs
    }

    /// Returns the bytes of updates that this rank writes, and reads again.
    fn updates_bytes(&self, memory: &StreamMemory) -> u64 {
        let width = (size_of::<u32>() + self.sizes.accumulator) as u64;
        let written = self.arcs_into().into_iter().skip(memory.resident);
        let updates = written.sum::<u64>() / self.ranks() as u64;
        let chunks = updates.div_ceil(memory.bin_capacity.max(1) as u64);
        updates
            .saturating_mul(width)
            .saturating_add(chunks * BIN_HEADER_BYTES as u64)
    }

    /// Returns the part of evenly drawn bytes that goes to other ranks.
    fn sent_part(&self, bytes: u64) -> u64 {
        let ranks = self.ranks() as u128;
        (u128::from(bytes) * (ranks - 1) / ranks) as u64
    }

    /// Returns the bytes of accumulators that go to the owners of their batches.
    fn handed_over(&self, memory: &StreamMemory) -> u64 {
        if self.ranks() == 1 {
            return 0;
        }
        let span = self.shape.widest as u64;
        let of_batch = |arcs: u64| {
            let here = arcs / self.ranks() as u64;
            run_codec::encoding_for(here.min(span), span as usize, self.sizes.accumulator).bytes
        };
        let resident = self.arcs_into().into_iter().take(memory.resident);
        self.sent_part(resident.map(|arcs| of_batch(arcs) as u64).sum())
    }
}
