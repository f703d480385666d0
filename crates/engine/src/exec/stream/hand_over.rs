//! The hand-over between scatter and gather: accumulators of batches of other ranks go to their owners.
//!
//! The owner merges them into its own. If it has none in memory for a batch, they become updates of that batch.

use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, failpoint};

use crate::error::{EngineError, ensure};
use crate::exchange::all_to_all::{Exchange, FillStatus, FrameSource, Received};
use crate::exchange::frame::{Frame, Section};
use crate::exec::column::kernel::pass::Pass;
use crate::exec::stream::bins::{Bins, parts_mut};
use crate::exec::stream::service::ServiceState;
use crate::messages::batch::MessageSlice;
use crate::messages::run_codec::{WORD, is_listed};
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::value::Accumulator;

/// Sends the accumulators of batches of other ranks to their owners, and merges those that come.
///
/// `number` is that of the superstep.
pub(crate) fn hand_over<P: EdgeProgram>(
    pass: &Pass<'_, P>,
    number: u64,
    bins: &Bins<P::Accumulator>,
    state: &mut ServiceState,
) -> Result<(), EngineError> {
    let context = pass.context;
    let ranks = &context.ranks;
    let width = size_of::<P::Accumulator>();
    let outgoing = |to, _| HandOverOutput {
        bins,
        identity: P::IDENTITY,
        batches: ranks.of(to),
        word: 0,
    };
    let incoming = |from, received: Received<'_>| match received {
        Received::All => Ok(()),
        Received::Section(section) => {
            ensure(ranks.own().contains(&section.batch), protocol_error)?;
            let inbound = HandOverInput { pass, number, bins };
            ensure(from != ranks.rank(), protocol_error)?;
            inbound.take(&section, state)
        }
    };
    Exchange::run(context, width, outgoing, incoming)?;
    for batch in ranks.own() {
        let inbound = HandOverInput { pass, number, bins };
        inbound.empty(batch, state)?;
    }
    Ok(())
}

/// The accumulators for one rank.
struct HandOverOutput<'h, A> {
    bins: &'h Bins<A>,
    identity: A,
    /// The batches that are not sent.
    batches: Range<usize>,
    /// The word of the first of them from which on accumulators are not sent.
    word: usize,
}

impl<A: Accumulator + Element> FrameSource for HandOverOutput<'_, A> {
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError> {
        while !self.batches.is_empty() {
            let batch = self.batches.start;
            let mut resident = self.bins.resident(batch);
            if let Some(of) = resident.as_mut().filter(|of| of.is_touched) {
                let bits = |word: &[A]| {
                    let set = word.iter().enumerate();
                    set.fold(0, |bits, (i, one)| {
                        bits | u64::from(!one.bit_eq(&self.identity)) << i
                    })
                };
                let present: Vec<u64> = of.accumulators.chunks(WORD).map(bits).collect();
                let count = present.iter().map(|word| u64::from(word.count_ones()));
                let slice = MessageSlice {
                    values: &of.accumulators,
                    present: &present,
                    full: false,
                    few: false,
                };
                let listed = is_listed(count.sum(), of.accumulators.len());
                self.word = frame.messages(batch, slice, |_| !0, listed, self.word);
                if self.word < present.len() {
                    return Ok(FillStatus::Full);
                }
                let is_sent = true;
                failpoint!(OldUpdatesFolded: is_sent = !is_sent);
                if is_sent {
                    of.accumulators.fill(self.identity);
                    of.is_touched = false;
                }
            }
            (self.batches.start, self.word) = (batch + 1, 0);
        }
        Ok(FillStatus::All)
    }
}

/// Accumulators that come from another rank.
struct HandOverInput<'h, P: EdgeProgram> {
    pass: &'h Pass<'h, P>,
    number: u64,
    bins: &'h Bins<P::Accumulator>,
}

impl<P: EdgeProgram> HandOverInput<'_, P> {
    fn take(&self, section: &Section<'_>, state: &mut ServiceState) -> Result<(), EngineError> {
        let (batch, batches) = (section.batch, &self.pass.context.batches);
        let (start, span) = (batches.start(batch), batches.span(batch) as usize);
        let mut resident = self.bins.resident(batch);
        let mut is_outside = false;
        if let Some(resident) = &mut *resident {
            resident.is_touched = true;
            let current = CurrentCall::new();
            section.each(|local, later: P::Accumulator| {
                is_outside |= local >= span;
                if let Some(one) = resident.accumulators.get_mut(local) {
                    current.at(start + local as u64);
                    self.pass.program.merge(one, later);
                }
            });
            return ensure(!is_outside, protocol_error);
        }
        drop(resident);
        let mut failed = Ok(());
        section.each(|local, later: P::Accumulator| {
            is_outside |= local >= span;
            if failed.is_ok() && !is_outside {
                failed = self.add(batch, local, later, state);
            }
        });
        failed?;
        ensure(!is_outside, protocol_error)
    }

    /// Adds an update to the bin of a batch of this rank, whose accumulators are not in memory.
    fn add(
        &self,
        batch: usize,
        local: usize,
        value: P::Accumulator,
        state: &mut ServiceState,
    ) -> Result<(), EngineError> {
        let capacity = self.bins.capacity();
        let mut bin = self.bins.bin(batch);
        let count = bin.count;
        let (indices, values) = parts_mut::<P::Accumulator>(&mut bin.buffer, capacity);
        (indices[count], values[count]) = (local as u32, value);
        bin.count += 1;
        let is_full = bin.count == capacity;
        drop(bin);
        match is_full {
            true => self.empty(batch, state),
            false => Ok(()),
        }
    }

    /// Writes the bin of a batch of this rank to its own storage engine.
    fn empty(&self, batch: usize, state: &mut ServiceState) -> Result<(), EngineError> {
        let mut bin = self.bins.bin(batch);
        let count = std::mem::take(&mut bin.count);
        if count == 0 {
            return Ok(());
        }
        let sizes = (count, self.bins.capacity(), size_of::<P::Accumulator>());
        state.put_own(batch, self.number, &mut bin.buffer, sizes)
    }
}
