//! One page of ids: by number, by id, or one after the other.
//!
//! A walk begins at a restart, an id that is stored whole, and continues from there. No number that a page holds is trusted:
//! what makes no sense is `None`.

use crate::codec::varint;
use crate::manifest::IdKind;
use crate::vertex::ids::id::{HEADER, Id, RESTART, SIGN, TEXT_ID_BYTES_MAX, UUID_BYTES, VertexId};

/// What an id adds to the one before is as a rule no longer.
const SHORT: usize = 16;

/// One page of ids.
pub(crate) struct IdPage<'a> {
    bytes: &'a [u8],
    kind: IdKind,
    pub(crate) first_index: u64,
    pub(crate) count: u32,
    restarts: &'a [[u8; 2]],
}

impl<'a> IdPage<'a> {
    pub(crate) fn parse(bytes: &'a [u8], kind: IdKind) -> Option<Self> {
        let first_index = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let count = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?);
        let number = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?);
        let table = bytes.len().checked_sub(2 * number as usize)?;
        let restarts = bytes.get(table.max(HEADER)..)?.as_chunks().0;
        let is_whole = count.div_ceil(RESTART) == number && restarts.len() == number as usize;
        (count > 0 && is_whole).then_some(IdPage {
            bytes,
            kind,
            first_index,
            count,
            restarts,
        })
    }
    /// A walk that begins at restart number `restart`.
    pub(crate) fn walk(&self, restart: usize) -> Option<IdPageCursor> {
        let mut walk = IdPageCursor::default();
        self.restart(&mut walk, restart)?;
        Some(walk)
    }
    /// Makes `walk` begin at restart number `restart`.
    pub(crate) fn restart(&self, walk: &mut IdPageCursor, restart: usize) -> Option<()> {
        walk.at = u16::from_le_bytes(*self.restarts.get(restart)?) as usize;
        walk.next = restart as u32 * RESTART;
        Some(())
    }
    /// Calls `f` with each id, in order.
    ///
    /// Returns `None` if `f` refuses an id, or a restart is not where the ids before it end.
    pub(crate) fn each(&self, mut f: impl FnMut(Id<'_>) -> bool) -> Option<()> {
        let mut walk = IdPageCursor {
            at: HEADER,
            ..IdPageCursor::default()
        };
        for number in 0..self.count {
            let is_restart = number.is_multiple_of(RESTART);
            if is_restart && self.walk((number / RESTART) as usize)?.at != walk.at {
                return None;
            }
            walk.step(self.bytes, self.kind)?;
            f(walk.id(self.kind)).then_some(())?;
        }
        Some(())
    }
    pub(crate) fn id_of(&self, v: u64) -> Option<VertexId> {
        let local = v.checked_sub(self.first_index)?;
        let local = Some(local).filter(|&local| local < u64::from(self.count))? as u32;
        let mut walk = self.walk((local / RESTART) as usize)?;
        while walk.next <= local {
            walk.step(self.bytes, self.kind)?;
        }
        Some(walk.id(self.kind).to_owned())
    }
    /// The index of an id; the outer `None` means that the page makes no sense.
    pub(crate) fn index_of(&self, id: Id<'_>) -> Option<Option<u64>> {
        let (mut low, mut high) = (0, self.restarts.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let mut walk = self.walk(middle)?;
            walk.step(self.bytes, self.kind)?;
            if walk.id(self.kind) <= id {
                low = middle
            } else {
                high = middle
            }
        }
        let mut walk = self.walk(low)?;
        let end = (walk.next + RESTART).min(self.count);
        while walk.next < end {
            walk.step(self.bytes, self.kind)?;
            let now = walk.id(self.kind);
            if now >= id {
                return Some((now == id).then(|| self.first_index + u64::from(walk.next) - 1));
            }
        }
        Some(None)
    }
}

/// Goes through the ids of a page.
#[derive(Debug, Default)]
pub(crate) struct IdPageCursor {
    at: usize,
    next: u32,
    integer: u64,
    text: Vec<u8>,
}

impl IdPageCursor {
    /// Number within the page of the id that the next step reaches.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }
    #[inline]
    pub(crate) fn step(&mut self, bytes: &[u8], kind: IdKind) -> Option<()> {
        let whole = self.next.is_multiple_of(RESTART);
        if kind.has_bytes() {
            let shared = match whole {
                true => 0,
                false => varint::get(bytes, &mut self.at)?,
            };
            let length = varint::get(bytes, &mut self.at)?;
            if shared > self.text.len() as u64
                || shared + length.min(1 << 20) > TEXT_ID_BYTES_MAX as u64
            {
                return None;
            }
            self.text.truncate(shared as usize);
            let rest = bytes.get(self.at..)?;
            match rest.first_chunk::<SHORT>() {
                // Of a length that is known, a copy is a few instructions.
                Some(chunk) if length <= SHORT as u64 => {
                    self.text.extend_from_slice(chunk);
                    self.text.truncate((shared + length) as usize);
                }
                _ => self.text.extend(rest.get(..length as usize)?),
            }
            self.at += length as usize;
            if kind == IdKind::Uuid && self.text.len() != UUID_BYTES {
                return None;
            }
        } else if whole {
            self.integer = u64::from_le_bytes(bytes.get(self.at..self.at + 8)?.try_into().ok()?);
            self.at += 8;
        } else {
            let passed = varint::get(bytes, &mut self.at)?;
            self.integer = self.integer.checked_add(passed)?.checked_add(1)?;
        }
        self.next += 1;
        Some(())
    }
    pub(crate) fn id(&self, kind: IdKind) -> Id<'_> {
        match kind {
            IdKind::Text => Id::Text(&self.text),
            // Before the first step there are no bytes.
            IdKind::Uuid => Id::Uuid(self.text[..].try_into().unwrap_or_default()),
            IdKind::Signed => Id::Signed((self.integer ^ SIGN) as i64),
            IdKind::Integer | IdKind::Dense => Id::Integer(self.integer),
        }
    }
}
