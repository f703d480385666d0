//! The input of a phase, and its result.

/// The chunks of one kind on an engine, of one batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkPile {
    pub(super) chunks: u64,
    pub(super) bytes: u64,
}

/// The chunks of one kind: by batch, then by engine.
pub(super) type ChunkMap = Vec<Vec<ChunkPile>>;

/// Where a worker finds the state of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum StateAt {
    Memory,
    /// In chunks at engines drawn uniformly.
    Engines,
    /// On the disk of the owner, which alone loads it.
    OwnDisk,
    /// In the memory of the owner, which sends it.
    Owner,
}

/// The reads and writes of a phase. Sizes of state are by batch.
#[derive(Debug)]
pub(super) struct PhasePlan<'a> {
    pub(super) owners: &'a [usize],
    /// Vertices of a batch.
    pub(super) vertices: u64,
    pub(super) owner_state: (StateAt, u64),
    pub(super) helper_state: (StateAt, u64),
    /// Accumulators that a helper returns to the owner.
    pub(super) returned: u64,
    /// Rows that the owner writes at the end.
    pub(super) applied: (StateAt, u64),
    /// Bytes of an input record.
    pub(super) record: f64,
    /// Bytes written for a byte of input.
    pub(super) output: f64,
    /// Cumulative shares of batches in the output, and the owners of these batches.
    pub(super) targets: &'a [f64],
    pub(super) target_owners: &'a [usize],
}

impl<'a> PhasePlan<'a> {
    /// A phase without state.
    pub(super) fn new(owners: &'a [usize], targets: &'a [f64], target_owners: &'a [usize]) -> Self {
        PhasePlan {
            owners,
            vertices: 0,
            owner_state: (StateAt::Memory, 0),
            helper_state: (StateAt::Memory, 0),
            returned: 0,
            applied: (StateAt::Memory, 0),
            record: 8.0,
            output: 0.0,
            targets,
            target_owners,
        }
    }
}

/// Nanoseconds of all workers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeSplit {
    /// On batches of their own.
    pub(super) own: u64,
    /// On batches of others.
    pub(super) stolen: u64,
    /// Loading state as a helper, sending accumulators and waiting for them.
    pub(super) copied: u64,
    /// Waiting for the barrier.
    pub(super) idle: u64,
}

/// The result of a phase.
#[derive(Debug, Default)]
pub(super) struct PhaseReport {
    pub(super) nanos: u64,
    /// Bytes that disks read and wrote.
    pub(super) bytes: u64,
    /// Nanoseconds in which disks were busy, over all disks.
    pub(super) disk_busy: u64,
    pub(super) split: TimeSplit,
    pub(super) output: ChunkMap,
}
