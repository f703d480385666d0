//! Opens the input of a plan: a stored graph, or a cached one that is imported from its files of edges first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_algorithms::AlgorithmOptions;
use graphmill_graph::{EdgeKind, StoredGraph};
use graphmill_ingest::{IngestError, input_files};
use graphmill_storage::{DirLock, LockMode, Owner, StorageError};

use crate::error::Error;
use crate::import_cache::CacheLocation;
use crate::import_config::ImportConfig;
use crate::machine::resources::Machine;
use crate::open::OpenFor;
use crate::paths::DESCRIPTION;
use crate::plan::{COLUMNS_PAY_OFF, Plan};
use crate::progress::{Progress, ProgressFn};
use crate::{algorithms, info};

/// Bytes of memory that the name of a file takes in addition to its text.
const NAME_BYTES: u64 = 48;

impl Plan {
    /// Opens the stored graph and resolves the options for the algorithm.
    ///
    /// A cached graph stays locked while the returned hold lives.
    pub(crate) fn open_and_resolve(
        &self,
        machine: &Machine,
        purpose: OpenFor<'_>,
        watcher: &ProgressFn,
    ) -> Result<(Arc<StoredGraph>, AlgorithmOptions, Option<DirLock>), Error> {
        let (graph, hold) = self.open(machine, purpose, watcher)?;
        self.check_layout(&graph)?;
        algorithms::check_edge_vertices(self.entry, &graph)?;
        let settings = algorithms::settings(self.entry, &self.config, &graph, machine.budget())?;
        let is_weighted = self.entry.is_weighted(&settings);
        let notice = match graph.edge_kind() {
            EdgeKind::None if is_weighted => {
                "the graph has no weights, each arc counts 1 (--weights f32 or f64 reads a third column)"
            }
            EdgeKind::F32 | EdgeKind::F64 if self.entry.can_be_weighted() && !is_weighted => {
                "the weights of the graph are ignored, each arc counts 1 (--weighted goes by them)"
            }
            EdgeKind::Record(_) if is_weighted => {
                return Err(Error::NoWeights {
                    algorithm: self.entry.name,
                    graph: graph.path().to_path_buf(),
                    fields: graph.edge_fields().to_string(),
                });
            }
            _ => "",
        };
        if !notice.is_empty() {
            let text = format!("{}: {notice}", self.entry.name);
            watcher(&Progress::Warning(&text));
        }
        if self.config.engine.buckets.is_some_and(|of| of.plain) {
            let text = "--plain-datagrams: anybody on the network can read and change messages";
            watcher(&Progress::Warning(text));
        }
        Ok((graph, settings, hold))
    }

    /// Opens the stored graph that is the input, or that all ranks import from it.
    ///
    /// A cached graph stays locked for the run.
    fn open(
        &self,
        machine: &Machine,
        purpose: OpenFor<'_>,
        watcher: &ProgressFn,
    ) -> Result<(Arc<StoredGraph>, Option<DirLock>), Error> {
        let disk = machine.disk();
        let inputs = machine.inputs(&self.config.input)?;
        // Of several files that a pattern stands for, the pattern names the cache.
        let input = match &inputs[..] {
            [input] => input,
            _ => &self.config.input,
        };
        for list in &self.config.import.vertices {
            machine.input(list)?;
        }
        if disk.exists(&input.join(DESCRIPTION))? {
            let plain = ImportConfig {
                edge_vertices: self.config.import.edge_vertices,
                // The executor asks for it, not an option of the import.
                layout: self.config.import.layout,
                ..ImportConfig::default()
            };
            if self.config.import != plain {
                let path = input.clone();
                return Err(Error::AlreadyStored { path });
            }
            // It may be one of the cache.
            let hold = disk.hold(input, LockMode::Shared, Owner::Anybody);
            let hold = hold.ok().flatten();
            return Ok((machine.graph_for(input, purpose)?, hold));
        }
        self.open_cached(machine, purpose, (&inputs, input), watcher)
    }

