//! Writes the out-degrees of a graph of chunks, in order of vertices.

use graphmill_raw::lock;
use graphmill_storage::GrowingLease;

use crate::cell::directory::LEASE_STEP_BYTES;
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::vertex::degree_pages::put_degrees;
use crate::vertex::packed::PAGE_VERTICES;
use crate::vertex::page_index::PageIndex;
use crate::write::shared::WriterState;

/// Bytes of degrees on their way to the disk.
const PART_BYTES: usize = DISK_PAGE_BYTES as usize;

/// Writes the degrees of one side.
pub struct DegreeWriter<'g> {
    shared: &'g WriterState,
    side: FileSide,
    writer: PagedWriter,
    lease: GrowingLease<'g>,
    page: Box<[u64; PAGE_VERTICES as usize]>,
    /// Vertices so far, and the sum of their degrees.
    vertices: u64,
    sum: u64,
    pages: Vec<(u64, u32)>,
    bytes: Vec<u8>,
}

impl<'g> DegreeWriter<'g> {
    /// Bytes of the budget that it takes at most for `vertices` vertices.
    pub fn memory(vertices: u64) -> u64 {
        PagedWriter::memory(PART_BYTES) + vertices.div_ceil(PAGE_VERTICES) * 16 + LEASE_STEP_BYTES
    }
    pub(super) fn new(shared: &'g WriterState, side: FileSide) -> Result<Self, FormatError> {
        let (disk, budget) = (&*shared.disk, &shared.budget);
        let mut writer = PagedWriter::new(disk, budget, shared.graph_id)?;
        let id = FileId::new(side, FileKind::Degrees, 0);
        writer.add(disk, &shared.staging, id, PART_BYTES)?;
        Ok(DegreeWriter {
            shared,
            side,
            writer,
            lease: GrowingLease::new(budget, "where degrees are", LEASE_STEP_BYTES),
            page: Box::new([0; PAGE_VERTICES as usize]),
            vertices: 0,
            sum: 0,
            pages: Vec::new(),
            bytes: Vec::new(),
        })
    }
    /// Appends the degrees of the next vertices.
    ///
    /// # Errors
    /// The disk fails, or the budget has no room.
    pub fn push(&mut self, degrees: &[u64]) -> Result<(), FormatError> {
        for &degree in degrees {
            self.page[(self.vertices % PAGE_VERTICES) as usize] = degree;
            self.sum = self.sum.saturating_add(degree);
            self.vertices += 1;
            if self.vertices.is_multiple_of(PAGE_VERTICES) {
                self.end_page()?;
            }
        }
        Ok(())
    }
    /// Writes the page of the last vertex, unless all of its degrees are 0.
    fn end_page(&mut self) -> Result<(), FormatError> {
        if self.page.iter().any(|&degree| degree > 0) {
            self.bytes.clear();
            put_degrees(&mut self.bytes, &self.page);
            self.lease.take(16)?;
            let number = (self.vertices - 1) / PAGE_VERTICES;
            self.pages.push((number, self.bytes.len() as u32));
            self.writer.append(0, &self.bytes)?;
            self.page.fill(0);
        }
        Ok(())
    }
    /// Ends the file; the graph's writer knows it then.
    ///
    /// # Errors
    /// The vertices are not all, their degrees do not add up to `arcs`, or the disk fails.
    pub fn finish(mut self, arcs: u64) -> Result<(), FormatError> {
        let (sum, vertices) = (self.sum, self.vertices);
        if vertices != self.shared.shape.vertices() || sum != arcs {
            let what = format!("degrees of {vertices} vertices add up to {sum} of {arcs} arcs");
            return Err(FormatError::misuse(what));
        }
        if !vertices.is_multiple_of(PAGE_VERTICES) {
            self.end_page()?;
        }
        self.bytes.clear();
        PageIndex::put(&mut self.bytes, self.writer.position(0), &self.pages);
        self.writer.append(0, &self.bytes)?;
        let root: FileRoot = self.writer.finish()?[0];
        lock(&self.shared.degrees).insert(self.side, root);
        Ok(())
    }
}
