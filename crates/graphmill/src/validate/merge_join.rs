//! The walk along both files, side by side as long as their ids ascend.
//!
//! 1. A row is read ahead of either file; the lesser id comes next, or both for the same vertex.
//! 2. A file that turns out not to ascend is read again from its start, into leased memory, and sorted.

use std::cmp::Ordering;
use std::path::Path;

use graphmill_storage::{GrowingLease, MemoryBudget};

use crate::validate::comparison::Comparison;
use crate::validate::text::{ResultRow, RowId, RowIter};
use crate::validate::verdict::{Rule, Verdict};
use crate::validate_error::ValidateError;

/// Bytes by which the memory of rows and names grows, and what the error of a full budget calls it.
const LEASE_STEP_BYTES: u64 = 1 << 20;
const GROWING: &str = "rows of a file whose ids do not ascend, or names of groups";

/// Which of two files a step is about.
const RESULT: usize = 0;
const REFERENCE: usize = 1;

pub(super) fn compare(
    budget: &MemoryBudget,
    paths: [&Path; 2],
    rule: Rule,
    open: impl Fn(&Path) -> Result<RowIter, ValidateError>,
) -> Result<Verdict, ValidateError> {
    let mut is_sorted_here = [false; 2];
    loop {
        let mut memory = GrowingLease::new(budget, GROWING, LEASE_STEP_BYTES);
        let mut side = |side: usize| -> Result<Ascending<'_>, ValidateError> {
            let mut rows = open(paths[side])?;
            if is_sorted_here[side] {
                rows = Box::new(sorted(rows, &mut memory)?.into_iter().map(Ok));
            }
            Ok(Ascending {
                rows,
                last: None,
                path: paths[side],
            })
        };
        let (result, reference) = (side(RESULT)?, side(REFERENCE)?);
        match merge(result, reference, Comparison::new(rule, memory))? {
            Merged::Verdict(verdict) => return Ok(verdict),
            Merged::DoesNotAscend(side) => is_sorted_here[side] = true,
        }
    }
}

/// What a walk along both files came to.
enum Merged {
    Verdict(Verdict),
    /// This side has to be sorted first.
    DoesNotAscend(usize),
}

fn merge<'a>(
    mut result: Ascending<'a>,
    mut reference: Ascending<'a>,
    mut comparison: Comparison<'_>,
) -> Result<Merged, ValidateError> {
    let (mut found, mut expected) = (Lookahead::Needed, Lookahead::Needed);
    loop {
        for (next, rows, side) in [
            (&mut found, &mut result, RESULT),
            (&mut expected, &mut reference, REFERENCE),
        ] {
            if matches!(next, Lookahead::Needed) {
                match rows.next()? {
                    NextRow::Row(row) => *next = Lookahead::Row(row),
                    NextRow::End => *next = Lookahead::End,
                    NextRow::DoesNotAscend => return Ok(Merged::DoesNotAscend(side)),
                }
            }
        }
        let order = match (&found, &expected) {
            (Lookahead::Row(found), Lookahead::Row(expected)) => found.id.cmp(&expected.id),
            (Lookahead::Row(_), _) => Ordering::Less,
            (_, Lookahead::Row(_)) => Ordering::Greater,
            _ => return Ok(Merged::Verdict(comparison.verdict)),
        };
        // Take what comes next from either side or, for the same vertex, from both.
        let found = if order.is_le() { found.take() } else { None };
        let expected = if order.is_ge() { expected.take() } else { None };
        comparison.row(found, expected)?;
    }
}

/// A row that was read ahead.
enum Lookahead {
    Needed,
    Row(ResultRow),
    End,
}

impl Lookahead {
    fn take(&mut self) -> Option<ResultRow> {
        match std::mem::replace(self, Lookahead::Needed) {
            Lookahead::Row(row) => Some(row),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Rows that are checked to ascend by id.
struct Ascending<'a> {
    rows: RowIter,
    last: Option<RowId>,
    path: &'a Path,
}

enum NextRow {
    Row(ResultRow),
    End,
    DoesNotAscend,
}

impl Ascending<'_> {
    fn next(&mut self) -> Result<NextRow, ValidateError> {
        let Some(row) = self.rows.next().transpose()? else {
            return Ok(NextRow::End);
        };
        if let Some(last) = &self.last {
            if row.id == *last {
                return Err(ValidateError::Twice {
                    path: self.path.to_path_buf(),
                    vertex: row.id.to_string(),
                });
            }
            if row.id < *last {
                return Ok(NextRow::DoesNotAscend);
            }
        }
        self.last = Some(row.id.clone());
        Ok(NextRow::Row(row))
    }
}

/// All rows in leased memory, by id.
fn sorted(rows: RowIter, memory: &mut GrowingLease<'_>) -> Result<Vec<ResultRow>, ValidateError> {
    let mut all = Vec::new();
    for row in rows {
        let row = row?;
        if all.len() == all.capacity() {
            // While the list grows the old one is there too.
            let more = all.len().max(1024);
            memory.take(((all.len() + more) * size_of::<ResultRow>()) as u64)?;
            all.reserve_exact(more);
        }
        memory.take((row.bytes()) as u64)?;
        all.push(row);
    }
    all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(all)
}
