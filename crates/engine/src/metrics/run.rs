//! The metrics of a run, pass by pass.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::traffic::{PlacementInfo, TierBytes};
use crate::value::Reduce;

/// How the edges of a pass were gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// From each source to its list, column by column.
    #[default]
    Scatter,
    /// From its list to each source, row by row.
    Gather,
    /// Only the lists of the few active sources, by their places.
    Sparse,
    /// Over lists in memory, from each active vertex to its neighbours, at once.
    Push,
    /// Over lists in memory, from each vertex that has no label to its neighbours, until one has.
    Pull,
    /// From each source along unsorted chunks of arcs.
    Stream,
    /// From each source along rows of cells in memory, in datagrams.
    Buckets,
    /// No edges: messages to vertices by their indices.
    Send,
    /// No edges: rows only.
    Vertices,
}

/// One pass.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PassMetrics {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Active vertices; all, where the pass applies every vertex.
    pub active: u64,
    /// Messages emitted.
    pub messages: u64,
    /// Messages sent to other ranks.
    pub messages_sent: u64,
    /// Edges that carried a message.
    pub edges: u64,
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Pairs of ranks whose sender filtered its messages.
    pub filtered_peers: u64,
    /// Cells that edges were read of.
    pub cells: u64,
    /// Of these, cells whose index selected the blocks that were read.
    pub cells_indexed: u64,
    /// Chunks of arcs that were processed, in the stream layout.
    pub chunks: u64,
    /// Elements scanned: sources of blocks that were read or, in lookups, sources walked over or looked up.
    ///
    /// For messages on disk it also counts messages, and entries and words of the lists that route them.
    pub elements_scanned: u64,
    /// Messages pushed to the column groups that need them, once for each.
    pub messages_pushed: u64,
    /// Messages that column groups pulled from whole batches.
    pub messages_pulled: u64,
    /// Bytes moved in memory, by kind of data.
    pub tiers: TierBytes,
    /// Seconds that workers spent for bytes on the slow tier, all workers together; 0 without a charge.
    pub simulated_tier_seconds: f64,
    /// How the edges were gone through.
    pub mode: Mode,
}

/// Maximum number of listed passes; later ones are only summed.
///
/// So a walk along a path of millions of vertices does not run out of memory.
pub const LISTED_MAX: usize = 1 << 14;

/// Passes that are not listed, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TruncatedPasses {
    /// How many.
    pub passes: u64,
    /// Their wall-clock seconds.
    pub seconds: f64,
    /// Seconds of passes over edges.
    #[serde(skip)]
    pub seconds_over_edges: f64,
    /// Messages emitted.
    pub messages: u64,
    /// Messages sent to other ranks.
    pub messages_sent: u64,
    /// Edges that carried a message.
    pub edges: u64,
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Pairs of ranks between which messages were filtered.
    pub filtered_peers: u64,
    /// Elements that were looked at.
    pub elements_scanned: u64,
    /// Cells that edges were read of.
    pub cells: u64,
    /// Of these, cells in which edges were looked up.
    pub cells_indexed: u64,
    /// Chunks of arcs that were processed.
    pub chunks: u64,
    /// Bytes moved in memory, by kind of data.
    pub tiers: TierBytes,
    /// Seconds that workers spent for bytes on the slow tier.
    pub simulated_tier_seconds: f64,
}

/// The counts that a listed pass has and the sum of those that are not listed.
///
/// Ranks add them up, so a rank counts only what it owns. A new count is a field of `PassMetrics` and of `TruncatedPasses`, and a line here.
macro_rules! counts {
    ($of:expr) => {
        [
            &mut $of.messages,
            &mut $of.messages_sent,
            &mut $of.edges,
            &mut $of.bytes_read,
            &mut $of.bytes_written,
            &mut $of.bytes_sent,
            &mut $of.filtered_peers,
            &mut $of.elements_scanned,
            &mut $of.cells,
            &mut $of.cells_indexed,
            &mut $of.chunks,
        ]
    };
}

impl PassMetrics {
    /// Returns the report of a pass, without counts.
    pub(crate) fn new(mode: Mode) -> PassMetrics {
        PassMetrics {
            mode,
            ..PassMetrics::default()
        }
    }
    /// Returns the report of a pass in memory.
    pub(crate) fn in_memory(mode: Mode, [active, messages, edges]: [u64; 3]) -> PassMetrics {
        PassMetrics {
            active,
            messages,
            edges,
            ..PassMetrics::new(mode)
        }
    }
    /// Counts bytes read and written.
    pub(crate) fn add_traffic(&mut self, [read, written]: [u64; 2]) {
        self.bytes_read += read;
        self.bytes_written += written;
    }
    /// True if the pass went over edges.
    fn is_over_edges(&self) -> bool {
        !matches!(self.mode, Mode::Vertices | Mode::Send)
    }
}

