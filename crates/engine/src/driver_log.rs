//! The log of the driver's calls: a run that resumes after a kill runs the driver again and replays their results, up to the
//! end of its checkpoint.
//!
//! A driver may decide only by what calls return: sums, how many vertices a set has, and decisions that depend on free memory. Each
//! is an entry. The rows and sets themselves are in checkpoints. During a replay passes do no work; sets that a call returns
//! hold their final members, or none if they were dropped before the checkpoint.

use std::any::type_name;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use graphmill_raw::failpoint;
use graphmill_storage::{RandomAccessFile, RecordReader, at};

use crate::error::{EngineError, ensure};

/// The log that the driver writes, or replays.
#[derive(Debug, Default)]
pub(crate) struct DriverLog {
    /// True if the run writes checkpoints, so entries are retained.
    pub(crate) is_kept: bool,
    /// The driver makes no more calls.
    pub(crate) is_ended: bool,
    /// Calls within a call that is one entry.
    depth: u32,
    /// Entries so far.
    pub(crate) count: u64,
    pub(crate) entries: LogEntries,
    /// Bytes of the earlier run's log that were replayed; `None` if all were.
    replay_at: Option<usize>,
    /// The next set that the driver gets.
    next_set: u64,
    /// The sets at the end of the checkpoint, by number.
    sets: BTreeMap<u64, SavedSet>,
}

/// A set in the file of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct SavedSet {
    pub(crate) file: RandomAccessFile,
    pub(crate) path: PathBuf,
    /// Where in the file its members begin.
    pub(crate) at: u64,
}

impl SavedSet {
    /// Its members, batch by batch: how many these are, and of each its number and who is in it.
    pub(crate) fn members(&self) -> RecordReader<'_> {
        RecordReader::at(&self.file, self.at)
    }
    /// What was read of it.
    pub(crate) fn read<T>(&self, read: io::Result<T>) -> Result<T, EngineError> {
        Ok(at("read", &self.path, read)?)
    }
}

impl DriverLog {
    /// Returns the log of a run that writes checkpoints and resumes after these entries, with these sets.
    pub(crate) fn replaying(entries: LogEntries, sets: BTreeMap<u64, SavedSet>) -> Self {
        DriverLog {
            is_kept: true,
            replay_at: (!entries.0.is_empty()).then_some(0),
            entries,
            sets,
            ..DriverLog::default()
        }
    }

    /// True if entries are being replayed.
    pub(crate) fn is_replaying(&self) -> bool {
        self.replay_at.is_some()
    }
    /// True if a call is one entry with those around it.
    pub(crate) fn is_within(&self) -> bool {
        self.depth > 0
    }

    /// Returns the logged result of a call if the earlier run made it.
    ///
    /// The entry must have the call's name, or this is another program.
    pub(crate) fn answer(&mut self, call: &str) -> Result<Option<Vec<u8>>, EngineError> {
        let is_late = self.is_kept && self.is_ended && self.depth == 0;
        ensure(!is_late, || EngineError::CallAfterEnd)?;
        let Some(at) = self.replay_at.filter(|_| self.depth == 0) else {
            return Ok(None);
        };
        let other = || EngineError::OtherRun {
            what: "the program makes other calls than the run to resume",
        };
        let (name, payload, next) = self.entries.entry(at).ok_or_else(other)?;
        ensure(name == name_of(call), other)?;
        let payload = payload.to_vec();
        self.count += 1;
        self.replay_at = (next < self.entries.0.len()).then_some(next);
        Ok(Some(payload))
    }

    /// Rejects a read of rows or of sets before the end of a driver that writes checkpoints.
    ///
    /// The log has no such reads, so a driver that decides by them would decide otherwise in a replay.
    pub(crate) fn check_readable(&self) -> Result<(), EngineError> {
        let is_readable = !self.is_kept || self.is_ended || self.depth > 0;
        ensure(is_readable, || EngineError::ReadBeforeEnd)
    }

