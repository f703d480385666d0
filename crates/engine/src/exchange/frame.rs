//! The format of frames between ranks: each has sections of one batch.
//!
//! ```text
//! frame     is it the last one to this rank: u32 | 0: u32 | sections
//! section   batch: u32 | kind: u32 | first: u32 | words: u32 | count: u32 | 0: u32 | sources | columns | messages, `count` of each
//! sources   bits: `words` words of 64 bits, of sources from 64 `first` on | list: a u32 each, batch-local, ascending, and 0 or 4 bytes of 0
//! columns   of messages that are placed: which column each is for, a u32, and 0 or 4 bytes of 0; else nothing
//! ```

use std::ops::Range;

use graphmill_raw::Element;

use crate::comm::wire::FRAME_BYTES;
use crate::frontier::bitmap::bits;
use crate::messages::batch::MessageSlice;
use crate::messages::run_codec::is_listed;

pub(crate) const FRAME_HEADER: usize = 8;
const SECTION_HEADER: usize = 24;
const WORD: usize = 64;

/// Returns the bytes of frame headers for `carried` bytes; there is always a last frame.
pub(crate) fn frames_bytes(carried: u64) -> u64 {
    (carried / FRAME_BYTES as u64 + 1) * FRAME_HEADER as u64
}

/// A frame while it is filled.
pub(crate) struct Frame<'f> {
    pub(crate) bytes: &'f mut [u8],
    pub(crate) used: usize,
    /// Messages in it.
    pub(crate) count: u64,
}

impl Frame<'_> {
    /// Bytes that sections can still take.
    fn room(&self) -> usize {
        self.bytes.len() - self.used
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    fn align(&mut self) {
        while !self.used.is_multiple_of(8) {
            self.put(&[0]);
        }
    }

    fn head(&mut self, batch: usize, kind: SectionKind, bits: Range<usize>, count: usize) {
        if kind != SectionKind::Bytes {
            self.count += count as u64;
        }
        let fields = [batch, kind as usize, bits.start, bits.len(), count, 0];
        for field in fields {
            self.put(&(field as u32).to_le_bytes());
        }
    }

    /// Appends messages of a batch from word `from` of its bits on, if their sources are `needed`.
    ///
    /// Returns the next word, which is past the last one if all fit.
    pub(crate) fn messages<M: Element>(
        &mut self,
        batch: usize,
        slice: MessageSlice<'_, M>,
        needed: impl Fn(usize) -> u64,
        listed: bool,
        from: usize,
    ) -> usize {
        let wanted = |word: usize| slice.present[word] & needed(word);
        let words = slice.present.len();
        let first = (from..words).find(|word| wanted(*word) != 0);
        let Some(first) = first else { return words };
        let room = self.room().saturating_sub(SECTION_HEADER + 16);
        let (mut end, mut last, mut count) = (first, first, 0);
        while end < words {
            let more = wanted(end).count_ones() as usize;
            let sources = match listed {
                true => (count + more) * size_of::<u32>(),
                false => (end + 1 - first) * size_of::<u64>(),
            };
            if sources + (count + more) * size_of::<M>() > room {
                break;
            }
            end += 1;
            if more > 0 {
                (last, count) = (end, count + more);
            }
        }
        if count == 0 {
            // Not one word of sources has room: the next frame has.
            return first;
        }
        if listed {
            self.head(batch, SectionKind::List, first..last, count);
            each(first..last, wanted, |source| {
                self.put(&(source as u32).to_le_bytes());
            });
            self.align();
        } else {
            self.head(batch, SectionKind::Bits, first..last, count);
            (first..last).for_each(|word| self.put(&wanted(word).to_le_bytes()));
        }
        each(first..last, wanted, |source| {
            self.put(slice.values[source].as_bytes());
        });
        self.align();
        end
    }

    /// Appends messages of a batch with their sources, ascending; returns how many fit.
    ///
    /// The batch begins with a vertex. If messages are placed, a source has one for each of its columns.
    pub(crate) fn list<M: Element>(
        &mut self,
        (batch, start): (usize, u64),
        placed: bool,
        messages: &[(u64, u32, M)],
    ) -> usize {
        let (kind, number) = match placed {
            true => (SectionKind::Placed, 2 * size_of::<u32>()),
            false => (SectionKind::List, size_of::<u32>()),
        };
        let room = self.room().saturating_sub(SECTION_HEADER + 24);
        let count = (room / (number + size_of::<M>())).min(messages.len());
        if count == 0 {
            return 0;
        }
        self.head(batch, kind, 0..0, count);
        let messages = &messages[..count];
        for (source, ..) in messages {
            self.put(&((source - start) as u32).to_le_bytes());
        }
        self.align();
        if placed {
            for (_, column, _) in messages {
                self.put(&column.to_le_bytes());
            }
            self.align();
        }
        for (.., message) in messages {
            self.put(message.as_bytes());
        }
        self.align();
        count
    }

    /// How many bytes of any kind there is room for.
    pub(crate) fn bytes_room(&self) -> usize {
        self.room().saturating_sub(SECTION_HEADER + 16)
    }

    /// Appends raw bytes that stand for `messages` messages; returns true if they fit.
    pub(crate) fn bytes(&mut self, messages: u64, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.bytes_room();
        if fits {
            self.filled(|to| {
                to[..bytes.len()].copy_from_slice(bytes);
                (bytes.len(), messages)
            });
        }
        fits
    }

    /// Appends the bytes that `fill` writes to the start of the memory that there is room for.
    ///
    /// `fill` returns their number, and for how many messages they stand.
    pub(crate) fn filled(&mut self, fill: impl FnOnce(&mut [u8]) -> (usize, u64)) {
        let (at, room) = (self.used + SECTION_HEADER, self.bytes_room());
        let (bytes, messages) = fill(&mut self.bytes[at..at + room]);
        self.head(0, SectionKind::Bytes, 0..0, bytes);
        self.used += bytes;
        self.count += messages;
        self.align();
    }
}

