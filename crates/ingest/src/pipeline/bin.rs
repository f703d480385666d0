//! Steps 3 to 5 of an import in the stream layout, *bin*: every arc goes to the open chunk of its source batch.
//!
//! 1. The size of a chunk follows from the memory, and is the same on all ranks.
//! 2. The edges are read, for the first time if their ids are known to be indices. Full chunks go to a rank that is drawn
//!    at random (Chaos, section 6.1), which appends them to its file.
//! 3. The first rank writes the out-degrees that all have counted. Where memory was short, each counts those in its file.

use std::sync::atomic::AtomicU64;

use graphmill_graph::{
    ChunkFile, ChunkPlace, ChunkSet, ChunkSetReader, ChunkShape, ChunkWriter, CountedDegrees,
    FileSide, GraphSpec, GraphWriter, IdsSummary, Layout,
};
use graphmill_storage::SplitMix64;

use super::assign_ids::ArcStats;
use super::bin_plan::{BinDemand, BinSizes};
use super::context::ImportContext;
use super::resume::EdgeStage;
use crate::build::bin_arcs::{ArcBinner, BinPlan, ChunkScatter};
use crate::build::sort_bucket::ArcCounts;
use crate::checkpoint::staging::StagingDir;
use crate::error::IngestError;
use crate::external::parallel;
use crate::external::reread::EdgeReplayReader;
use crate::external::shuffle::BucketShuffle;
use crate::ids::index_map::{IdToIndex, IndexLookup};
use crate::layout::batch_cut::RangeCounts;
use crate::progress::Meter;
use crate::source::{Ids, PieceReader, PieceReport};

/// Returns the bins of one worker.
fn binner<'s>(
    plan: &'s BinPlan,
    indices: IndexLookup<'s>,
    meter: &'s Meter<'s>,
    (writers, routes): (&'s [ChunkWriter], &'s [ChunkScatter<'s>]),
) -> Result<ArcBinner<'s>, IngestError> {
    let mut bins = std::iter::zip(writers, routes).map(|(writer, route)| writer.bins(*route));
    let forward = bins.next().transpose()?;
    Ok(ArcBinner {
        plan,
        indices,
        meter,
        forward: forward.ok_or_else(|| IngestError::internal("no side to write"))?,
        reverse: bins.next().transpose()?,
        edges: 0,
        loops: 0,
    })
}

impl<'a> ImportContext<'a> {
    /// True if the edges are read once: their ids are indices, and their numbers do not matter.
    pub(super) fn reads_once(&self) -> bool {
        let is_known = self.source.vertices().is_some() && self.source.ids() == Ids::Integer;
        let is_stream = self.options.layout == Layout::Stream;
        !self.source.is_stream()
            && is_stream
            && is_known
            && self.vertices.is_none()
            && !self.options.edge_vertices
    }

    /// Returns what steps 1 and 2 would say of a source whose ids are indices.
    pub(super) fn stats_of_known(&mut self) -> ArcStats {
        let vertices = self.source.vertices().unwrap_or(0);
        self.report.vertices = vertices;
        ArcStats {
            ids: Some(IdsSummary::dense(vertices)),
            vertices,
            arcs_in: RangeCounts::new(vec![0], Vec::new()),
            arcs_out: None,
        }
    }

    /// Steps 3 to 6 in the stream layout.
    pub(super) fn stream(
        &mut self,
        arc_stats: ArcStats,
        edges: EdgeStage<'a>,
        staging: &StagingDir<'_>,
    ) -> Result<(), IngestError> {
        let (options, weights) = (self.options, self.source.weights());
        let vertices = arc_stats.vertices;
        let tables = vertices / options.stream_batch(vertices) * super::cut::BATCH_BYTES;
        let _tables = (self.resources.budget).lease("the table of batches", tables)?;
        let batches = options.stream_batches(vertices)?;
        self.report.batches = batches.len() as u64;
        let rank = self.comm.rank();
        let sides = [FileSide::Forward, FileSide::Reverse];
        let sides = &sides[..1 + usize::from(options.turns_round())];
        let shape = |side: &FileSide| ChunkShape {
            batches: batches.clone(),
            edge: weights,
            chunk_bytes: options.chunk_sizes().0,
            side: *side,
            file: rank as u32,
        };
        let mut shapes: Vec<ChunkShape> = sides.iter().map(shape).collect();
        let reader_bytes = match &edges {
            EdgeStage::Indexed(indexed) => indexed.source.reader_bytes(),
            _ => self.source.reader_bytes(),
        };
        let sizes = self.bin_sizes(&shapes, reader_bytes)?;
        for shape in &mut shapes {
            shape.chunk_bytes = sizes.chunk_bytes;
        }
        let graph = GraphWriter::create(
            self.resources.disk.clone(),
            self.resources.budget.clone(),
            &staging.path,
            GraphSpec {
                batches: batches.clone(),
                edge: weights,
                directed: options.directed,
                strip_edges_max: 0,
                csr_ratio: 0,
                chunk_bytes: Some(sizes.chunk_bytes),
                files: Vec::new(),
                reverse_files: options.turns_round().then(Vec::new),
            },
        )?;
        let of_edges = options.edge_vertices.then_some(self.report.edges);
        let plan = BinPlan {
            directed: options.directed,
            self_loops: options.self_loops,
            vertices,
            first_edge_vertex: of_edges.map(|edges| vertices - edges),
        };
        let writers = self.bin(&plan, edges, (&shapes, sizes), &graph)?;
        let mut arcs = 0;
        // The open chunks of all sides are freed first.
        let files: Vec<_> = writers.into_iter().map(ChunkWriter::finish).collect();
        for (shape, file) in shapes.iter().zip(files) {
            let (file, degrees) = file?;
            let of_side = self.comm.sum(file.arcs())?;
            if shape.side == FileSide::Forward {
                arcs = of_side;
            }
            self.write_degrees(&graph, shape, (&file, &degrees), of_side)?;
            drop(degrees);
            self.gather_chunks(&graph, shape, file)?;
        }
        self.done("bin");
        let kept = ArcCounts {
            arcs,
            ..ArcCounts::default()
        };
        self.finish(graph, arc_stats.ids, kept, staging)
    }

