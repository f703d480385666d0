//! Compares a result with a reference.

use std::path::Path;

use crate::machine::resources::Machine;
use crate::validate::merge_join::compare;
use crate::validate::verdict::{Rule, Verdict};
use crate::validate_error::ValidateError;
use crate::vertex_file::open::open;
use crate::vertex_file::text::ValueReading;

/// Compares `result` with `reference`.
///
/// Either file is what `run` writes (Parquet, or CSV with a header `vertex,...`) or LDBC's text, an id and a value on each line;
/// text may be packed with gzip. A directory stands for its files in order of their names, but for those that begin with a dot or an
/// underscore. Null, an empty field of CSV, `inf`, `infinity` and 9223372036854775807 mean unreached; the last
/// three also equal a vertex of that name, where values are vertices.
///
/// Files of edges, with the columns `source`, `destination` and `weight`, are compared as sets of edges without direction. The rule
/// then is for weights, and no edge may have two rows. A row of numbers is compared column by column.
///
/// # Errors
/// A [`ValidateError`] when the files cannot be compared. Differences are no errors: they are in the [`Verdict`].
pub fn validate(
    machine: &Machine,
    result: &Path,
    reference: &Path,
    rule: Rule,
) -> Result<Verdict, ValidateError> {
    if let Rule::Epsilon(share) = rule
        && !(share >= 0.0 && share.is_finite())
    {
        return Err(ValidateError::Share { share });
    }
    let reading = match rule {
        Rule::Exact | Rule::Epsilon(_) => ValueReading::Numbers,
        Rule::Equivalence => ValueReading::Names,
    };
    compare(machine.budget(), [result, reference], rule, |path| {
        open(machine, path, reading, false)
    })
}
