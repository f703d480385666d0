//! The columns of a Parquet file: pages of names, ids and values, encoded and compressed.

use graphmill_graph::{Id, IdKind};
use parquet::basic::Encoding;

use crate::error::Error;
use crate::result::encode::{EncodeScratch, EncodeTask, Encoder, Limits};
use crate::result::names::{Distinct, VertexNames, fewer_ids};
use crate::result::pages::{self, put_deltas, put_indices, put_levels};
use crate::result::sizes::OUTPUT_BYTES;
use crate::result::values::ValueColumn;
use crate::result_error::ResultError;

/// Look-ups that are on their way while one is made.
const AHEAD: usize = 16;
/// A page of text ends when it has this many bytes.
const PAGE_BYTES: usize = 1 << 20;

/// Names one behind the other, compressed without the length before them.
pub(super) struct DictionaryNames<'a> {
    pub(super) ranks: &'a [u64],
    /// Names that were looked up before, these among them.
    pub(super) names: Option<&'a VertexNames>,
}

impl Encoder for DictionaryNames<'_> {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        while task.next < task.range.end && task.out.len() < OUTPUT_BYTES {
            lane.begin();
            let EncodeScratch {
                ids, plain, starts, ..
            } = lane;
            let (mut first, mut last) = (Vec::new(), 0);
            while task.next < task.range.end && plain.len() < PAGE_BYTES {
                let rank = self.ranks[task.next as usize];
                let id = match self.names {
                    Some(names) => {
                        let next = |more| self.ranks.get(task.next as usize + more);
                        names.prefetch(next(2 * AHEAD), next(AHEAD));
                        names.of_rank(rank)
                    }
                    None => {
                        ids.seek(rank);
                        ids.next()?.ok_or_else(fewer_ids)?
                    }
                };
                let is_first = plain.is_empty();
                last = put_bytes(plain, starts, id)?;
                if is_first {
                    first.extend_from_slice(&plain[last..]);
                }
                task.next += 1;
            }
            let limits = Limits::Texts(first, plain[last..].to_vec());
            task.summary.limits.merge(limits);
            task.summary.raw_bytes += plain.len() as u64;
            let mut length = Vec::new();
            pages::put_number(&mut length, plain.len() as u64);
            task.out
                .extend_from_slice(&lane.compress()?[length.len()..]);
        }
        Ok(task.next == task.range.end)
    }
}

/// Adds an id of bytes as a plain page has it; returns where its bytes begin. Other ids add nothing.
///
/// Where a text begins with its length is one of `starts`.
#[inline]
fn put_bytes(plain: &mut Vec<u8>, starts: &mut Vec<u32>, id: Id<'_>) -> Result<usize, ResultError> {
    let at = plain.len();
    match id {
        Id::Text(id) => {
            starts.push(at as u32);
            put_text(plain, id)?;
            return Ok(at + size_of::<u32>());
        }
        Id::Uuid(id) => plain.extend_from_slice(&id),
        Id::Integer(_) | Id::Signed(_) => {}
    }
    Ok(at)
}

/// Adds a text behind its length, and refuses one that is no UTF-8.
#[inline]
fn put_text(plain: &mut Vec<u8>, text: &[u8]) -> Result<(), ResultError> {
    if !text.is_ascii() && std::str::from_utf8(text).is_err() {
        return Err(ResultError::NotUtf8 {
            id: String::from_utf8_lossy(text).into_owned(),
        });
    }
    plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
    plain.extend_from_slice(text);
    Ok(())
}

/// Appends a page of rows to the output of a task.
fn put_page(
    task: &mut EncodeTask,
    lane: &mut EncodeScratch,
    encoding: Encoding,
    rows: u64,
) -> Result<(), ResultError> {
    let plain_bytes = lane.plain.len();
    let packed = lane.compress()?;
    let before = task.out.len();
    pages::put_data_header(&mut task.out, rows, encoding, [plain_bytes, packed.len()]);
    task.summary.raw_bytes += (task.out.len() - before + plain_bytes) as u64;
    task.summary.rows += rows;
    task.out.extend_from_slice(packed);
    Ok(())
}

/// The column of ids.
pub(super) struct IdColumnEncoder {
    pub(super) kind: IdKind,
    /// Bits of an integer.
    pub(super) bits: u32,
}

impl Encoder for IdColumnEncoder {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        lane.ids.seek(task.next);
        while task.next < task.range.end && task.out.len() < OUTPUT_BYTES {
            lane.begin();
            let EncodeScratch {
                ids,
                plain,
                numbers,
                starts,
                ..
            } = lane;
            let (mut rows, mut first, mut last) = (0, Vec::new(), 0);
            let mut encoding = Encoding::DELTA_BINARY_PACKED;
            while task.next < task.range.end && plain.len() < PAGE_BYTES {
                let id = ids.next()?.ok_or_else(fewer_ids)?;
                if task.is_row() {
                    match id {
                        Id::Integer(id) => numbers.push(id as i64),
                        Id::Signed(id) => numbers.push(id),
                        Id::Text(_) | Id::Uuid(_) => {
                            encoding = Encoding::PLAIN;
                            last = put_bytes(plain, starts, id)?;
                            if rows == 0 {
                                first.extend_from_slice(&plain[last..]);
                            }
                        }
                    }
                    rows += 1;
                }
                task.next += 1;
            }
            // In ascending order the first is the least.
            let limits = match (numbers.first(), numbers.last()) {
                (Some(first), Some(last)) => match self.kind {
                    IdKind::Signed => Limits::Integers((*first).into(), (*last).into()),
                    _ => Limits::Integers((*first as u64).into(), (*last as u64).into()),
                },
                _ => Limits::Texts(first, plain[last..].to_vec()),
            };
            if rows > 0 {
                task.summary.limits.merge(limits);
                if encoding == Encoding::DELTA_BINARY_PACKED {
                    put_deltas(plain, numbers, self.bits);
                }
                put_page(task, lane, encoding, rows)?;
            }
        }
        Ok(task.next == task.range.end)
    }
}