    /// Returns how memory is shared out: the longest chunks and the most workers.
    fn bin_sizes(&self, shapes: &[ChunkShape], reader_bytes: u64) -> Result<BinSizes, IngestError> {
        let budget = self.resources.budget;
        let demand = BinDemand {
            shapes,
            lanes: self.lanes(),
            reader_bytes,
            ranks: self.comm.count(),
        };
        let sizes = demand.sizes(self.options, budget.available())?;
        let sizes = sizes
            .map_err(|needed| IngestError::too_little_memory("chunks of arcs", needed, budget))?;
        Ok(BinSizes {
            chunk_bytes: self.comm.all_reduce_min(sizes.chunk_bytes as u64)? as usize,
            counts_degrees: self.comm.all_true(sizes.counts_degrees)?,
            lanes: sizes.lanes,
        })
    }

    /// Where this rank makes its files of chunks.
    fn place(&self, graph: &GraphWriter) -> ChunkPlace<'a> {
        ChunkPlace {
            disk: self.resources.disk,
            budget: self.resources.budget,
            folder: self.staging,
            graph_id: graph.graph_id(),
        }
    }

    /// Reads the edges and fills the chunks of all sides.
    fn bin(
        &mut self,
        plan: &BinPlan,
        edges: EdgeStage<'a>,
        (shapes, sizes): (&[ChunkShape], BinSizes),
        graph: &GraphWriter,
    ) -> Result<Vec<ChunkWriter>, IngestError> {
        let (resources, comm) = (self.resources, self.comm);
        let place = self.place(graph);
        let writers = shapes.iter().map(|shape| {
            // An import that was killed may have left some of it.
            ChunkFile::remove(&place, shape)?;
            let writer = ChunkWriter::create(&place, shape.clone())?;
            match sizes.counts_degrees {
                true => Ok(writer.counting()?),
                false => Ok(writer),
            }
        });
        let writers: Vec<ChunkWriter> = writers.collect::<Result<_, IngestError>>()?;
        let parcel_bytes = writers.first().map_or(0, ChunkWriter::sealed_bytes_max);
        let shuffle = BucketShuffle::new(&comm, resources.budget, Vec::new(), parcel_bytes)?;
        let drawn = AtomicU64::new(SplitMix64::new(comm.rank() as u64).next_u64());
        let routes: Vec<ChunkScatter<'_>> = writers
            .iter()
            .map(|writer| ChunkScatter {
                shuffle: shuffle.as_ref(),
                ranks: comm.count(),
                rank: comm.rank(),
                side: writer.side(),
                drawn: &drawn,
            })
            .collect();
        let fill = || self.fill_chunks(plan, edges, (&writers, &routes), sizes.lanes);
        let report = match &shuffle {
            None => fill()?,
            Some(shuffle) => shuffle.while_taking(
                |_, label, record| {
                    let (side, chunk) = ChunkScatter::decode(label as u64, record);
                    let writer = writers.iter().find(|writer| writer.side() == side);
                    let writer = writer.ok_or_else(|| IngestError::internal("another side"))?;
                    Ok(writer.store(chunk)?)
                },
                fill,
            )?,
        };
        drop(shuffle);
        if let Some((mut read, mut loops)) = report {
            self.edges_here = read.edges;
            self.comm.sum_read(&mut read, &mut loops)?;
            self.report_read(read, loops);
        }
        Ok(writers)
    }

    /// Bins all edges; returns the report of the reading, if it was the first, and the loops.
    fn fill_chunks<'s>(
        &self,
        plan: &'s BinPlan,
        edges: EdgeStage<'a>,
        (writers, routes): (&'s [ChunkWriter], &'s [ChunkScatter<'s>]),
        lanes: u64,
    ) -> Result<Option<(PieceReport, u64)>, IngestError> {
        let (resources, sides) = (self.resources, (writers, routes));
        let result = match edges {
            EdgeStage::Indexed(indexed) => {
                let meter = Meter::new(resources.progress, "bin", self.edges_here);
                let indices = indexed.indices.look_up();
                let make = || {
                    let reader = indexed.source.reader(resources.disk, resources.budget)?;
                    Ok((reader, binner(plan, indices, &meter, sides)?))
                };
                let work = |(reader, sink): &mut (EdgeReplayReader<'_>, ArcBinner<'_>), unit| {
                    indexed.source.read(unit, reader, resources.stop, sink)
                };
                let units = indexed.source.units();
                let states = parallel::run(resources, lanes as usize, units, make, work)?;
                let mut edges = 0;
                for (reader, sink) in states {
                    drop(reader);
                    edges += sink.finish()?.0;
                }
                if edges != self.edges_here {
                    return Err(IngestError::input_changed());
                }
                indexed.source.check_unchanged(&**resources.disk)?;
                None
            }
            _ => {
                let source = self.source;
                let meter = Meter::new(resources.progress, "bin", source.amount());
                let make = || {
                    let reader = source.reader(resources.disk, resources.budget)?;
                    let sink = binner(plan, IdToIndex::Same.look_up(), &meter, sides)?;
                    Ok((reader, sink, PieceReport::default()))
                };
                let work = |(reader, sink, report): &mut (
                    Box<dyn PieceReader + '_>,
                    ArcBinner<'_>,
                    PieceReport,
                ),
                            piece| {
                    report.add(reader.read(piece, resources.stop, sink)?);
                    Ok(())
                };
                let states = parallel::run(resources, lanes as usize, source.pieces(), make, work)?;
                let (mut all, mut loops) = (PieceReport::default(), 0);
                for (reader, sink, report) in states {
                    drop(reader);
                    all.add(report);
                    loops += sink.finish()?.1;
                }
                source.check_unchanged(&**resources.disk)?;
                Some((all, loops))
            }
        };
        for (writer, route) in writers.iter().zip(routes) {
            writer.flush(route)?;
        }
        Ok(result)
    }

    /// Adds up the out-degrees of all ranks, which the first rank writes.
    fn write_degrees(
        &self,
        graph: &GraphWriter,
        shape: &ChunkShape,
        (file, counted): (&ChunkFile, &CountedDegrees),
        arcs: u64,
    ) -> Result<(), IngestError> {
        let (disk, budget) = (self.resources.disk, self.resources.budget);
        let are_whole = self.comm.all_true(counted.are_whole())?;
        let place = self.place(graph);
        let batches = &shape.batches;
        let set = (!are_whole).then(|| ChunkSet::of_file(&place, shape, file));
        let set = set.transpose()?;
        let reader = set.as_ref();
        let reader = reader.map(|set| ChunkSetReader::new(&**disk, budget, (set, batches), false));
        let mut reader = reader.transpose()?;
        let writer = (self.comm.is_first()).then(|| graph.degrees(shape.side));
        let mut writer = writer.transpose()?;
        let _lease = budget.lease("out-degrees of a batch", 8 * batches.widest())?;
        let mut degrees = Vec::new();
        for batch in 0..batches.len() {
            IngestError::check_stop(self.resources.stop)?;
            degrees.clear();
            degrees.resize(batches.span(batch) as usize, 0u64);
            match (&mut reader, &set) {
                (Some(reader), Some(set)) => {
                    for chunk in set.of_batch(batch) {
                        let (view, _) = reader.chunk(chunk)?;
                        for run in view.runs() {
                            view.for_each(&run, |source, _, _| degrees[source as usize] += 1);
                        }
                    }
                }
                _ => counted.add(batch, &mut degrees),
            }
            self.comm.sum_elementwise(&mut degrees)?;
            if let Some(writer) = &mut writer {
                writer.push(&degrees)?;
            }
        }
        writer.map_or(Ok(()), |writer| Ok(writer.finish(arcs)?))
    }

    /// Tells the first rank which chunks the files of the others have.
    fn gather_chunks(
        &self,
        graph: &GraphWriter,
        shape: &ChunkShape,
        file: ChunkFile,
    ) -> Result<(), IngestError> {
        let mut came: Vec<Vec<u8>> = vec![Vec::new(); self.comm.count()];
        self.comm.send_to_root(
            |send| send(&file.encode()),
            |from, bytes| {
                came[from].extend_from_slice(bytes);
                Ok(())
            },
        )?;
        if self.comm.is_first() {
            graph.take_chunks(file);
            for other in &came[1..] {
                graph.take_chunks(ChunkFile::decode(other, shape, self.resources.budget)?);
            }
        }
        Ok(())
    }
}
