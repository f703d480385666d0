//! Finds the columns of the ids and the weight: by option, by name, else by position.

use super::dialect::{DialectRequest, RecordKind};
use super::names::{ids_of_datasets, known_pair, known_vertex, known_weight};
use super::record::trim;
use crate::error::IngestError;

/// The columns of source, destination and weight, and their names: by a header, else by number from 1.
pub(crate) struct Chosen {
    pub(crate) columns: [usize; 3],
    /// The columns of the fields of a record.
    pub(crate) data: Vec<usize>,
    pub(crate) names: [String; 3],
}

/// Returns the column of an option: by exact name, by number from 1, or by name in another case.
pub(super) fn column_index(column: &str, names: Option<&[String]>) -> Option<usize> {
    let named = |is: &dyn Fn(&str) -> bool| names?.iter().position(|name| is(name.trim()));
    named(&|name| name == column)
        .or_else(|| column.parse::<usize>().ok()?.checked_sub(1))
        .or_else(|| named(&|name| name.eq_ignore_ascii_case(column)))
}

/// Returns the name of a column: of the header, or its number from 1.
pub(crate) fn called(column: usize, names: Option<&[String]>) -> String {
    match names.and_then(|names| names.get(column)) {
        Some(name) if !name.is_empty() => {
            let shown = |c: char| match c.is_control() {
                true => c.escape_default().to_string(),
                false => c.to_string(),
            };
            name.chars().map(shown).collect()
        }
        _ => (column + 1).to_string(),
    }
}

/// Finds the column that option `what` names, by name or number from 1.
fn find_column(
    request: &DialectRequest<'_>,
    names: Option<&[String]>,
    width: usize,
    column: &str,
    what: &str,
) -> Result<usize, IngestError> {
    let problem = match (column_index(column, names), column.parse::<usize>()) {
        (Some(column_index), Ok(number))
            if column_index + 1 != number && (1..=width).contains(&number) =>
        {
            format!(
                "{what} {column}: column {} has that name and another that number: rename it",
                column_index + 1
            )
        }
        (Some(column_index), _) => return Ok(column_index),
        (None, _) => {
            let have = match names {
                Some(names) => format!("it has {}", names.join(", ")),
                None => {
                    "it has no header (--header yes if the first line is one); give a number".into()
                }
            };
            format!("{what} {column}: there is no such column; {have}")
        }
    };
    Err(IngestError::input(request.path, problem))
}

/// Chooses the requested columns: by option, by name, else from `index` on.
///
/// Rows have `width` columns; `is_fraction` returns true for columns of fractions, which are no ids.
pub(crate) fn choose(
    request: &DialectRequest<'_>,
    names: Option<&[String]>,
    index: usize,
    width: usize,
    is_fraction: &dyn Fn(usize) -> bool,
) -> Result<Chosen, IngestError> {
    let (options, refuse) = (request.options, |problem| {
        IngestError::input(request.path, problem)
    });
    let find = |option: &Option<String>, what: &str| {
        let column = option.as_deref();
        column
            .map(|column| find_column(request, names, width, column, what))
            .transpose()
    };
    let chosen = |columns: [usize; 3], data| Chosen {
        columns,
        data,
        names: columns.map(|column| called(column, names)),
    };
    if request.columns == RecordKind::Vertex {
        let vertex = names.and_then(known_vertex).unwrap_or(index);
        return Ok(chosen([vertex; 3], Vec::new()));
    }
    if let (Some(names), None, None) = (names, &options.source_column, &options.target_column)
        && let Some(column) = ids_of_datasets(names)
    {
        return Err(refuse(format!(
            "its ids are unique within {column} only: join both to one column, or say --source-column and --target-column if the ids are unique in all"
        )));
    }
    let source = find(&options.source_column, "--source-column")?;
    let target = find(&options.target_column, "--target-column")?;
    let known = names.and_then(known_pair);
    let [first, second] = known.unwrap_or([index, index + 1]);
    let ends = match (source, target) {
        (Some(source), None) if source == second => None,
        (None, Some(target)) if target == first => None,
        (source, target) => Some([source.unwrap_or(first), target.unwrap_or(second)]),
    };
    let Some(ends) = ends else {
        return Err(refuse(
            "give both --source-column and --target-column: one of them is the column that the other would be".into(),
        ));
    };
    if ends[0] == ends[1] {
        return Err(refuse(
            "--source-column and --target-column are one column".into(),
        ));
    }
    let is_guess = source.is_none() && target.is_none() && known.is_none();
    if let Some(names) = names
        && is_guess
        && names.len() > 2
        && ends.into_iter().any(is_fraction)
    {
        return Err(refuse(format!(
            "its columns are {}: say which hold the ids with --source-column and --target-column",
            names.join(", ")
        )));
    }
    let weight = match find(&options.weight_column, "--weight-column")? {
        Some(weight) => weight,
        None => names
            .and_then(|names| known_weight(names, ends))
            .unwrap_or(ends[0].max(ends[1]) + 1),
    };
    let data = options.edge_data.columns().iter();
    let data = data.map(|column| find_column(request, names, width, column, "--edge-data"));
    let data = data.collect::<Result<Vec<usize>, IngestError>>()?;
    let weight_needed = request.weighted.then_some(weight);
    let needed = ends.iter().chain(&weight_needed).chain(&data);
    let needed = needed.copied().max().unwrap_or(0);
    if let Some(names) = names
        && width < usize::MAX
        && needed >= width.max(names.len())
    {
        return Err(refuse(format!(
            "it has no column {}, and its columns are {}",
            needed + 1,
            names.join(", ")
        )));
    }
    Ok(chosen([ends[0], ends[1], weight], data))
}

/// Returns the names in the cells of a header.
pub(super) fn names_of(cells: &[Vec<u8>]) -> Vec<String> {
    let name = |cell: &Vec<u8>| String::from_utf8_lossy(trim(cell)).into_owned();
    cells.iter().map(name).collect()
}

/// The one number of columns that lines have; where malformed ones are left out, that of most.
pub(super) fn width_of(mut widths: Vec<usize>, skips: bool) -> Option<usize> {
    widths.sort_unstable();
    let groups = widths.chunk_by(|one, other| one == other);
    if skips {
        return groups.max_by_key(|group| group.len()).map(|group| group[0]);
    }
    let mut groups = groups.map(|group| group[0]);
    groups.next().filter(|_| groups.next().is_none())
}
