//! The sparse pass over lists: signal and fold in one walk over the active vertices, then apply.
//!
//! Sources are walked in ascending order and a list holds its destinations in ascending order, so each destination
//! folds in the order of the graph. The cost is one look-up an active vertex and two small random accesses an edge,
//! whatever the size of the graph; that needs an accumulator for every vertex, `IDENTITY` between passes.

use graphmill_raw::{lock, prefetch};
use graphmill_storage::DataKind;

use crate::cache::adjacency::{AdjacencyLists, value_of, with_words};
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::pass::{Pass, PassOutput, apply_reached};
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::state::row_set::RowSet;
use crate::state::rows::Rows;

/// The scratch memory that sparse passes over adjacency lists reuse.
pub(crate) struct AdjacencyScratch<P: EdgeProgram> {
    /// `IDENTITY` everywhere between passes.
    accumulators: Accumulators<P::Accumulator>,
    reached: HierarchicalBitmap,
}

impl<P: EdgeProgram> AdjacencyScratch<P> {
    /// Returns the bytes of the budget that the scratch takes in a graph of `vertices` vertices.
    pub(crate) fn memory(vertices: u64) -> u64 {
        Accumulators::<P::Accumulator>::bytes(vertices as usize) + vertices / 7 + 64
    }

    pub(crate) fn new(
        context: &ExecContext,
        identity: P::Accumulator,
    ) -> Result<Self, EngineError> {
        let vertices = context.batches.vertices() as usize;
        let mut reached = HierarchicalBitmap::default();
        reached.reserve(vertices, &context.budget)?;
        Ok(AdjacencyScratch {
            accumulators: Accumulators::new(context, vertices, identity)?,
            reached,
        })
    }
}

/// Both phases of a sparse pass over lists.
pub(crate) fn edges<P: EdgeProgram>(
    pass: Pass<'_, P>,
    lists: &AdjacencyLists,
    scratch: &mut AdjacencyScratch<P>,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    with_words!(lists, |WORDS| edges_of::<P, WORDS>(
        pass, lists, scratch, output
    ))
}

fn edges_of<P: EdgeProgram, const WORDS: usize>(
    pass: Pass<'_, P>,
    lists: &AdjacencyLists,
    scratch: &mut AdjacencyScratch<P>,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let (context, program) = (pass.context, pass.program);
    let io = &mut *lock(&context.row_io[0]);
    let (accumulators, reached) = (&mut scratch.accumulators, &mut scratch.reached);
    let report = &mut output.report;
    let current = &CurrentCall::new();
    for batch in pass.active.batches() {
        context.ranks.check_stop()?;
        let active = pass.active.batch(batch)?;
        let start = context.batches.start(batch);
        let mut batch_rows =
            context
                .arrays
                .open(batch, pass.signal, RowSet::of(&active).as_ref(), io)?;
        {
            let mut rows = P::SignalRows::slices(&mut batch_rows.guards);
            let mut sources = PrefetchBatch::new();
            let mut follow = |sources: &mut PrefetchBatch<P::Message>| {
                sources.prefetch::<_, WORDS>(lists, accumulators, reached);
                for (v, message) in sources.drain() {
                    let list = lists.of::<WORDS>(v);
                    report.messages += 1;
                    report.edges += list.len() as u64;
                    for record in list {
                        let destination = record[0] as usize;
                        reached.insert(destination);
                        let (from, to) = (v as u64, u64::from(record[0]));
                        current.on(from, to);
                        let carried = program.on_arc(from, to, message, value_of(record));
                        program.fold(&mut accumulators[destination], carried);
                    }
                }
            };
            active.for_each(|i| {
                let v = start + i as u64;
                lists.prefetch_begin(v as usize);
                current.at(v);
                if let Some(message) = program.signal(v, P::SignalRows::row(&mut rows, i))
                    && sources.push(v as usize, message)
                {
                    follow(&mut sources);
                }
            });
            follow(&mut sources);
        }
        context.count_rows(
            0,
            pass.signal,
            pass.active.count_in(batch),
            active.is_full(),
        );
        context.arrays.close(batch_rows, pass.signal, None, io)?;
    }
    let (sources, edges) = (report.messages, report.edges);
    let traffic = context.traffic.of(0);
    lists.count(traffic, sources, edges);
    let bytes = edges * size_of::<P::Accumulator>() as u64;
    traffic.change(DataKind::Messages, Access::Random, bytes);
    context.arrays.end_phase();
    for batch in 0..context.batches.len() {
        let range = context.batches.range(batch);
        let part = range.start as usize..range.end as usize;
        if reached.has_in(part.clone()) {
            let accumulators = &mut accumulators[part.clone()];
            apply_reached(pass, batch, accumulators, reached, part, io, output)?;
        }
    }
    Ok(())
}

/// Number of sources whose lists are processed together.
const SEVERAL: usize = 64;
/// Edges of one source whose accumulators are on their way before any is followed.
const EDGES_AHEAD: usize = 8;

/// A batch of sources and their messages, whose cache misses overlap.
///
/// Lists, and the accumulators they lead to, lie anywhere in memory, and waiting for each in turn would dominate the pass.
/// The batch prefetches for all sources the beginnings of the lists, then the lists, then the accumulators.
struct PrefetchBatch<M> {
    sources: [(usize, Option<M>); SEVERAL],
    count: usize,
}

impl<M: Copy> PrefetchBatch<M> {
    fn new() -> Self {
        PrefetchBatch {
            sources: [(0, None); SEVERAL],
            count: 0,
        }
    }
    /// Takes one more; whether it was the last that has room.
    #[inline(always)]
    fn push(&mut self, v: usize, message: M) -> bool {
        self.sources[self.count] = (v, Some(message));
        self.count += 1;
        self.count == SEVERAL
    }
    /// Has what following the sources will want on its way into the cache.
    #[inline(always)]
    fn prefetch<A, const WORDS: usize>(
        &self,
        lists: &AdjacencyLists,
        accumulators: &[A],
        reached: &HierarchicalBitmap,
    ) {
        let sources = &self.sources[..self.count];
        for (v, _) in sources {
            lists.prefetch_list::<WORDS>(*v);
        }
        for (v, _) in sources {
            for record in lists.of::<WORDS>(*v).iter().take(EDGES_AHEAD) {
                prefetch(accumulators, record[0] as usize);
                reached.prefetch(record[0] as usize);
            }
        }
    }
    /// The sources and their messages, in order.
    #[inline(always)]
    fn drain(&mut self) -> impl Iterator<Item = (usize, M)> {
        let sources = &self.sources[..std::mem::take(&mut self.count)];
        sources
            .iter()
            .filter_map(|(v, message)| Some((*v, (*message)?)))
    }
}
