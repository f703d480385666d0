//! Values on their way into a session and out of it: results, files of values, ids of vertices.
//!
//! All ranks make these calls. Rank 0 writes, or hands out rows, while the others send it theirs.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use graphmill_algorithms::{Output, OutputValues};
use graphmill_engine::{ActiveSet, Element, Engine, EngineError, VertexArray, job};
use graphmill_graph::{DISK_PAGE_BYTES, Id, PageCache, StoredGraph, VertexId};
use graphmill_storage::Lease;

use crate::error::Error;
use crate::machine::resources::Machine;
use crate::result::block::{Block, Values};
use crate::result::dataset::PartWriter;
use crate::result::format::ResultFormat;
use crate::result::rows::{ResultRows, bytes_wanted};
use crate::result::values::element_bytes;
use crate::result::write;
use crate::session::Session;
use crate::summary::Summary;
use crate::vertex_file::fill;
use crate::{summary, vertex_ids};

/// A type whose arrays can be handed out with ids: `f32`, `f64`, `u32` or `u64`.
pub trait ResultScalar: Element + sealed::Sealed {
    /// The array as the values of a result.
    #[doc(hidden)]
    fn output(array: VertexArray<Self>) -> OutputValues;
    /// The values of a block of such a result.
    #[doc(hidden)]
    fn of(values: &Values) -> &[Self];
}

mod sealed {
    /// Seals [`ResultScalar`](super::ResultScalar).
    pub trait Sealed {}
}

macro_rules! result_scalars {
    ($($t:ty, $variant:ident;)*) => {$(
        impl sealed::Sealed for $t {}
        impl ResultScalar for $t {
            fn output(array: VertexArray<Self>) -> OutputValues {
                OutputValues::$variant(array)
            }
            fn of(values: &Values) -> &[Self] {
                match values {
                    Values::$variant(values) => values,
                    _ => &[],
                }
            }
        }
    )*};
}
result_scalars! {
    f32, F32;
    f64, F64;
    u32, U32;
    u64, U64;
}

impl Session {
    /// The index of the vertex with an id, as the edges have it: `"libc6"`, `42` or `"42"`.
    ///
    /// # Errors
    /// The graph has no such vertex; its ids cannot be read.
    pub fn index_of(&mut self, id: impl Into<VertexId>) -> Result<u64, Error> {
        let id = id.into();
        let mut reader = self.ids()?;
        let index = vertex_ids::index_of(&self.graph, &mut reader, id.clone())?;
        index.ok_or_else(|| Error::NoVertex { id: id.to_string() })
    }

    /// The id of the vertex with index `index`, less than the number of vertices with ids.
    ///
    /// # Errors
    /// There is no such vertex; the ids cannot be read.
    pub fn id_of(&mut self, index: u64) -> Result<VertexId, Error> {
        let vertices = self.graph.named_vertices();
        if index >= vertices {
            return Err(EngineError::NoSuchIndex { index, vertices }.into());
        }
        let mut reader = self.ids()?;
        Ok(self.graph.id_of(&mut reader, index)?)
    }

    /// A reader of ids.
    pub(crate) fn ids(&mut self) -> Result<PageCache, Error> {
        let budget = self.machine.budget();
        if budget.available() < 2 * DISK_PAGE_BYTES {
            job::release(&mut self.engine);
        }
        Ok(PageCache::new(&self.graph, budget, 1)?)
    }

    /// Sets rows of `array` from a file of values, and returns the set of their vertices.
    ///
    /// The file is CSV or Parquet with the columns `vertex` and a value, such as a result; gzip of CSV; or text with an id and a value in
    /// each line. A row without a value (empty or null) leaves its vertex as it is, as do vertices without a row. Each rank reads the file.
    /// If its ids ascend it is read in one go; else the graph's ids are gone through once for each part of the file that fits a quarter of
    /// the free memory.
    ///
    /// # Errors
    /// The file cannot be read; an id is of no vertex, or comes twice; a value is no `T`: the error names the row. Disk or budget failed.
    pub fn read_values<T: Element + FromStr>(
        &mut self,
        path: &Path,
        array: VertexArray<T>,
    ) -> Result<ActiveSet, Error> {
        fill::fill(self, path, array)
    }