    /// Opens the graph that is cached beside `input`; imports it from the files `inputs` if there is none.
    fn open_cached(
        &self,
        machine: &Machine,
        purpose: OpenFor<'_>,
        (inputs, input): (&[PathBuf], &Path),
        watcher: &ProgressFn,
    ) -> Result<(Arc<StoredGraph>, Option<DirLock>), Error> {
        let given = algorithms::given(self.entry, &self.config);
        (self.entry.check_direction)(&given, self.config.import.directed, input)?;
        let disk = machine.disk();
        let mut files = input_files(&**disk, inputs)?;
        files.extend(self.config.import.vertices.clone());
        let bytes = |file: &PathBuf| NAME_BYTES + file.as_os_str().len() as u64;
        let bytes = files.iter().map(bytes).sum();
        let budget = machine.budget();
        let names = budget.lease("the names of the input's files", bytes)?;
        let options = format!("{:?}", self.config.import);
        let cache = CacheLocation::of(&**disk, input, &files, &options)?;
        let path = cache.graph();
        // Held before it is looked for, so that it is not removed in between.
        let hold = cache.hold(&**disk)?;
        let is_there = disk.exists(&path.join(DESCRIPTION))?;
        // Ranks with disks of their own number files in ways of their own. Each has a whole graph there, by whatever job it was made.
        let found = machine.gather(path.as_os_str().as_encoded_bytes())?;
        let is_shared = found.iter().all(|other| *other == found[0]);
        let found = machine.gather(&[u8::from(is_there)])?;
        let is_there = match is_shared {
            true => found.contains(&vec![1]),
            false => is_there,
        };
        if is_there {
            let text = format!("using {}, imported before", path.display());
            watcher(&Progress::Note(&text));
            let graph = self.imported(machine, &path, purpose, watcher)?;
            for line in info::read(&graph.meta().options) {
                watcher(&Progress::Note(&line));
            }
            return Ok((graph, hold));
        }
        let mut bytes = 0;
        for file in &files {
            bytes += disk.stamp(file)?.bytes;
        }
        if let Some(plan) = self.over_chunks(bytes).filter(|_| is_shared) {
            let text = format!(
                "--executor stream: {} makes few passes, so sorting the edges does not pay (it does from about {COLUMNS_PAY_OFF} passes on: graphmill import)",
                self.entry.name
            );
            watcher(&Progress::Note(&text));
            drop((files, names));
            return plan.open_cached(machine, purpose, (inputs, input), watcher);
        }
        let enough = || machine.enough_for(purpose, &files, &self.config.import);
        machine.check_any(purpose, enough)?;
        let text = format!("importing {} into {}", input.display(), path.display());
        watcher(&Progress::Note(&text));
        let by_all = is_shared && found.len() > 1;
        self.import_to_cache(machine, &cache, (inputs, input), by_all, &enough, watcher)?;
        drop((files, names));
        let hold = cache.hold(&**disk)?;
        cache.remove_stale(disk);
        Ok((self.imported(machine, &path, purpose, watcher)?, hold))
    }

    /// Imports into the cache; `enough` returns the budget that the run needs.
    fn import_to_cache(
        &self,
        machine: &Machine,
        cache: &CacheLocation,
        (inputs, input): (&[PathBuf], &Path),
        by_all: bool,
        enough: &dyn Fn() -> Result<u64, Error>,
        watcher: &ProgressFn,
    ) -> Result<(), Error> {
        let path = cache.graph();
        // The lock keeps another process from replacing the directory while this one writes it.
        let _folder = cache.make(&**machine.disk())?;
        // Checkpoints of the import lie in the cache, which deletes stale ones. Among other temporary files they would stay if the input changed.
        let mut import = self.config.import.clone();
        if machine.tmp_asked().is_some() {
            import.keep_every = None;
        }
        let importing = match by_all {
            true => machine.clone(),
            false => machine.alone(),
        };
        if let Err(error) = importing.import_anywhere(inputs, &path, &import, watcher) {
            // Another run may have made the same graph meanwhile.
            let is_there = machine.disk().exists(&path.join(DESCRIPTION))?;
            if is_there && by_all {
                // Ranks that failed are lost to each other.
                return Err(Error::ImportedMeanwhile { path });
            }
            if !is_there {
                // An empty directory is deleted, whichever process made it.
                let _ = machine.disk().remove_dir(&cache.folder);
                return Err(match error {
                    Error::Ingest(IngestError::Storage(StorageError::Path { source, .. }))
                        if is_forbidden(&source) =>
                    {
                        Error::NoCache {
                            input: input.to_path_buf(),
                            folder: cache.folder.clone(),
                            source,
                        }
                    }
                    mut error => {
                        // The reported minimum suffices for the run, too.
                        if let Error::Ingest(IngestError::TooLittleMemory { least, .. }) =
                            &mut error
                        {
                            *least = (*least).max(enough()?);
                        }
                        error
                    }
                });
            }
        }
        Ok(())
    }

    /// Opens a graph of the cache; every run on it reports what its import skipped.
    fn imported(
        &self,
        machine: &Machine,
        path: &Path,
        purpose: OpenFor<'_>,
        watcher: &ProgressFn,
    ) -> Result<Arc<StoredGraph>, Error> {
        let graph = machine.graph_for(path, purpose)?;
        let dropped = &graph.meta().dropped;
        for (reason, what) in [
            ("malformed_lines", "malformed lines skipped"),
            (
                "malformed_vertex_lines",
                "malformed lines of vertices skipped",
            ),
        ] {
            if let Some(count) = dropped.get(reason).filter(|count| **count > 0) {
                watcher(&Progress::Warning(&format!(
                    "{}: {what} when it was imported: {count}",
                    self.config.input.display()
                )));
            }
        }
        Ok(graph)
    }
}

/// True if nothing may be written there.
fn is_forbidden(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}
