//! The rule at work: the rows of one vertex after the other, and a verdict that grows.
//!
//! Of groups, the names that were met are kept, in leased memory; all else takes the same memory for any file.

use std::collections::HashMap;

use graphmill_storage::GrowingLease;

use crate::validate::verdict::{RowKind, Rule, Verdict};
use crate::validate_error::ValidateError;
use crate::vertex_file::text::{ResultRow, RowId, Value};

/// The rule at work.
pub(super) struct Comparison<'a> {
    rule: Rule,
    pub(super) verdict: Verdict,
    /// What the rows so far are.
    rows: Option<RowKind>,
    /// For groups: what a name of the result stands for in the reference, and the other way round.
    to_expected: HashMap<Value, Value>,
    to_found: HashMap<Value, Value>,
    memory: GrowingLease<'a>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(rule: Rule, memory: GrowingLease<'a>) -> Comparison<'a> {
        Comparison {
            rule,
            verdict: Verdict::default(),
            rows: None,
            to_expected: HashMap::new(),
            to_found: HashMap::new(),
            memory,
        }
    }

    /// Takes the rows of one vertex.
    pub(super) fn row(
        &mut self,
        found: Option<ResultRow>,
        expected: Option<ResultRow>,
    ) -> Result<(), ValidateError> {
        self.verdict.vertices += u64::from(expected.is_some());
        if let Some(row) = found.as_ref().or(expected.as_ref()) {
            let rows = match row.id {
                RowId::Integer(_) | RowId::Text(_) => RowKind::Vertices,
                RowId::Edge(_) => RowKind::Edges,
                RowId::Column(_) => RowKind::Columns,
            };
            // Columns come last, and may have any names.
            let others = self.rows.replace(rows).filter(|others| *others != rows);
            if let (RowId::Column(name), Some(others)) = (&row.id, others) {
                let (column, others) = (name.to_string(), others.to_string());
                return Err(ValidateError::Column { column, others });
            }
            self.verdict.rows = rows;
        }
        match (found, expected) {
            (Some(found), Some(expected)) => self.pair(found, expected)?,
            (Some(ResultRow { id, value, .. }), None) => {
                self.verdict.unexpected += 1;
                self.verdict.differs(|| {
                    let row = id.named();
                    format!("{row} has {value}, but is not in the reference")
                });
            }
            (None, Some(ResultRow { id, value, .. })) => {
                self.verdict.missing += 1;
                self.verdict
                    .differs(|| format!("{} is missing, expected {value}", id.named()));
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn pair(&mut self, found: ResultRow, expected: ResultRow) -> Result<(), ValidateError> {
        let is_same = match self.rule {
            Rule::Exact => found.value.is_same(&expected.value),
            Rule::Epsilon(share) => found.value.is_close(&expected.value, share),
            Rule::Equivalence => return self.names(found, expected),
        };
        if !is_same {
            let (id, found, expected) = (found.id, found.value, expected.value);
            self.verdict
                .differs(|| format!("{} has {found}, expected {expected}", id.named()));
        }
        Ok(())
    }

    /// A name of either side stands for one name of the other, the one it first met.
    fn names(&mut self, found: ResultRow, expected: ResultRow) -> Result<(), ValidateError> {
        let ResultRow {
            id, value: found, ..
        } = found;
        let expected = expected.value;
        match (self.to_expected.get(&found), self.to_found.get(&expected)) {
            (Some(name), _) if *name == expected => {}
            (Some(name), _) => {
                let what = || {
                    format!(
                        "vertex {id} is in {found} like vertices of {name}, but in {expected} in the reference"
                    )
                };
                self.verdict.differs(what);
            }
            (None, Some(name)) => {
                let what = || {
                    format!(
                        "vertex {id} is in {found}, but in {expected} in the reference, like vertices in {name}"
                    )
                };
                self.verdict.differs(what);
            }
            (None, None) => {
                for names in [&mut self.to_expected, &mut self.to_found] {
                    if names.len() == names.capacity() {
                        // A table has room for twice its entries at most, and while it grows the old one is there too.
                        let more = names.len().max(1024);
                        let entries = 3 * (names.len() + more);
                        self.memory
                            .take((entries * size_of::<(Value, Value)>()) as u64)?;
                        names.reserve(more);
                    }
                }
                let bytes = found.bytes() + expected.bytes();
                self.memory.take((2 * bytes) as u64)?;
                self.to_expected.insert(found.clone(), expected.clone());
                self.to_found.insert(expected, found);
            }
        }
        Ok(())
    }
}
