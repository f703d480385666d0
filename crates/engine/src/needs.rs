//! Filtering lists: which messages of this rank each other rank needs (DFOGraph, section 4.3).
//!
//! A rank needs a message if its source has edges to a batch that the rank owns, which fan-out lists say. Here it is a bit a vertex for each
//! other rank, so that 64 messages are filtered at once.

use graphmill_graph::FanoutChunk;
use graphmill_storage::Lease;

use crate::active::lock;
use crate::error::EngineError;
use crate::machine::Machine;

const WORD: usize = 64;

/// The filtering lists of one rank's vertices.
pub(crate) struct Needs {
    /// By rank: the bits of all vertices of this rank, each batch in words of its own; none for this rank.
    bits: Vec<Vec<u64>>,
    /// How many are set.
    counts: Vec<u64>,
    /// The first word of each own batch, and where the last ends.
    begins: Vec<usize>,
    /// The first batch.
    first: usize,
    _lease: Lease,
}

impl Needs {
    fn begins(machine: &Machine) -> Vec<usize> {
        let mut begins = vec![0];
        for batch in machine.ranks.own() {
            let words = (machine.batches.span(batch) as usize).div_ceil(WORD);
            begins.push(begins[begins.len() - 1] + words);
        }
        begins
    }

    /// Bytes of the budget that they take.
    pub(crate) fn memory(machine: &Machine) -> u64 {
        let begins = Self::begins(machine);
        let words = begins.last().copied().unwrap_or(0);
        Self::bytes(words, begins.len(), machine.ranks.count())
    }

    /// The same for so many words of bits of a rank's vertices, which begin at so many places.
    pub(crate) fn bytes(words: usize, begins: usize, ranks: usize) -> u64 {
        ((words * (ranks - 1) + begins) * size_of::<u64>()) as u64
    }

    /// The lists, and the bytes read for them.
    pub(crate) fn load(machine: &Machine) -> Result<(Self, u64), EngineError> {
        let _lease = (machine.budget).lease("filtering lists", Self::memory(machine))?;
        let ranks = &machine.ranks;
        let begins = Self::begins(machine);
        let words = begins.last().copied().unwrap_or(0);
        let of_rank = |rank| if rank == ranks.rank() { 0 } else { words };
        let mut bits: Vec<Vec<u64>> = (0..ranks.count())
            .map(|rank| vec![0; of_rank(rank)])
            .collect();
        let mut frames = lock(&machine.frames);
        let (graph, own) = (&machine.graph, ranks.own());
        let of_rank = machine.batches.cut(own.start)..machine.batches.cut(own.end);
        let mut owners = Vec::new();
        graph.fanouts_in(
            graph.forward(),
            &mut frames,
            of_rank.clone(),
            |first, chunk| {
                owners.clear();
                for position in 0..chunk.union() {
                    owners.push(ranks.owner(chunk.batch(position)?));
                }
                let from = first.max(of_rank.start);
                let to = of_rank.end.min(first + FanoutChunk::VERTICES as u64);
                let mut batch = machine.batches.batch_of(from);
                for v in from..to {
                    while v >= machine.batches.cut(batch + 1) {
                        batch += 1;
                    }
                    let local = (v - machine.batches.start(batch)) as usize;
                    let (word, bit) = (
                        begins[batch - own.start] + local / WORD,
                        1 << (local % WORD),
                    );
                    chunk.each((v - first) as usize, |position| {
                        if let Some(of_rank) = bits[owners[position]].get_mut(word) {
                            *of_rank |= bit;
                        }
                    })?;
                }
                Some(())
            },
        )?;
        let ones = |words: &Vec<u64>| words.iter().map(|word| u64::from(word.count_ones())).sum();
        let needs = Needs {
            counts: bits.iter().map(ones).collect(),
            bits,
            begins,
            first: ranks.own().start,
            _lease,
        };
        Ok((needs, frames.take_bytes_read()))
    }

    /// How many vertices of this rank have edges to a rank.
    pub(crate) fn listed(&self, rank: usize) -> u64 {
        self.counts[rank]
    }

    /// Which vertices of a batch have edges to a rank.
    pub(crate) fn of(&self, rank: usize, batch: usize) -> &[u64] {
        let number = batch - self.first;
        &self.bits[rank][self.begins[number]..self.begins[number + 1]]
    }
}
