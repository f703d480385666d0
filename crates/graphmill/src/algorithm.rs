//! The registry as the facade sees it: an entry by its name, and settings whose vertices are indices.

use std::collections::BTreeMap;
use std::sync::Arc;

use graphmill_algorithms::{Entry, OptionKind, OptionSpec, Settings, registry};
use graphmill_graph::{FrameReader, IdKind, StoredGraph, VertexId};
use graphmill_storage::Budget;

use crate::Error;

/// All algorithms, in alphabetical order.
pub fn algorithms() -> &'static [Entry] {
    registry()
}

/// The algorithm of that name.
pub(crate) fn find(name: &str) -> Result<&'static Entry, Error> {
    registry()
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| Error::UnknownAlgorithm {
            name: name.to_string(),
            known: registry().iter().map(|entry| entry.name).collect(),
        })
}

/// Whether `options` are options of `entry`, and all that it needs.
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
    match entry
        .options
        .iter()
        .find(|option| option.required && !options.contains_key(option.name))
    {
        None => Ok(()),
        Some(option) => Err(Error::MissingOption {
            algorithm: entry.name,
            name: option.name,
            help: option.help,
        }),
    }
}

/// Options as the algorithm takes them: the ids among them looked up in `graph`.
pub(crate) fn settings(
    entry: &'static Entry,
    options: &BTreeMap<String, String>,
    graph: &Arc<StoredGraph>,
    budget: &Budget,
) -> Result<Settings, Error> {
    let mut settings = Settings::default();
    let mut reader = FrameReader::new(graph, budget, 1)?;
    for option in entry.options {
        let Some(value) = options.get(option.name) else {
            continue;
        };
        let ids: Vec<&str> = match option.kind {
            OptionKind::Vertex => vec![value],
            OptionKind::Vertices => value
                .split(',')
                .map(str::trim)
                .filter(|id| !id.is_empty())
                .collect(),
            OptionKind::Value | OptionKind::Flag => {
                settings
                    .values
                    .insert(option.name.to_string(), value.clone());
                continue;
            }
        };
        let indices = ids
            .into_iter()
            .map(|id| index_of(graph, &mut reader, option, id));
        settings
            .vertices
            .insert(option.name.to_string(), indices.collect::<Result<_, _>>()?);
    }
    Ok(settings)
}

fn index_of(
    graph: &StoredGraph,
    reader: &mut FrameReader,
    option: &OptionSpec,
    id: &str,
) -> Result<u64, Error> {
    let integers = graph.id_kind() != IdKind::Text;
    let vertex = if integers {
        id.parse().ok().map(VertexId::Integer)
    } else {
        Some(VertexId::Text(id.into()))
    };
    let index = match vertex {
        Some(vertex) => graph.index_of(reader, &vertex)?,
        None => None,
    };
    index.ok_or_else(|| Error::NoSuchVertex {
        option: option.name,
        id: id.to_string(),
        integers,
    })
}