/// The names of the vertices that are values.
pub(super) enum ValueNames<'a> {
    /// Their numbers, or there is none.
    Nothing,
    /// Their names.
    Names(&'a VertexNames),
    /// Their places in the dictionary.
    Places(Distinct),
}

/// Adds floats as they are in memory; gives back the least and the greatest.
fn put_floats<T: Copy + Into<f64>, const N: usize>(
    plain: &mut Vec<u8>,
    values: impl Iterator<Item = T>,
    bytes: impl Fn(T) -> [u8; N],
) -> Limits {
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        // NaN changes neither.
        (least, greatest) = (least.min(value.into()), greatest.max(value.into()));
        plain.extend_from_slice(&bytes(value));
    }
    match least <= greatest {
        true => Limits::Floats(least, greatest),
        false => Limits::None,
    }
}

/// An encoder of the column of values, in which a block is a page.
pub(super) struct ValueColumnEncoder<'a> {
    pub(super) nullable: bool,
    /// Bits of an integer id, if the values are vertices.
    pub(super) vertex_bits: Option<u32>,
    pub(super) found: ValueNames<'a>,
}

impl ValueColumnEncoder<'_> {
    pub(super) fn encoding(&self, are_floats: bool) -> Encoding {
        match &self.found {
            _ if are_floats => Encoding::PLAIN,
            // Of no values there is no dictionary.
            ValueNames::Places(distinct) if distinct.ranks.is_empty() => Encoding::PLAIN,
            ValueNames::Places(_) => Encoding::RLE_DICTIONARY,
            _ => Encoding::DELTA_BINARY_PACKED,
        }
    }
}

impl Encoder for ValueColumnEncoder<'_> {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        lane.begin();
        let EncodeScratch { plain, numbers, .. } = lane;
        let reached = self.nullable.then(|| task.raw.reached(0..task.raw.len()));
        if let Some(reached) = &reached {
            put_levels(plain, reached);
            task.summary.nulls = reached.iter().filter(|reached| !**reached).count() as u64;
        }
        let is_reached = |row: usize| reached.as_ref().is_none_or(|reached| reached[row]);
        let there = (0..task.raw.len()).filter(|row| is_reached(*row));
        let mut encoding = Encoding::DELTA_BINARY_PACKED;
        let mut bits = self.vertex_bits.unwrap_or(u64::BITS);
        let mut limits = Limits::None;
        match (&task.raw, &self.found) {
            (ValueColumn::F32(values), _) => {
                encoding = Encoding::PLAIN;
                let values = there.map(|row| values[row]);
                limits = put_floats(plain, values, |value| value.to_le_bytes());
            }
            (ValueColumn::F64(values), _) => {
                encoding = Encoding::PLAIN;
                let values = there.map(|row| values[row]);
                limits = put_floats(plain, values, |value| value.to_le_bytes());
            }
            (_, ValueNames::Places(distinct)) if distinct.ranks.is_empty() => {
                encoding = Encoding::PLAIN;
            }
            (values, ValueNames::Places(distinct)) => {
                encoding = Encoding::RLE_DICTIONARY;
                let places = there.map(|row| {
                    if row + AHEAD < task.raw.len() {
                        distinct.prefetch(values.integer(row + AHEAD));
                    }
                    distinct.place(values.integer(row)).unwrap_or(0)
                });
                numbers.extend(places.map(|place| place as i64));
                put_indices(plain, numbers, distinct.ranks.len() as u64);
            }
            (values, ValueNames::Names(names)) => {
                let (mut least, mut greatest) = (i128::MAX, i128::MIN);
                for row in there {
                    let value = match names.of_rank(values.integer(row)) {
                        Id::Integer(id) => i128::from(id),
                        Id::Signed(id) => i128::from(id),
                        Id::Text(_) | Id::Uuid(_) => 0,
                    };
                    (least, greatest) = (least.min(value), greatest.max(value));
                    numbers.push(value as i64);
                }
                if least <= greatest {
                    limits = Limits::Integers(least, greatest);
                }
            }
            (values, ValueNames::Nothing) => {
                bits = match (self.vertex_bits, values) {
                    (Some(bits), _) => bits,
                    (None, ValueColumn::U32(_)) => u32::BITS,
                    (None, _) => u64::BITS,
                };
                let (mut least, mut greatest) = (u64::MAX, 0);
                for row in there {
                    let value = values.integer(row);
                    (least, greatest) = (least.min(value), greatest.max(value));
                    numbers.push(value as i64);
                }
                if least <= greatest {
                    limits = Limits::Integers(least.into(), greatest.into());
                }
            }
        }
        if encoding == Encoding::DELTA_BINARY_PACKED {
            put_deltas(plain, numbers, bits);
        }
        task.summary.limits = limits;
        let rows = task.raw.len() as u64;
        put_page(task, lane, encoding, rows)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_not_utf8_is_refused() {
        let mut plain = Vec::new();
        put_text(&mut plain, "\u{e4}".as_bytes()).unwrap();
        assert_eq!(plain, [2, 0, 0, 0, 0xc3, 0xa4]);
        let refused = put_text(&mut plain, &[0xff, 0xfe]);
        assert!(matches!(refused, Err(ResultError::NotUtf8 { .. })));
    }
}