    /// Rejects a read of a set by a function of a pass: the pass may hold the set.
    pub(crate) fn check_between_passes(&self) -> Result<(), EngineError> {
        ensure(!self.is_within(), || EngineError::SetReadInPass)
    }

    /// Appends the result of a call.
    pub(crate) fn note(&mut self, call: &str, payload: &[u8]) {
        failpoint!(EntriesForgotten => if call == "insert" { return });
        if self.is_kept && self.depth == 0 && !self.is_ended {
            self.entries.push(name_of(call), payload);
            self.count += 1;
        }
    }

    /// Begins, and ends, a call that is one entry.
    pub(crate) fn enter(&mut self) {
        self.depth += 1;
    }
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The number of a set that the driver gets, and what it has in the end.
    pub(crate) fn adopt(&mut self) -> (u64, Option<SavedSet>) {
        let number = self.next_set;
        self.next_set += 1;
        (number, self.sets.remove(&number))
    }
}

/// Returns the name of a call over values of a type: a fixed text and the type without module paths.
///
/// A type keeps its name if its file moves, so a later build still resumes an earlier run.
pub(crate) fn call_name<T: ?Sized>(call: &str) -> String {
    let mut name = format!("{call} of ");
    let mut of = type_name::<T>();
    while let Some(end) = of.find("::") {
        let path = of[..end].trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        name += path;
        of = &of[end + 2..];
    }
    name + of
}

/// Returns the hash that identifies a call by its name.
fn name_of(call: &str) -> u32 {
    crc32fast::hash(call.as_bytes())
}

/// The logged results of calls, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEntries(pub(crate) Vec<u8>);

impl LogEntries {
    /// Bytes of an entry's header.
    const HEAD: usize = 8;

    pub(crate) fn push(&mut self, name: u32, payload: &[u8]) {
        self.0.extend(name.to_le_bytes());
        self.0.extend((payload.len() as u32).to_le_bytes());
        self.0.extend(payload);
    }
    /// Returns the entry at a byte: its name, its result, and the start of the next entry.
    pub(crate) fn entry(&self, at: usize) -> Option<(u32, &[u8], usize)> {
        let rest = self.0.get(at..)?;
        let (head, rest) = rest.split_first_chunk::<{ LogEntries::HEAD }>()?;
        let word = |i: usize| u32::from_le_bytes(head.as_chunks::<4>().0[i]);
        let payload = rest.get(..word(1) as usize)?;
        Some((word(0), payload, at + Self::HEAD + payload.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Program<T>(T);

    mod elsewhere {
        pub(super) mod within {
            pub(in super::super) struct Program<T>(T);
        }
    }

    #[test]
    fn call_name_is_the_same_in_another_module() {
        let name = call_name::<Program<Option<u32>>>("process_edges");
        assert_eq!(name, "process_edges of Program<Option<u32>>");
        let moved = call_name::<elsewhere::within::Program<Option<u32>>>("process_edges");
        assert_eq!(name, moved);
        let both = call_name::<(Program<u8>, [elsewhere::within::Program<u8>; 2])>("");
        assert_eq!(both, " of (Program<u8>, [Program<u8>; 2])");
    }

    #[test]
    fn driver_log_replays_the_same_program_only() {
        let mut first = DriverLog::replaying(LogEntries::default(), BTreeMap::new());
        first.note("vertices", &[1, 2]);
        first.enter();
        first.note("within", &[9]);
        first.leave();
        first.note("edges", &[]);
        assert_eq!(first.count, 2);
        let again = || DriverLog::replaying(first.entries.clone(), BTreeMap::new());
        let mut second = again();
        assert_eq!(second.answer("vertices").unwrap(), Some(vec![1, 2]));
        assert!(second.is_replaying());
        assert_eq!(second.answer("edges").unwrap(), Some(vec![]));
        assert!(!second.is_replaying());
        assert_eq!(second.answer("edges").unwrap(), None);
        assert_eq!(second.count, 2);
        assert!(again().answer("edges").is_err());
    }
}
