//! The registry as the facade sees it: an entry by its name, and settings whose vertices are indices.

use std::collections::BTreeMap;
use std::sync::Arc;

use graphmill_algorithms::{
    AlgorithmError, AlgorithmOptions, Entry, FOREIGN, FOREIGN_VERTICES, OptionKind, OptionSpec,
    registry,
};
use graphmill_graph::{PageCache, StoredGraph};
use graphmill_storage::MemoryBudget;

use crate::config::Config;
use crate::error::Error;
use crate::vertex_ids;

/// All algorithms, in alphabetical order.
pub fn algorithms() -> &'static [Entry] {
    registry()
}

/// The algorithm of that name or alias.
pub(crate) fn find(name: &str) -> Result<&'static Entry, Error> {
    registry()
        .iter()
        .find(|entry| entry.name == name || entry.aliases.contains(&name))
        .ok_or_else(|| Error::UnknownAlgorithm {
            name: name.to_string(),
            known: registry().iter().map(|entry| entry.name).collect(),
        })
}

/// Whether `options` are options of `entry`, with values that make sense, and all that it needs.
pub(crate) fn check(
    entry: &'static Entry,
    options: &BTreeMap<String, String>,
) -> Result<(), Error> {
    for name in options.keys() {
        if !entry.options.iter().any(|option| option.name == name) {
            return Err(Error::UnknownOption {
                algorithm: entry.name,
                name: name.clone(),
                known: entry.options.iter().map(|option| option.name).collect(),
            });
        }
    }
    for option in entry.options {
        let given = options.get(option.name);
        if option.required && given.is_none() {
            return Err(Error::MissingOption {
                algorithm: entry.name,
                name: option.name,
                help: option.help,
            });
        }
        // A list that was meant to say something and says nothing is not the same as none.
        if let Some(list) = given.filter(|_| option.kind == OptionKind::Vertices)
            && ids_of(list).is_empty()
        {
            return Err(Error::Algorithm(AlgorithmError::Value {
                name: option.name,
                value: format!("{list:?}"),
                wanted: "at least one id",
            }));
        }
    }
    Ok((entry.check_options)(&values(entry, options))?)
}

/// The entry of the algorithm, or of the program, that a run is of.
pub(crate) fn entry(config: &Config) -> Result<&'static Entry, Error> {
    match config.program {
        Some(_) => Ok(FOREIGN),
        None => find(&config.algorithm),
    }
}

/// The options of a run that name no vertices, as the algorithm takes them.
pub(crate) fn given(entry: &'static Entry, config: &Config) -> AlgorithmOptions {
    AlgorithmOptions {
        program: config.program.clone(),
        ..values(entry, &config.options)
    }
}

/// Those options that name no vertices, as the algorithm takes them.
pub(crate) fn values(
    entry: &'static Entry,
    options: &BTreeMap<String, String>,
) -> AlgorithmOptions {
    let is_value = |of: &&OptionSpec| !matches!(of.kind, OptionKind::Vertex | OptionKind::Vertices);
    let given = |of: &OptionSpec| Some((of.name.to_string(), options.get(of.name)?.clone()));
    let values = entry.options.iter().filter(is_value).filter_map(given);
    AlgorithmOptions {
        values: values.collect(),
        ..AlgorithmOptions::default()
    }
}

/// Refuses a graph whose edges have vertices, or have none, unlike what the algorithm needs.
pub(crate) fn check_edge_vertices(entry: &Entry, graph: &StoredGraph) -> Result<(), Error> {
    let algorithm = entry.name;
    let (needs, has) = (entry.edge_vertices, graph.meta().edge_vertices.is_some());
    let graph = graph.path().to_path_buf();
    match (needs, has) {
        (true, false) => Err(AlgorithmError::NoEdgeVertices { algorithm, graph }.into()),
        (false, true) => Err(AlgorithmError::EdgeVertices { algorithm, graph }.into()),
        _ => Ok(()),
    }
}

/// Options as the algorithm takes them: the ids among them looked up in `graph`.
pub(crate) fn settings(
    entry: &'static Entry,
    config: &Config,
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
) -> Result<AlgorithmOptions, Error> {
    let mut settings = given(entry, config);
    let mut reader = PageCache::new(graph, budget, 1)?;
    if let Some(program) = &config.program {
        let mut ordinals = Vec::new();
        for (_, id) in &program.vertices {
            let index = index_of(graph, &mut reader, "program", id)?;
            ordinals.push(graph.rank_of(&mut reader, index)?);
        }
        let name = FOREIGN_VERTICES.to_string();
        settings.vertices.insert(name, ordinals);
    }
    for option in entry.options {
        let Some(value) = config.options.get(option.name) else {
            continue;
        };
        let ids = match option.kind {
            OptionKind::Vertex => vec![value.clone()],
            OptionKind::Vertices => ids_of(value),
            OptionKind::Value
            | OptionKind::Flag
            | OptionKind::VertexSet
            | OptionKind::VertexValues
            | OptionKind::VertexProbabilities => continue,
        };
        let ids = ids.iter();
        let indices = ids.map(|id| index_of(graph, &mut reader, option.name, id));
        let indices = indices.collect::<Result<_, _>>()?;
        settings.vertices.insert(option.name.to_string(), indices);
    }
    Ok(settings)
}

/// The same settings with the vertices among them by rank of id, as a checker takes them.
pub(crate) fn by_rank(
    mut settings: AlgorithmOptions,
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
) -> Result<AlgorithmOptions, Error> {
    let mut reader = PageCache::new(graph, budget, 1)?;
    for vertex in settings.vertices.values_mut().flatten() {
        *vertex = graph.rank_of(&mut reader, *vertex)?;
    }
    Ok(settings)
}

/// Returns the ids of a comma-separated list, without white space around them.
///
/// A backslash escapes the character after it, so that an id may hold any character.
fn ids_of(list: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut id = String::new();
    // Bytes of the id without the white space at its end.
    let mut bytes = 0;
    let mut characters = list.chars();
    loop {
        match characters.next() {
            None | Some(',') => {
                id.truncate(std::mem::take(&mut bytes));
                ids.push(std::mem::take(&mut id));
                if characters.as_str().is_empty() {
                    break;
                }
            }
            Some(space) if space.is_whitespace() && bytes == 0 => {}
            Some(space) if space.is_whitespace() => id.push(space),
            Some(mut character) => {
                if character == '\\' {
                    character = characters.next().unwrap_or(character);
                }
                id.push(character);
                bytes = id.len();
            }
        }
    }
    ids.retain(|id| !id.is_empty());
    ids
}

fn index_of(
    graph: &StoredGraph,
    reader: &mut PageCache,
    option: &'static str,
    id: &str,
) -> Result<u64, Error> {
    let index = vertex_ids::index_of(graph, reader, id.into())?;
    index.ok_or_else(|| Error::NoSuchVertex {
        option,
        id: id.to_string(),
        integers: !graph.id_kind().has_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::ids_of;

    #[test]
    fn vertex_list_splits_at_unescaped_commas() {
        assert_eq!(ids_of("1,2, 30 ,"), ["1", "2", "30"]);
        assert_eq!(
            ids_of(r"a\,b,c\\,\ d\ , e f "),
            ["a,b", r"c\", " d ", "e f"]
        );
        assert_eq!(ids_of(r"a\"), [r"a\"]);
        assert_eq!(ids_of(r",, \,"), [","]);
        assert!(ids_of("").is_empty() && ids_of(" , ").is_empty());
    }
}