/// One of several ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankMetrics {
    /// The batches that it owns: the first, and the one after the last.
    pub batches: [u64; 2],
    /// Their vertices.
    pub vertices: u64,
    /// The edges into them.
    pub edges: u64,
    /// The most bytes of memory that it leased at one time.
    pub peak_memory: u64,
    /// Chunks of arcs that it processed, of its own batches and of others, in the stream layout.
    pub chunks: u64,
    /// Messages sent to each rank.
    pub messages_to: Vec<u64>,
    /// Bytes sent to each rank.
    pub bytes_to: Vec<u64>,
}

/// All passes of an engine, in order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Metrics {
    /// One entry a pass, of the first [`LISTED_MAX`].
    pub passes: Vec<PassMetrics>,
    /// The passes after them, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated_passes: Option<TruncatedPasses>,
    /// Where each kind of data lies in memory.
    pub placement: BTreeMap<&'static str, PlacementInfo>,
    /// Seconds in which edges were loaded into memory, apart from all passes.
    #[serde(skip)]
    pub loading: f64,
    /// Cells held in memory, in bytes of the stored graph.
    pub cached_cell_bytes: u64,
    /// Edges held in memory as lists, in bytes.
    pub adjacency_bytes: u64,
    /// Passes over edges or of messages, with those that an earlier run did that this one resumes.
    #[serde(skip)]
    pub(crate) counted: u64,
    /// True if all vertex rows that passes named were in memory.
    pub vertex_state_resident: bool,
    /// True if messages were kept in memory.
    pub messages_resident: bool,
    /// True if a vertex program ran as `pull` where `push` was asked for.
    ///
    /// Several ranks have no mailboxes in common.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub push_became_pull: bool,
    /// How near to a fixed point the run ended, where its algorithm iterates towards one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
    /// What became of datagrams, if the bucket executor ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramMetrics>,
    /// What each rank did, where there were several.
    #[serde(rename = "per_rank", skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankMetrics>,
}

/// Buckets of all ranks that were sent or came again, dropped datagrams, and the time of roles.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DatagramMetrics {
    /// Buckets that were sent again.
    pub resent: u64,
    /// Buckets that came once more.
    pub doubled: u64,
    /// Datagrams that were dropped, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Seconds of all threads together in each role, without idle steps: `work`, `send`, `accumulate`.
    pub role_seconds: BTreeMap<&'static str, f64>,
    /// Seconds of all exchanges on the first rank, to the agreement that all buckets have come.
    pub exchange_seconds: f64,
}

/// How near to a fixed point an iteration ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Convergence {
    /// Iterations that were done.
    pub iterations: u64,
    /// The change of all values together in the last iteration.
    pub residual: f64,
    /// The change below which the run was to end, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// True if the residual is below the tolerance, or none was asked for.
    pub reached: bool,
}

impl Convergence {
    /// Of a run that ended with this change, and was to end below `tolerance`.
    #[must_use]
    pub fn new(residual: f64, tolerance: Option<f64>) -> Self {
        Convergence {
            iterations: 0,
            residual,
            tolerance,
            reached: tolerance.is_none_or(|tolerance| residual < tolerance),
        }
    }

    /// Returns the same convergence after `iterations` iterations.
    #[must_use]
    pub fn after(self, iterations: u64) -> Self {
        Convergence { iterations, ..self }
    }
}

impl Metrics {
    /// Number of passes.
    #[must_use]
    pub fn passes(&self) -> u64 {
        let truncated = self.truncated_passes.map_or(0, |all| all.passes);
        self.passes.len() as u64 + truncated
    }

    /// Returns the number of the current edge or send pass, from 1.
    ///
    /// A call of an earlier run counts as one pass.
    pub(crate) fn pass_number(&self) -> u64 {
        self.counted + 1
    }

    /// Returns billions of edges traversed a second (GTEPS).
    ///
    /// That is the edges that carried a message over the seconds of passes over edges; `None` without such a pass.
    #[must_use]
    pub fn gteps(&self) -> Option<f64> {
        let passes = self.passes.iter();
        let of_edges = passes.filter(|pass| pass.is_over_edges());
        let listed = of_edges.map(|pass| (pass.edges, pass.seconds));
        let truncated = self
            .truncated_passes
            .map(|unlisted| (unlisted.edges, unlisted.seconds_over_edges));
        let (edges, seconds) = listed
            .chain(truncated)
            .fold((0, 0.0), |sum, pass| (sum.0 + pass.0, sum.1 + pass.1));
        (edges > 0 && seconds > 0.0).then(|| edges as f64 / seconds / 1e9)
    }

    /// Returns the counts of each pass that each rank counts on its own.
    fn counts(&mut self) -> impl Iterator<Item = &mut u64> {
        let passes = self.passes.iter_mut().flat_map(|pass| {
            let routed = [&mut pass.messages_pushed, &mut pass.messages_pulled];
            counts!(pass).into_iter().chain(routed)
        });
        let truncated = self.truncated_passes.iter_mut();
        passes.chain(truncated.flat_map(|all| counts!(all)))
    }