/// The sources of some words of bits.
fn each(words: Range<usize>, wanted: impl Fn(usize) -> u64, mut f: impl FnMut(usize)) {
    for word in words {
        bits(&[wanted(word)], word * WORD, &mut f);
    }
}

/// Returns the bytes of `needed` of the `emitted` messages of a batch with `sources` sources.
pub(crate) fn messages_bytes(needed: u64, emitted: u64, sources: usize, message: usize) -> u64 {
    if needed == 0 {
        return 0;
    }
    let of_sources = match is_listed(emitted, sources) {
        true => needed * size_of::<u32>() as u64,
        false => (sources.div_ceil(WORD) * size_of::<u64>()) as u64,
    };
    SECTION_HEADER as u64 + of_sources + needed.saturating_mul(message as u64)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SectionKind {
    Bits = 1,
    List = 2,
    Bytes = 3,
    Placed = 4,
}

/// One section of a frame that came.
pub(crate) struct Section<'f> {
    pub(crate) batch: usize,
    kind: SectionKind,
    first: usize,
    count: usize,
    sources: &'f [u8],
    columns: &'f [u8],
    messages: &'f [u8],
}

impl<'f> Section<'f> {
    /// How many messages.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Calls `f` with each source and its message, ascending.
    pub(crate) fn each<M: Element>(&self, mut f: impl FnMut(usize, M)) {
        let mut messages = self.messages.chunks_exact(size_of::<M>().max(1));
        let mut next = |source: usize| {
            if let Some(message) = messages.next().and_then(|of| M::read_from_bytes(of).ok()) {
                f(source, message);
            }
        };
        match self.kind {
            SectionKind::Bits => {
                let words = self.sources.as_chunks().0;
                let word = |at: usize| u64::from_le_bytes(words[at - self.first]);
                each(self.first..self.first + words.len(), word, next);
            }
            SectionKind::List | SectionKind::Placed => {
                let sources = self.sources.as_chunks().0;
                (sources.iter()).for_each(|source| next(u32::from_le_bytes(*source) as usize));
            }
            SectionKind::Bytes => (),
        }
    }

    /// The column that each message is for, where messages are placed.
    pub(crate) fn columns(&self) -> Option<impl Iterator<Item = usize>> {
        let columns = self.columns.as_chunks().0.iter();
        (self.kind == SectionKind::Placed)
            .then(|| columns.map(|of| u32::from_le_bytes(*of) as usize))
    }

