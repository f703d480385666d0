//! What the ranks of a search tell each other between two rounds: the vertices of their own whose labels were lowered.
//!
//! Each rank has the lists of the arcs into its own vertices, and a copy of the labels of all vertices. A round lowers own
//! labels only. After it every rank tells the others which vertices send next, with numbers that all add up. So the numbers
//! that ranks decide by cost no messages of their own.
//!
//! ```text
//! section   kind: u32 | first: u32 | entries
//! numbers   a u64 each; the first section of a rank, and the only one
//! list      vertex: u32, and its label
//! bits      words of 64 bits, of vertices from 64 `first` on; of vertices without labels, where bits are shorter
//! ```

use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{AtomicBitmap, Element};
use graphmill_storage::Lease;
use zerocopy::IntoBytes;

use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exchange::all_to_all::{Exchange, FillStatus, FrameSource, Received};
use crate::exchange::frame::Frame;
use crate::frontier::bitmap::Bits;

const NUMBERS: u32 = 0;
const LIST: u32 = 1;
const BITS: u32 = 2;
const WORD: usize = AtomicBitmap::WORD;
/// Bytes of the kind of a section and its first word.
const HEAD: usize = 8;

/// The other ranks of a search.
pub(crate) struct SearchPeers<'e> {
    context: &'e ExecContext<'e>,
    /// The vertices of this rank.
    own: Range<usize>,
    /// Vertices to tell of, and the words of them that may have any.
    marks: AtomicBitmap,
    words: AtomicBitmap,
    _lease: Lease,
}

/// The vertices that a rank tells of.
#[derive(Clone, Copy)]
pub(crate) enum Told<'t> {
    /// Those that were marked.
    Marked,
    /// Its own among these bits, and their number.
    Own(&'t AtomicBitmap, u64),
}

impl<'e> SearchPeers<'e> {
    /// Returns the bytes of the budget in a graph of `vertices` vertices.
    pub(crate) fn memory(vertices: u64) -> u64 {
        AtomicBitmap::bytes(vertices) + AtomicBitmap::bytes(vertices.div_ceil(WORD as u64))
    }

    /// Returns the peers of this rank; `None` if it is the only one.
    pub(crate) fn new(context: &'e ExecContext<'e>) -> Result<Option<Self>, EngineError> {
        if context.ranks.alone() {
            return Ok(None);
        }
        let vertices = context.batches.vertices();
        let lease = (context.budget).lease("vertices to tell of", Self::memory(vertices))?;
        Ok(Some(SearchPeers {
            context,
            own: vertices_of(context, context.ranks.rank()),
            marks: AtomicBitmap::new(vertices),
            words: AtomicBitmap::new(vertices.div_ceil(WORD as u64)),
            _lease: lease,
        }))
    }

    /// The vertices of this rank.
    pub(crate) fn own(&self) -> &Range<usize> {
        &self.own
    }

    /// Marks a vertex to tell of.
    #[inline(always)]
    pub(crate) fn mark(&self, v: usize) {
        self.marks.set(v);
        self.words.set(v / WORD);
    }

    /// Returns the marked vertices.
    pub(crate) fn marked(&self) -> impl Iterator<Item = usize> + '_ {
        let words = (0..self.words.words())
            .flat_map(|at| Bits(self.words.word(at)).map(move |word| at * WORD + word));
        words.flat_map(|word| Bits(self.marks.word(word)).map(move |bit| word * WORD + bit))
    }

    /// Tells all other ranks of vertices and their labels; returns the numbers of every rank.
    ///
    /// Then no vertex is marked. `take` gets the vertices of the others, and their labels. All ranks call it.
    pub(crate) fn tell<const N: usize, L: Element>(
        &self,
        numbers: [u64; N],
        told: Told<'_>,
        label: impl Fn(usize) -> L,
        mut take: impl FnMut(usize, L),
    ) -> Result<Vec<[u64; N]>, EngineError> {
        let (context, ranks) = (self.context, &self.context.ranks);
        let vertices = context.batches.vertices() as usize;
        let mut all = vec![None; ranks.count()];
        all[ranks.rank()] = Some(numbers);
        Exchange::run(
            context,
            size_of::<L>(),
            |_, _| Telling {
                peers: self,
                numbers: Some(numbers),
                told,
                label: &label,
                word: match told {
                    Told::Marked => 0,
                    Told::Own(..) => self.own.start / WORD,
                },
            },
            |from, received| {
                let Received::Section(section) = received else {
                    return ensure(all[from].is_some(), protocol_error);
                };
                let bytes = section.bytes();
                let (kind, rest) = number(bytes).ok_or_else(protocol_error)?;
                let (first, rest) = number(rest).ok_or_else(protocol_error)?;
                let mut is_sound = true;
                let mut one = |v: usize, label: &[u8]| match L::read_from_bytes(label) {
                    Ok(label) if v < vertices => take(v, label),
                    _ => is_sound = false,
                };
                match (kind, all[from].is_some()) {
                    (NUMBERS, false) => {
                        let (words, _) = rest.as_chunks();
                        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
                        all[from] = Some([(); N].map(|()| words.next().unwrap_or_default()));
                    }
                    (LIST, true) => {
                        for entry in rest.chunks(size_of::<u32>() + size_of::<L>()) {
                            let (v, label) = number(entry).ok_or_else(protocol_error)?;
                            one(v as usize, label);
                        }
                    }
                    (BITS, true) => {
                        let (words, _) = rest.as_chunks();
                        for (word, bits) in words.iter().enumerate() {
                            let first = (first as usize + word) * WORD;
                            let bits = Bits(u64::from_le_bytes(*bits));
                            bits.for_each(|bit| one(first + bit, &[]));
                        }
                    }
                    _ => is_sound = false,
                }
                ensure(is_sound, protocol_error)
            },
        )?;
        if let Told::Marked = told {
            for at in 0..self.words.words() {
                for bit in Bits(self.words.take_word(at)) {
                    self.marks.take_word(at * WORD + bit);
                }
            }
        }
        let all: Option<Vec<_>> = all.into_iter().collect();
        Ok(all.ok_or_else(protocol_error)?)
    }
}

