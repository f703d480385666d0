//! The walk along both files, side by side as long as their ids ascend.
//!
//! 1. A row is read ahead of either file; the lesser id comes next, or both for the same vertex.
//! 2. A file that turns out not to ascend is read again from its start, into leased memory, and sorted.

use std::cmp::Ordering;
use std::path::Path;

use graphmill_storage::Budget;

use crate::validate::comparison::Comparison;
use crate::validate::memory::Memory;
use crate::validate::text::{Id, Row, Rows};
use crate::validate::verdict::{Rule, Verdict};
use crate::validate_error::ValidateError;

/// Which of two files a step is about.
const RESULT: usize = 0;
const REFERENCE: usize = 1;

pub(super) fn compare(
    budget: &Budget,
    paths: [&Path; 2],
    rule: Rule,
    open: impl Fn(&Path) -> Result<Rows, ValidateError>,
) -> Result<Verdict, ValidateError> {
    let mut is_sorted_here = [false; 2];
    loop {
        let mut memory = Memory::new(budget);
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
    let (mut found, mut expected) = (Next::Needed, Next::Needed);
    loop {
        for (next, rows, side) in [
            (&mut found, &mut result, RESULT),
            (&mut expected, &mut reference, REFERENCE),
        ] {
            if matches!(next, Next::Needed) {
                match rows.next()? {
                    Step::Row(row) => *next = Next::Row(row),
                    Step::End => *next = Next::End,
                    Step::DoesNotAscend => return Ok(Merged::DoesNotAscend(side)),
                }
            }
        }
        let order = match (&found, &expected) {
            (Next::Row(found), Next::Row(expected)) => found.id.cmp(&expected.id),
            (Next::Row(_), _) => Ordering::Less,
            (_, Next::Row(_)) => Ordering::Greater,
            _ => return Ok(Merged::Verdict(comparison.verdict)),
        };
        // Take what comes next from either side or, for the same vertex, from both.
        let found = if order.is_le() { found.take() } else { None };
        let expected = if order.is_ge() { expected.take() } else { None };
        comparison.row(found, expected)?;
    }
}

/// A row that was read ahead.
enum Next {
    Needed,
    Row(Row),
    End,
}

impl Next {
    fn take(&mut self) -> Option<Row> {
        match std::mem::replace(self, Next::Needed) {
            Next::Row(row) => Some(row),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Rows that are checked to ascend by id.
struct Ascending<'a> {
    rows: Rows,
    last: Option<Id>,
    path: &'a Path,
}

enum Step {
    Row(Row),
    End,
    DoesNotAscend,
}

impl Ascending<'_> {
    fn next(&mut self) -> Result<Step, ValidateError> {
        let Some(row) = self.rows.next().transpose()? else {
            return Ok(Step::End);
        };
        if let Some(last) = &self.last {
            if row.id == *last {
                return Err(ValidateError::Twice {
                    path: self.path.to_path_buf(),
                    vertex: row.id.to_string(),
                });
            }
            if row.id < *last {
                return Ok(Step::DoesNotAscend);
            }
        }
        self.last = Some(row.id.clone());
        Ok(Step::Row(row))
    }
}

/// All rows in leased memory, by id.
fn sorted(rows: Rows, memory: &mut Memory<'_>) -> Result<Vec<Row>, ValidateError> {
    let mut all = Vec::new();
    for row in rows {
        let row = row?;
        if all.len() == all.capacity() {
            // While the list grows the old one is there too.
            let more = all.len().max(1024);
            memory.take((all.len() + more) * size_of::<Row>())?;
            all.reserve_exact(more);
        }
        memory.take(row.bytes())?;
        all.push(row);
    }
    all.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(all)
}