    /// The bytes of [`Frame::bytes`].
    pub(crate) fn bytes(&self) -> &'f [u8] {
        self.messages
    }
}

/// Returns the sections of a frame with messages of `message` bytes, and true if it is the last frame.
pub(crate) fn sections<'f>(frame: &'f [u8], message: usize) -> Option<(Vec<Section<'f>>, bool)> {
    let (last, mut rest) = number(frame)?;
    (_, rest) = number(rest)?;
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let mut field = || {
            let (field, more) = number(rest)?;
            rest = more;
            Some(field as usize)
        };
        let fields = [field()?, field()?, field()?, field()?, field()?, field()?];
        let [batch, kind, first, words, count, _] = fields;
        let messages = || count.checked_mul(message);
        let (kind, sources, columns, messages) = match kind {
            1 => (SectionKind::Bits, words * 8, 0, messages()?),
            2 => (SectionKind::List, count * 4, 0, messages()?),
            3 => (SectionKind::Bytes, 0, 0, count),
            4 => (SectionKind::Placed, count * 4, count * 4, messages()?),
            _ => return None,
        };
        let mut part = |bytes: usize| {
            let (part, more) = rest.split_at_checked(bytes)?;
            rest = more.get(bytes.next_multiple_of(8) - bytes..)?;
            Some(part)
        };
        sections.push(Section {
            batch,
            kind,
            first,
            count,
            sources: part(sources)?,
            columns: part(columns)?,
            messages: part(messages)?,
        });
    }
    Some((sections, last != 0))
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_round_trips_in_any_capacity() {
        let span = 1000usize;
        let values: Vec<u32> = (0..span as u32).map(|v| v * 7).collect();
        for every in [1, 3, 40, 999] {
            let mut present = vec![0u64; span.div_ceil(WORD)];
            for source in (0..span).step_by(every) {
                present[source / WORD] |= 1 << (source % WORD);
            }
            let slice = MessageSlice {
                values: &values,
                present: &present,
                full: every == 1,
                few: false,
            };
            let needed = |word: usize| if word == 2 { 0 } else { !1 };
            for (listed, room) in [(true, 700), (false, 700), (true, 9000), (false, 9000)] {
                let (mut next, mut found, mut frames) = (0, Vec::new(), 0);
                while next < present.len() {
                    let mut bytes = vec![0; room];
                    let mut frame = Frame {
                        bytes: &mut bytes,
                        used: FRAME_HEADER,
                        count: 0,
                    };
                    next = frame.messages(5, slice, needed, listed, next);
                    let used = frame.used;
                    let (sections, _) = sections(&bytes[..used], 4).unwrap();
                    for section in &sections {
                        assert_eq!(section.batch, 5);
                        section.each(|source, value: u32| found.push((source, value)));
                    }
                    frames += 1;
                }
                let wanted = (0..span).step_by(every);
                let wanted = wanted.filter(|v| v / WORD != 2 && v % WORD != 0);
                let wanted: Vec<_> = wanted.map(|v| (v, v as u32 * 7)).collect();
                assert_eq!(found, wanted, "{every} {listed} {room}");
                assert!(frames > 1 || room > 700 || every > 3);
            }
        }
    }

    #[test]
    fn frame_cut_short_is_refused() {
        let mut bytes = vec![0; 300];
        let mut frame = Frame {
            bytes: &mut bytes,
            used: FRAME_HEADER,
            count: 0,
        };
        let messages = [(11, 7, 5u64), (15, 8, 6)];
        assert_eq!(frame.list((3, 10), false, &messages), 2);
        assert_eq!(frame.list((3, 10), true, &messages), 2);
        assert!(frame.bytes(1, b"some"));
        let used = frame.used;
        let (found, _) = sections(&bytes[..used], 8).unwrap();
        assert!(found[0].columns().is_none());
        assert!(found[1].columns().unwrap().eq([7, 8]));
        for listed in &found[..2] {
            let mut messages = Vec::new();
            listed.each(|source, message: u64| messages.push((source, message)));
            assert_eq!(messages, [(1, 5), (5, 6)]);
        }
        for cut in (0..used).filter(|cut| *cut != FRAME_HEADER) {
            let of = sections(&bytes[..cut], 8);
            assert!(of.is_none_or(|(of, _)| of.len() < 3), "{cut}");
        }
    }
}