/// The vertices that a rank owns.
fn vertices_of(context: &ExecContext<'_>, rank: usize) -> Range<usize> {
    let own = context.ranks.of(rank);
    context.batches.cut(own.start) as usize..context.batches.cut(own.end) as usize
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// The frames to one other rank.
struct Telling<'t, 'e, F, const N: usize> {
    peers: &'t SearchPeers<'e>,
    /// Until they are said.
    numbers: Option<[u64; N]>,
    told: Told<'t>,
    label: &'t F,
    /// The next word of vertices.
    word: usize,
}

impl<F, const N: usize> Telling<'_, '_, F, N> {
    /// Returns the first word from `word` on with vertices to tell of, and its bits.
    fn next_word(&self) -> Option<(usize, u64)> {
        match self.told {
            Told::Marked => {
                let words = &self.peers.words;
                let mut at = self.word / WORD;
                let mut bits = words.word(at) >> (self.word % WORD) << (self.word % WORD);
                while bits == 0 {
                    at += 1;
                    if at >= words.words() {
                        return None;
                    }
                    bits = words.word(at);
                }
                let word = at * WORD + bits.trailing_zeros() as usize;
                Some((word, self.peers.marks.word(word)))
            }
            Told::Own(bits, _) => {
                let end = self.peers.own.end.div_ceil(WORD);
                let mut words = (self.word..end).map(|word| (word, self.own_bits(bits, word)));
                words.find(|(_, bits)| *bits != 0)
            }
        }
    }

    /// Returns the bits of this rank's vertices in a word.
    fn own_bits(&self, bits: &AtomicBitmap, word: usize) -> u64 {
        let Range { start, end } = self.peers.own;
        let from = |v: usize| match v.saturating_sub(word * WORD) {
            before if before >= WORD => 0,
            before => u64::MAX << before,
        };
        bits.word(word) & from(start) & !from(end)
    }
}

impl<F: Fn(usize) -> L, L: Element, const N: usize> FrameSource for Telling<'_, '_, F, N> {
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError> {
        if let Some(numbers) = self.numbers {
            let head = [u64::from(NUMBERS)];
            if !frame.bytes(0, &[head.as_bytes(), numbers.as_bytes()].concat()) {
                return Ok(FillStatus::Full);
            }
            self.numbers = None;
        }
        let Some((first, _)) = self.next_word() else {
            return Ok(FillStatus::All);
        };
        let entry = size_of::<u32>() + size_of::<L>();
        let as_bits = match self.told {
            Told::Own(bits, count) if size_of::<L>() == 0 => {
                let own = self.peers.own.len() as u64;
                (count * size_of::<u32>() as u64 > own / 8).then_some(bits)
            }
            _ => None,
        };
        if frame.bytes_room() < HEAD + WORD * entry {
            return Ok(FillStatus::Full);
        }
        frame.filled(|bytes| {
            let (head, rest) = bytes.split_at_mut(HEAD);
            let kind = if as_bits.is_some() { BITS } else { LIST };
            head.copy_from_slice([kind, first as u32].as_bytes());
            if let Some(bits) = as_bits {
                let end = self.peers.own.end.div_ceil(WORD);
                let end = end.min(first + rest.len() / size_of::<u64>());
                let mut count = 0;
                for (word, to) in (first..end).zip(rest.chunks_exact_mut(size_of::<u64>())) {
                    let bits = self.own_bits(bits, word);
                    to.copy_from_slice(&bits.to_le_bytes());
                    count += u64::from(bits.count_ones());
                }
                self.word = end;
                return (HEAD + (end - first) * size_of::<u64>(), count);
            }
            let mut count = 0;
            while let Some((word, bits)) = self.next_word() {
                if (count + WORD) * entry > rest.len() {
                    break;
                }
                for bit in Bits(bits) {
                    let v = word * WORD + bit;
                    let (to, label) = rest[count * entry..][..entry].split_at_mut(size_of::<u32>());
                    to.copy_from_slice(&(v as u32).to_le_bytes());
                    label.copy_from_slice((self.label)(v).as_bytes());
                    count += 1;
                }
                self.word = word + 1;
            }
            (HEAD + count * entry, count as u64)
        });
        Ok(match self.next_word() {
            Some(_) => FillStatus::Full,
            None => FillStatus::All,
        })
    }
}
