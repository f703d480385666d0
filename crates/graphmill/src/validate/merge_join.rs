//! The walk along both files, side by side as long as their ids ascend.
//!
//! 1. A row is read ahead of either file; the lesser id comes next, or both for the same vertex.
//! 2. A file that turns out not to ascend is read again from its start, into leased memory, and sorted.

use std::cmp::Ordering;
use std::path::Path;

use graphmill_storage::{GrowingLease, MemoryBudget};

use crate::validate::comparison::Comparison;
use crate::validate::verdict::{Rule, Verdict};
use crate::validate_error::ValidateError;
use crate::vertex_file::text::{ResultRow, RowId, RowIter};

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
                side,
            })
        };
        let (result, reference) = (side(RESULT)?, side(REFERENCE)?);
        match merge(result, reference, Comparison::new(rule, memory)) {
            Ok(verdict) => return Ok(verdict),
            Err(MergeError::DoesNotAscend(side)) => is_sorted_here[side] = true,
            Err(MergeError::Validate(error)) => return Err(error),
        }
    }
}

/// Why a walk along both files ended early.
enum MergeError {
    Validate(ValidateError),
    /// This side has to be sorted first.
    DoesNotAscend(usize),
}

impl From<ValidateError> for MergeError {
    fn from(error: ValidateError) -> MergeError {
        MergeError::Validate(error)
    }
}

fn merge(
    result: Ascending<'_>,
    reference: Ascending<'_>,
    mut comparison: Comparison<'_>,
) -> Result<Verdict, MergeError> {
    let (mut result, mut reference) = (result.peekable(), reference.peekable());
    loop {
        let order = match (result.peek(), reference.peek()) {
            (None, None) => return Ok(comparison.verdict),
            (Some(Ok(found)), Some(Ok(expected))) => found.id.cmp(&expected.id),
            (Some(Err(_)), _) | (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        // Take what comes next from either side or, for the same vertex, from both.
        let found = result.next_if(|_| order.is_le()).transpose()?;
        let expected = reference.next_if(|_| order.is_ge()).transpose()?;
        comparison.row(found, expected)?;
    }
}

/// Rows that are checked to ascend by id.
struct Ascending<'a> {
    rows: RowIter,
    last: Option<RowId>,
    path: &'a Path,
    side: usize,
}

impl Iterator for Ascending<'_> {
    type Item = Result<ResultRow, MergeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = match self.rows.next()? {
            Ok(row) => row,
            Err(error) => return Some(Err(error.into())),
        };
        let order = self.last.as_ref().map(|last| row.id.cmp(last));
        self.last = Some(row.id.clone());
        Some(match order {
            Some(Ordering::Equal) => Err(MergeError::Validate(ValidateError::Twice {
                path: self.path.to_path_buf(),
                row: row.id.named(),
            })),
            Some(Ordering::Less) => Err(MergeError::DoesNotAscend(self.side)),
            _ => Ok(row),
        })
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
