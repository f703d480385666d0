//! The hand-over between scatter and gather: accumulators of batches of other ranks go to their owners.

use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, failpoint};

use crate::error::{EngineError, ensure};
use crate::exchange::all_to_all::{Exchange, FillStatus, FrameSource, Received};
use crate::exchange::frame::{Frame, Section};
use crate::exec::column::kernel::pass::Pass;
use crate::exec::stream::bins::Bins;
use crate::messages::batch::MessageSlice;
use crate::messages::run_codec::{WORD, is_listed};
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::value::Accumulator;

/// Sends the accumulators of batches of other ranks to their owners, and merges those that come.
pub(crate) fn hand_over<P: EdgeProgram>(
    pass: &Pass<'_, P>,
    bins: &Bins,
) -> Result<(), EngineError> {
    let ranks = &pass.context.ranks;
    let width = size_of::<P::Accumulator>();
    let outgoing = |to, _| HandOverOutput {
        bins,
        identity: pass.program.identity(),
        batches: ranks.of(to),
        word: 0,
    };
    let incoming = |from, received: Received<'_>| match received {
        Received::All => Ok(()),
        Received::Section(section) => {
            let is_own = ranks.own().contains(&section.batch) && from != ranks.rank();
            ensure(is_own, protocol_error)?;
            take(pass, bins, &section)
        }
    };
    Exchange::run(pass.context, width, outgoing, incoming)
}

/// Merges accumulators that come from another rank.
fn take<P: EdgeProgram>(
    pass: &Pass<'_, P>,
    bins: &Bins,
    section: &Section<'_>,
) -> Result<(), EngineError> {
    let start = pass.context.batches.start(section.batch);
    let span = pass.context.batches.span(section.batch) as usize;
    let mut resident = bins.resident(section.batch);
    // All ranks have the accumulators of the same batches in memory.
    let resident = resident.as_mut().ok_or_else(protocol_error)?;
    resident.is_touched = true;
    let accumulators = resident.memory.typed_mut::<P::Accumulator>();
    let current = CurrentCall::new();
    let mut is_outside = false;
    section.each(|local, later: P::Accumulator| {
        is_outside |= local >= span;
        if let Some(one) = accumulators.get_mut(local) {
            current.at(start + local as u64);
            pass.program.merge(one, later);
        }
    });
    ensure(!is_outside, protocol_error)
}

/// The accumulators for one rank.
struct HandOverOutput<'h, A> {
    bins: &'h Bins,
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
                let values = of.memory.typed::<A>();
                let present: Vec<u64> = values.chunks(WORD).map(bits).collect();
                let count = present.iter().map(|word| u64::from(word.count_ones()));
                let slice = MessageSlice {
                    values,
                    present: &present,
                    full: false,
                    few: false,
                };
                let listed = is_listed(count.sum(), values.len());
                self.word = frame.messages(batch, slice, |_| !0, listed, self.word);
                if self.word < present.len() {
                    return Ok(FillStatus::Full);
                }
                let is_sent = true;
                failpoint!(OldUpdatesFolded: is_sent = !is_sent);
                if is_sent {
                    of.memory.typed_mut().fill(self.identity);
                    of.is_touched = false;
                }
            }
            (self.batches.start, self.word) = (batch + 1, 0);
        }
        Ok(FillStatus::All)
    }
}
