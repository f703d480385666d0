//! Options that stand for vertices with values: a file, or a word such as `odd`.
//!
//! A run fills arrays from them before its first pass. A checker gets lists.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use graphmill_algorithms::{AlgorithmOptions, OptionKind, OptionSpec};
use graphmill_graph::{IdCursor, StoredGraph};
use graphmill_storage::{Lease, RandomAccessFile};

use crate::error::{Error, check_stop};
use crate::hash::Fnv1a;
use crate::machine::resources::Machine;
use crate::plan::Plan;
use crate::session::Session;
use crate::validate::id_lookup::IdLookup;
use crate::vertex_file::open::{open, unsorted};
use crate::vertex_file::text::{ResultRow, ValueReading};
use crate::vertex_file::{fill, parity};

/// Bytes of a file that are read at a time.
const CHUNK_BYTES: usize = 1 << 18;

impl Plan {
    /// The options of vertices that are given, with their values.
    fn vertex_options(&self) -> impl Iterator<Item = (&'static OptionSpec, &str)> {
        let of_vertices = |option: &&OptionSpec| {
            matches!(
                option.kind,
                OptionKind::VertexSet | OptionKind::VertexValues | OptionKind::VertexProbabilities
            )
        };
        let options = self.entry.options.iter().filter(of_vertices);
        options.filter_map(|option| Some((option, self.config.options.get(option.name)?.as_str())))
    }

    /// The files that options of vertices name.
    pub(crate) fn vertex_files(&self) -> impl Iterator<Item = &Path> {
        let options = self.vertex_options();
        let files = options.filter(|(option, value)| !option.kind.words().contains(value));
        files.map(|(_, value)| Path::new(value))
    }

    /// Opens the files of options, to report what cannot be read before any work.
    pub(crate) fn check_vertex_files(&self, machine: &Machine) -> Result<(), Error> {
        for path in self.vertex_files() {
            machine.input(path)?;
            drop(open(machine, path, ValueReading::Ids, false).map_err(unsorted)?);
        }
        Ok(())
    }

    /// Returns the options that tell this run from another.
    ///
    /// A file stands there by its name and a hash of its content.
    pub(crate) fn identifying_options(
        &self,
        machine: &Machine,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut options = self.config.options.clone();
        for (option, value) in self.vertex_options() {
            if !option.kind.words().contains(&value) {
                let path = Path::new(value);
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let hash = content_hash(machine, path)?;
                options.insert(option.name.to_string(), format!("{name} ({hash})"));
            }
        }
        Ok(options)
    }

    /// Fills arrays from options, and adds them to the settings of a run.
    pub(crate) fn fill_vertex_options(
        &self,
        session: &mut Session,
        settings: &mut AlgorithmOptions,
    ) -> Result<(), Error> {
        for (option, value) in self.vertex_options() {
            let (name, array) = (option.name.to_string(), format!("--{}", option.name));
            let is_word = option.kind.words().contains(&value);
            let path = Path::new(value);
            if option.kind == OptionKind::VertexSet {
                let set = session.vertex_array::<u8>(&array)?;
                if is_word {
                    parity::check_integers(&session.graph, option.name, value)?;
                    parity::fill(session, value == "odd", set)?;
                } else {
                    fill::members(session, path, set)?;
                }
                settings.sets.insert(name, set);
            } else if !is_word {
                let vector = session.vertex_array::<f64>(&array)?;
                let missing = option.kind.missing();
                if missing != 0.0 {
                    session.process_vertices(vector.write(), None, |_, value| *value = missing)?;
                }
                fill::vector(session, path, option.kind, vector)?;
                settings.vectors.insert(name, vector);
            }
        }
        Ok(())
    }

    /// Reads lists from options, by ordinal of id, and adds them to the settings of a checker.
    ///
    /// Returns the leases for them.
    pub(crate) fn list_vertex_options(
        &self,
        machine: &Machine,
        graph: &Arc<StoredGraph>,
        settings: &mut AlgorithmOptions,
    ) -> Result<Vec<Lease>, Error> {
        let mut leases = Vec::new();
        for (option, value) in self.vertex_options() {
            let is_word = option.kind.words().contains(&value);
            if is_word && option.kind == OptionKind::VertexValues {
                continue;
            }
            let bytes = graph
                .named_vertices()
                .saturating_mul(size_of::<f64>() as u64);
            let budget = machine.budget();
            leases.push(budget.lease("the values of an option", bytes)?);
            let list = match is_word {
                true => {
                    parity::check_integers(graph, option.name, value)?;
                    let mut list = vec![0.0; graph.named_vertices() as usize];
                    let mut ids = IdCursor::new(graph, budget, 0)?;
                    for place in &mut list {
                        let is_odd = ids.next()?.and_then(parity::is_odd);
                        *place = f64::from(is_odd == Some(value == "odd"));
                    }
                    list
                }
                false => list_of_file(machine, graph, Path::new(value), option.kind)?,
            };
            settings.lists.insert(option.name.to_string(), list.into());
        }
        Ok(leases)
    }
}

/// Returns the values of a file by ordinal of id; of a set 1 for its members.
fn list_of_file(
    machine: &Machine,
    graph: &Arc<StoredGraph>,
    path: &Path,
    kind: OptionKind,
) -> Result<Vec<f64>, Error> {
    let mut list = vec![kind.missing(); graph.named_vertices() as usize];
    let mut has_row = vec![false; list.len()];
    let mut names = IdLookup::new(graph, machine.budget(), machine.budget().available() / 2)?;
    let reading = match kind {
        OptionKind::VertexSet => ValueReading::Ids,
        _ => ValueReading::Words,
    };
    let any_column = names.rank_of_name("vertex")?.is_none();
    let rows = open(machine, path, reading, any_column).map_err(unsorted)?;
    for (number, row) in (1..).zip(rows) {
        let ResultRow { id, value, line } = row.map_err(unsorted)?;
        let wrong = |what: String| fill::wrong_row(path, (line, number), what);
        let rank = names.rank_of(&id)?.map(|rank| rank as usize);
        let Some(rank) = rank.filter(|rank| *rank < list.len()) else {
            return Err(wrong(format!("the graph has no {}", id.named())));
        };
        if std::mem::replace(&mut has_row[rank], true) {
            return Err(wrong(format!("{} has a row before", id.named())));
        }
        list[rank] = match kind {
            OptionKind::VertexSet => 1.0,
            kind => {
                let value = fill::number(kind, &value).map_err(wrong)?;
                value.unwrap_or(kind.missing())
            }
        };
    }
    Ok(list)
}

/// Hashes the content of a file, or of the files of a directory in order of their names.
fn content_hash(machine: &Machine, path: &Path) -> Result<String, Error> {
    let disk = machine.disk();
    let files = match disk.is_dir(path)? {
        true => disk.list(path)?,
        false => vec![path.to_path_buf()],
    };
    let mut hash = Fnv1a::new();
    let mut bytes = Vec::new();
    for file in files {
        let mut reader =
            RandomAccessFile::open(disk, machine.budget(), &file, CHUNK_BYTES)?.reader();
        loop {
            check_stop(machine.stop())?;
            bytes.clear();
            let read = reader.by_ref().take(1 << 16).read_to_end(&mut bytes);
            let read = read.map_err(|source| crate::ValidateError::Read {
                path: file.clone(),
                source,
            })?;
            hash.add(&bytes);
            if read == 0 {
                break;
            }
        }
    }
    Ok(hash.text())
}