    /// Returns the set of the vertices that a file names.
    ///
    /// The file is as for [`Session::read_values`], or has ids alone: a column `vertex`, or an id in each line.
    ///
    /// # Errors
    /// As for [`Session::read_values`].
    pub fn read_set(&mut self, path: &Path) -> Result<ActiveSet, Error> {
        fill::set(self, path)
    }

    /// Calls `each` with the id and the value of every vertex, in ascending order of ids; on rank 0 alone.
    ///
    /// With checkpoints it ends the passes ([`Session::end_passes`]).
    ///
    /// # Errors
    /// As for [`Session::each_block`].
    pub fn each_value<T: ResultScalar>(
        &mut self,
        array: VertexArray<T>,
        mut each: impl FnMut(Id<'_>, T),
    ) -> Result<(), Error> {
        let output = Output {
            column: "value",
            values: T::output(array),
            nullable: false,
        };
        self.each_block(&output, |block| {
            for (row, value) in T::of(&block.values).iter().enumerate() {
                each(block.ids.get(row), *value);
            }
        })
    }

    /// Hands out the rows of a result, a block at a time in ascending order of ids; on rank 0 alone.
    ///
    /// With checkpoints it ends the passes ([`Session::end_passes`]).
    ///
    /// # Errors
    /// The disk fails, the budget has no room for a batch and a block, or work was to stop.
    pub fn each_block(&mut self, output: &Output, each: impl FnMut(&Block)) -> Result<(), Error> {
        let name = format!("each_block of {}", output.column);
        job::end_calls(&mut self.engine, &name)?;
        match job::rank(&self.engine).0 {
            0 => {
                self.each_served_block(output, None, each)?;
                Ok(job::stop_serving(&self.engine)?)
            }
            _ => Ok(job::serve(&self.engine, 0)?),
        }
    }

    /// As [`Session::each_block`] at rank 0, while the others hand out their rows.
    ///
    /// `ranks` are the places of the vertices in the order of ids; `None` is all.
    pub(crate) fn each_served_block(
        &mut self,
        output: &Output,
        ranks: Option<Range<u64>>,
        mut each: impl FnMut(&Block),
    ) -> Result<(), Error> {
        if let OutputValues::Numbers(row) = output.values {
            each(&Block::of_numbers(row));
            return Ok(());
        }
        let (machine, graph) = (&self.machine, &self.graph);
        let all = 0..graph.batches().len();
        with_rows(&mut self.engine, machine, graph, (output, all), |rows| {
            if let Some(ranks) = ranks {
                rows.narrow(&ranks);
            }
            write::each_block(machine, rows, &mut each)
        })
    }

    /// Writes a result to `path`, whose name gives the format, and returns the bytes of the file.
    ///
    /// Rank 0 writes; the others return 0. Every rank gives the same path. Passes the number of rows written since the last call to `note`.
    /// A resumed run that wrote the file before its checkpoint does not write it again; with another path it is an error.
    ///
    /// # Errors
    /// As for [`Session::each_block`]; the name does not say the format. `path` is then as it was.
    pub fn write(
        &mut self,
        output: &Output,
        path: &Path,
        mut note: impl FnMut(u64),
    ) -> Result<u64, Error> {
        let format = ResultFormat::of(path)?;
        let (machine, graph) = (&self.machine, &self.graph);
        let name = format!("write {} to {}", output.column, path.display());
        job::logged_work(&mut self.engine, &name, |engine| {
            if job::rank(engine).0 > 0 {
                job::serve(engine, 0)?;
                return Ok(0);
            }
            let bytes = write_all(engine, machine, graph, output, (path, format), &mut note)?;
            job::stop_serving(engine)?;
            Ok(bytes)
        })
    }

    /// As [`Session::write`] at rank 0, while the others hand out their rows.
    pub(crate) fn write_served(
        &mut self,
        output: &Output,
        path: &Path,
        mut note: impl FnMut(u64),
    ) -> Result<u64, Error> {
        let (machine, graph) = (&self.machine, &self.graph);
        let to = (path, ResultFormat::of(path)?);
        write_all(&mut self.engine, machine, graph, output, to, &mut note)
    }

    /// Writes a result to the directory `path`, whose name ends with a slash.
    ///
    /// Each rank writes a part with the rows of its own vertices, and passes their number to `note`. Returns the
    /// bytes of all parts. All ranks call it.
    ///
    /// # Errors
    /// As for [`Session::write`]; there is something else at `path`, or a rank is lost.
    pub(crate) fn write_parts(
        &mut self,
        output: &Output,
        path: &Path,
        mut note: impl FnMut(u64),
    ) -> Result<u64, Error> {
        let (machine, graph) = (&self.machine, &self.graph);
        let mut parts = PartWriter::create(machine, path)?;
        let (part, own) = (parts.part(), job::local_batches(&self.engine));
        let written = match output.values {
            // The first part has the row.
            OutputValues::Numbers(row) => {
                let has_row = machine.rank() == 0;
                note(u64::from(has_row));
                write::write_numbers(machine, &part, parts.format, &row, has_row)
            }
            _ => with_rows(&mut self.engine, machine, graph, (output, own), |rows| {
                write::write(machine, &part, parts.format, rows, &mut note)
            }),
        };
        written
            .and_then(|bytes| parts.commit(bytes))
            .inspect_err(|error| parts.give_up(error))
    }

    /// Computes the summary of a result, and returns the leases for its highest rows.
    ///
    /// `sizes` are the sizes of the groups that it names, `count` the number of rows to keep.
    pub(crate) fn summarize(
        &mut self,
        output: &Output,
        sizes: Option<&Output>,
        count: usize,
    ) -> Result<(Summary, Vec<Lease>), Error> {
        make_room(&mut self.engine, &self.machine, &self.graph, output);
        let of = (output, sizes);
        summary::summarize(&self.machine, &self.engine, &self.graph, of, count)
    }

    /// Frees the sizes of the groups of a result, which no one reads any more.
    pub(crate) fn free_sizes(&mut self, sizes: &Output) -> Result<(), Error> {
        match sizes.values {
            OutputValues::U32(sizes) => job::free(&mut self.engine, sizes)?,
            OutputValues::U64(sizes) => job::free(&mut self.engine, sizes)?,
            // The result itself.
            _ => (),
        }
        Ok(())
    }
}

/// Writes all rows of a result to a file, or to standard output.
fn write_all(
    engine: &mut Engine,
    machine: &Machine,
    graph: &Arc<StoredGraph>,
    output: &Output,
    (path, format): (&Path, ResultFormat),
    note: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    if let OutputValues::Numbers(row) = output.values {
        note(1);
        return write::write_numbers(machine, path, format, &row, true);
    }
    let all = 0..graph.batches().len();
    with_rows(engine, machine, graph, (output, all), |rows| {
        write::write(machine, path, format, rows, note)
    })
}

/// Passes the rows of the vertices of some batches to `work`.
///
/// It keeps a run in memory that was asked to stop while its result went out.
fn with_rows<T>(
    engine: &mut Engine,
    machine: &Machine,
    graph: &Arc<StoredGraph>,
    (output, batches): (&Output, Range<usize>),
    work: impl FnOnce(&mut ResultRows<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    make_room(engine, machine, graph, output);
    let done = ResultRows::new(engine, output, graph, machine.budget(), batches)
        .and_then(|mut rows| work(&mut rows));
    if done.as_ref().is_err_and(Error::is_stopped) {
        job::keep_ended(engine)?;
    }
    done
}

/// Frees memory for the rows of a result, if passes use it for cells.
fn make_room(engine: &mut Engine, machine: &Machine, graph: &StoredGraph, output: &Output) {
    let element = element_bytes(&output.values);
    if machine.budget().available() < bytes_wanted(&graph.measure(), element) {
        job::release(engine);
    }
}
