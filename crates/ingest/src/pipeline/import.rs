//! Runs the steps in order: checks the options, opens the directories, and removes or keeps them at the end.

use std::path::Path;
use std::sync::Arc;

use graphmill_fabric::{CountedFabric, Fabric};
use graphmill_graph::{Batches, GraphWriter, Layout, Order};
use graphmill_storage::{CountedDisk, Disk};

use super::context::ImportContext;
use super::memory::check_memory;
use super::resume::{EdgeStage, ResumePoint};
use super::scan;
use crate::checkpoint::job::JobIdentity;
use crate::checkpoint::staging::StagingDir;
use crate::checkpoint::workdir::ImportDirs;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::generate::rule::{DirectSource, Generated};
use crate::layout::batch_cut::keys_hold;
use crate::options::{ImportOptions, ImportResources};
use crate::report::{ImportReport, ImportTraffic};
use crate::source::EdgeSource;

/// Imports the edges of `source`, and the ends of the edges of `vertices` as vertices without edges.
///
/// # Errors
/// The input cannot be read or makes no sense, batches are asked to be too large, the disk fails, the budget is too small for this input (with the least
/// that would do), `stop` was requested, or something has the output's name. Nothing is left behind then but what
/// [is kept](ImportOptions::keep_every).
pub fn import(
    resources: ImportResources<'_>,
    source: &dyn EdgeSource,
    vertices: Option<&dyn EdgeSource>,
    options: &ImportOptions,
) -> Result<ImportReport, IngestError> {
    store(resources, source, vertices, None, options)
}

/// Stores `graph` as [`import`] would, with the same bytes.
///
/// If the rule gives arcs in the order of the stored graph, it neither gathers nor sorts them.
///
/// # Errors
/// As for [`import`].
pub fn generate(
    resources: ImportResources<'_>,
    graph: &Generated,
    options: &ImportOptions,
) -> Result<ImportReport, IngestError> {
    // The rule generates arcs in order of ids.
    let computed = graph
        .circulant(options.directed, options.duplicates)
        .filter(|_| options.order == Order::Id && !options.edge_vertices)
        // Chunks have no order that a rule could give.
        .filter(|_| options.layout == Layout::Column)
        .map(|circulant| DirectSource { graph, circulant });
    store(resources, graph, None, computed, options)
}

fn store(
    resources: ImportResources<'_>,
    source: &dyn EdgeSource,
    vertices: Option<&dyn EdgeSource>,
    computed: Option<DirectSource<'_>>,
    options: &ImportOptions,
) -> Result<ImportReport, IngestError> {
    options.check_edge_vertices()?;
    options.check_layout()?;
    let counted = Arc::new(CountedDisk::new(Arc::clone(resources.disk)));
    let disk: Arc<dyn Disk> = Arc::clone(&counted) as Arc<dyn Disk>;
    let fabric = resources.fabric.map(CountedFabric::new);
    let resources = ImportResources {
        disk: &disk,
        fabric: fabric.as_ref().map(|fabric| fabric as &dyn Fabric),
        ..resources
    };
    let comm = ImportCommunicator::new(resources.fabric, resources.stop);
    comm.check_identical_input(source, vertices, options)?;
    let source = &comm.part_of(source);
    let vertices = vertices.map(|vertices| comm.part_of(vertices));
    let vertices = vertices
        .as_ref()
        .map(|vertices| vertices as &dyn EdgeSource);
    let disk = &*disk;
    if let Some(asked) = options.batch_size.filter(|&size| size > Batches::SPAN_MAX) {
        let most = Batches::SPAN_MAX;
        return Err(IngestError::BatchSize { asked, most });
    }
    let exists_already = || {
        IngestError::input(
            &options.output,
            "it exists already; remove it or choose another name (-o)",
        )
    };
    if disk.exists(&options.output)? {
        return Err(exists_already());
    }
    let holds = |vertices: &u64| keys_hold(*vertices, options.exact_batch(*vertices));
    if let Some(vertices) = source.vertices().filter(|all| !holds(all)) {
        return Err(IngestError::TooManyVertices { vertices });
    }
    check_memory(
        resources.budget,
        resources.workers,
        scan::reader_bytes(source, vertices),
        source.weights(),
        vertices.is_some(),
        options,
    )?;
    let parent = options
        .output
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let job = JobIdentity::new(options, &comm, source, vertices);
    let dirs = ImportDirs::open(resources, comm, parent, job, options)?;
    let stored = &options.of_arcs();
    let mut import = ImportContext {
        resources,
        log: dirs.log.as_ref(),
        options: stored,
        directed: options.directed,
        comm,
        source,
        vertices,
        temporary: dirs.temporary.path(),
        staging: &dirs.staging.path,
        report: ImportReport::default(),
        edges_here: 0,
        started: resources.clock.now(),
    };

    let made = import.make(computed, &dirs.staging).and_then(|()| {
        let sent = fabric.as_ref().map_or(0, CountedFabric::bytes_sent);
        import.report.each_rank =
            moved(&comm, [counted.bytes_read(), counted.bytes_written(), sent])?;
        Ok(())
    });
    let mut report = import.report;
    let stays = dirs.keep_checkpoint(&made);
    if let Err(error) = made {
        // The others end before their directories are removed.
        if let Some(fabric) = comm.fabric() {
            fabric.fail(&error.to_string());
        }
        if stays {
            resources.progress.keeps(dirs.temporary.path());
        }
        return Err(error);
    }
    report.peak_memory = resources.budget.peak();
    dirs.end(&options.output, || {
        // Another process may have taken the name meanwhile.
        Ok(disk.exists(&options.output)?.then(exists_already))
    })?;
    Ok(report)
}