    /// Returns the chunks of arcs that all passes processed.
    pub(crate) fn chunks(&self) -> u64 {
        let truncated = self.truncated_passes.map_or(0, |all| all.chunks);
        self.passes.iter().map(|pass| pass.chunks).sum::<u64>() + truncated
    }

    /// Returns the counts of this rank, to be summed with the others' ([`Metrics::take_counts`]).
    pub(crate) fn put_counts(&mut self) -> Vec<u64> {
        self.counts().map(|count| *count).collect()
    }

    /// Takes over the counts of all ranks together.
    pub(crate) fn take_counts(&mut self, sums: &[u64]) {
        for (count, sum) in self.counts().zip(sums) {
            *count = *sum;
        }
    }

    /// Encodes the metrics of a rank.
    pub(crate) fn put(of_rank: &RankMetrics) -> Vec<u8> {
        let mut bytes = Vec::new();
        of_rank.batches.put(&mut bytes);
        let numbers = [
            of_rank.vertices,
            of_rank.edges,
            of_rank.peak_memory,
            of_rank.chunks,
        ];
        numbers.put(&mut bytes);
        let sent = of_rank.messages_to.iter().chain(&of_rank.bytes_to);
        sent.for_each(|sent| sent.put(&mut bytes));
        bytes
    }

    /// Decodes the metrics of all ranks, each encoded by [`Metrics::put`]; returns `None` if malformed.
    pub(crate) fn take(&mut self, payload: &[Vec<u8>]) -> Option<()> {
        let ranks = payload.len();
        self.ranks.clear();
        for mut payload in payload.iter().map(|payload| &payload[..]) {
            let batches = <[u64; 2]>::take(&mut payload)?;
            let [vertices, edges, peak_memory, chunks] = <[u64; 4]>::take(&mut payload)?;
            let mut number = |_| u64::take(&mut payload);
            let mut list = || (0..ranks).map(&mut number).collect::<Option<_>>();
            let (messages_to, bytes_to) = (list()?, list()?);
            self.ranks.push(RankMetrics {
                batches,
                vertices,
                edges,
                peak_memory,
                chunks,
                messages_to,
                bytes_to,
            });
        }
        Some(())
    }

    /// Takes in one more pass.
    pub(crate) fn push(&mut self, mut pass: PassMetrics) {
        self.counted += u64::from(pass.mode != Mode::Vertices);
        if self.passes.len() < LISTED_MAX {
            self.passes.push(pass);
            return;
        }
        let all = self.truncated_passes.get_or_insert_default();
        all.passes += 1;
        all.seconds += pass.seconds;
        if pass.is_over_edges() {
            all.seconds_over_edges += pass.seconds;
        }
        for (sum, count) in counts!(all).into_iter().zip(counts!(pass)) {
            *sum += *count;
        }
        all.tiers.add(&pass.tiers);
        all.simulated_tier_seconds += pass.simulated_tier_seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_beyond_the_list_are_summed() {
        let mut metrics = Metrics::default();
        for pass in 0..LISTED_MAX as u64 + 3 {
            metrics.push(PassMetrics {
                edges: pass,
                ..PassMetrics::new(Mode::Sparse)
            });
        }
        let truncated = metrics.truncated_passes.unwrap();
        assert_eq!((metrics.passes.len(), truncated.passes), (LISTED_MAX, 3));
        assert_eq!(truncated.edges, 3 * LISTED_MAX as u64 + 3);
        assert_eq!(metrics.passes(), LISTED_MAX as u64 + 3);
    }

    #[test]
    fn edge_rate_counts_edge_passes_only() {
        let mut metrics = Metrics::default();
        assert_eq!(metrics.gteps(), None);
        for (mode, edges, seconds) in [
            (Mode::Vertices, 0, 5.0),
            (Mode::Pull, 3_000_000_000, 0.5),
            (Mode::Scatter, 1_000_000_000, 1.5),
        ] {
            metrics.push(PassMetrics {
                edges,
                seconds,
                ..PassMetrics::new(mode)
            });
        }
        assert_eq!(metrics.gteps(), Some(2.0));
        // So it is where passes are too many to be listed.
        let pass = |mode, edges| PassMetrics {
            edges,
            seconds: 1.0,
            ..PassMetrics::new(mode)
        };
        let mut metrics = Metrics::default();
        for _ in 0..LISTED_MAX {
            metrics.push(pass(Mode::Vertices, 0));
            metrics.push(pass(Mode::Send, 0));
            metrics.push(pass(Mode::Sparse, 3_000_000_000));
        }
        assert_eq!(metrics.gteps(), Some(3.0));
    }
}