/// Returns the bytes that each rank has moved, given the bytes that this rank has moved.
fn moved(comm: &ImportCommunicator<'_>, mine: [u64; 3]) -> Result<Vec<ImportTraffic>, IngestError> {
    let [read, written, sent] = mine.map(|mine| comm.all_gather_u64(mine));
    let each = read?.into_iter().zip(written?).zip(sent?);
    let traffic = |((read, written), sent)| ImportTraffic {
        read,
        written,
        sent,
    };
    Ok(each.map(traffic).collect())
}

/// Refuses what will certainly not fit the disk of `folder`, before hours of work.
///
/// # Errors
/// Fewer bytes are free there than `needed`, or the disk does not say.
pub fn check_space(disk: &dyn Disk, folder: &Path, needed: u64) -> Result<(), IngestError> {
    let free = disk.free_bytes(folder)?;
    if needed > free {
        let folder = folder.to_path_buf();
        return Err(IngestError::TooLittleDisk {
            folder,
            needed,
            free,
        });
    }
    Ok(())
}

impl<'a> ImportContext<'a> {
    /// All steps.
    fn make(
        &mut self,
        computed: Option<DirectSource<'a>>,
        staging: &StagingDir<'_>,
    ) -> Result<(), IngestError> {
        let disk = &**self.resources.disk;
        let found = self.resume(staging)?;
        let mut point = match computed {
            None => found,
            Some(computed) => {
                let arc_stats = self.count_out(computed);
                // A bit says for each arc whether its source has more.
                check_space(disk, &staging.path, arc_stats.arcs_in.arcs() / 8)?;
                ResumePoint::Counted(arc_stats, EdgeStage::Computed(computed))
            }
        };
        let (arc_stats, edges) = loop {
            point = match point {
                ResumePoint::Nothing if self.reads_once() => {
                    let edges = EdgeStage::Unread;
                    break (self.stats_of_known(), edges);
                }
                ResumePoint::Nothing => {
                    // Every arc has a key in a bucket.
                    let arc_bytes = 1 + self.source.weights().bytes() as u64;
                    let edges = self.source.edges().unwrap_or(0);
                    // Each rank has about as many.
                    let here = edges / self.comm.count() as u64;
                    check_space(disk, self.temporary, here.saturating_mul(arc_bytes))?;
                    let found = self.scan()?;
                    self.checkpoint_scan(&found)?;
                    ResumePoint::Scanned(found)
                }
                ResumePoint::Scanned(found) => {
                    let (arc_stats, indexed) = self.index(found)?;
                    self.checkpoint_ids(&arc_stats, &indexed)?;
                    ResumePoint::Counted(arc_stats, EdgeStage::Indexed(indexed))
                }
                ResumePoint::Counted(arc_stats, edges) => break (arc_stats, edges),
            };
        };
        if self.options.layout == Layout::Stream {
            return self.stream(arc_stats, edges, staging);
        }
        let cut = self.cut(&arc_stats)?;
        let mut graph = GraphWriter::create(
            self.resources.disk.clone(),
            self.resources.budget.clone(),
            &staging.path,
            cut.shape.clone(),
        )?;
        if self.log.is_some() {
            graph = graph.keeping();
        }
        let kept = match edges {
            EdgeStage::Computed(computed) => self.compute(computed, &cut, &graph)?,
            EdgeStage::Unread => return Err(IngestError::internal("edges were not read")),
            EdgeStage::Indexed(mut indexed) => {
                let buckets = match indexed.degrees.take() {
                    None => self.distribute(indexed, None, &cut)?,
                    Some(degrees) => self.degree_order(indexed, degrees, &cut, &graph)?,
                };
                self.checkpoint_buckets(&arc_stats, &graph, &buckets)?;
                self.write(&cut, buckets, &graph)?
            }
            EdgeStage::Distributed(order, buckets) => {
                let plan = &cut.plan;
                let counts = plan.buckets() * plan.parts;
                let are_its = buckets.counts.typed::<u64>().len() == counts
                    && buckets.bucket_file.buckets() == plan.buckets();
                if !are_its {
                    return Err(IngestError::damaged(buckets.bucket_file.path(), 0));
                }
                if let Some(order) = order {
                    graph.go_on_with_order(order);
                }
                self.write(&cut, buckets, &graph)?
            }
        };
        self.finish(graph, arc_stats.ids, kept, staging)
    }
}
