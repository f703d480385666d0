//! The directory of a set of columns: which cells there are and where their bytes lie.
//!
//! Invariants: the positions of a parsed directory lie within the payloads it gives for the files; its cells have no more
//! edges than their blocks can hold, and all together fewer than 2^60.

use std::ops::Range;

use graphmill_storage::{GrowingLease, Lease, MemoryBudget};

use crate::cell::source_index::{BITMAP_LINES_MAX, bitmap_bytes, block_list_bytes};
use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{FileKind, FileRoot};
use crate::spec::EdgeKind;

/// The edges from one source batch into one destination batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    data_start: u64,
    data_bytes: u64,
    block_list_start: u64,
    bitmap_start: u64,
    bitmap_lines: u32,
    source_batch: u32,
    edges: u64,
    first_edge: u64,
}

impl Cell {
    /// Number of the source batch.
    #[inline]
    pub fn source_batch(&self) -> usize {
        self.source_batch as usize
    }
    /// Number of edges, at least 1.
    #[inline]
    pub fn edges(&self) -> u64 {
        self.edges
    }
    /// Number of the first edge within the column file.
    #[inline]
    pub fn first_edge(&self) -> u64 {
        self.first_edge
    }
    /// Bytes of the blocks.
    #[inline]
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }
    /// Where in the data file the blocks are.
    #[inline]
    pub fn data(&self) -> Range<u64> {
        self.data_start..self.data_start + self.data_bytes
    }
    /// Bytes of the list of blocks; 0 of a cell of few edges.
    #[inline]
    pub fn block_list_bytes(&self) -> u64 {
        block_list_bytes(self.edges)
    }
    /// Where in the index file the list of blocks is.
    #[inline]
    pub fn block_list(&self) -> Range<u64> {
        self.block_list_start..self.block_list_start + self.block_list_bytes()
    }
    /// Bytes of the bitmap of sources; 0 where there is none.
    #[inline]
    pub fn bitmap_bytes(&self) -> u64 {
        bitmap_bytes(self.bitmap_lines.into())
    }
    /// Where in the file of bitmaps the bitmap is.
    #[inline]
    pub fn bitmap(&self) -> Range<u64> {
        self.bitmap_start..self.bitmap_start + self.bitmap_bytes()
    }
    /// Where in the weights file the weights are, for weights of `width` bytes.
    #[inline]
    pub(crate) fn weights(&self, width: u64) -> Range<u64> {
        self.first_edge * width..(self.first_edge + self.edges) * width
    }
}

/// All cells of one destination batch, in order of source batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    cells: Box<[Cell]>,
    strips: Box<[Range<usize>]>,
    edges: u64,
    file: u32,
}

impl Column {
    /// The cells that have edges, in ascending order of source batch.
    #[inline]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
    /// Returns the runs of cells (positions in [`cells`](Self::cells)) that are each folded in one go.
    ///
    /// Together the runs hold all cells.
    #[inline]
    pub fn strips(&self) -> &[Range<usize>] {
        &self.strips
    }
    /// Returns the source batches that a strip covers, of `batches` batches in all.
    ///
    /// They include batches whose cells are empty. A column without cells has one strip.
    pub fn strip_sources(&self, strip: usize, batches: usize) -> Range<usize> {
        let first = |strip: usize| {
            let cells = self.strips.get(strip)?;
            Some(self.cells.get(cells.start)?.source_batch())
        };
        let from = first(strip).filter(|_| strip > 0).unwrap_or(0);
        from..first(strip + 1).unwrap_or(batches)
    }
    /// The cells of a strip.
    pub fn strip_cells(&self, strip: usize) -> &[Cell] {
        let cells = self.strips.get(strip).cloned();
        cells.map_or(&[], |cells| &self.cells[cells])
    }
    /// Number of edges.
    #[inline]
    pub fn edges(&self) -> u64 {
        self.edges
    }
    /// Number of the column's files.
    #[inline]
    pub fn file(&self) -> u32 {
        self.file
    }
}

/// What the writer notes of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellSizes {
    pub(crate) destination_batch: u32,
    pub(crate) source_batch: u32,
    pub(crate) edges: u64,
    pub(crate) data_bytes: u64,
    pub(crate) bitmap_lines: u32,
}

/// The roots of the files of a column file, as [`FileKind::OF_COLUMNS`] has them.
pub(crate) type FileRoots = [FileRoot; FileKind::OF_COLUMNS.len()];

/// Appends one column file: its batches, its roots and its cells, which are in order.
pub(crate) fn put_file(
    out: &mut Vec<u8>,
    batches: &Range<usize>,
    roots: &FileRoots,
    cells: &[CellSizes],
) {
    varint::put(out, batches.len() as u64);
    let payloads = roots.iter().map(|root| root.payload);
    let checksums = roots.iter().map(|root| u64::from(root.checksum));
    (payloads.chain(checksums)).for_each(|number| varint::put(out, number));
    let mut rest = cells;
    for batch in batches.clone() {
        let count = rest.partition_point(|cell| cell.destination_batch as usize <= batch);
        let (now, later) = rest.split_at(count);
        rest = later;
        varint::put(out, count as u64);
        let mut next = 0;
        for cell in now {
            varint::put(out, u64::from(cell.source_batch) - next);
            next = u64::from(cell.source_batch) + 1;
            varint::put(out, cell.edges - 1);
            varint::put(out, cell.data_bytes);
            varint::put(out, cell.bitmap_lines.into());
        }
    }
}

/// Bytes by which the memory of tables grows.
pub(crate) const LEASE_STEP_BYTES: u64 = 32 << 10;

/// Upper bounds on a directory's contents, from its length and the graph's description.
#[derive(Default)]
pub(crate) struct DirectoryBounds {
    pub(crate) cells: u64,
    /// Of all columns together, and of one.
    pub(crate) strips: u64,
    pub(crate) strips_of_column: u64,
    /// Of the budget, when it is parsed.
    pub(crate) bytes: u64,
}

/// Bytes of a directory that a cell takes at least.
const CELL_BYTES_MIN: u64 = 4;

impl DirectoryBounds {
    pub(crate) fn of(payload: u64, batches: u64, arcs: u64, strip_edges_max: u64) -> Self {
        let cells = (payload / CELL_BYTES_MIN).min(batches.saturating_mul(batches));
        // Of two strips in a row, the second begins where the first would have too many edges with one cell more.
        let cuts = arcs.saturating_mul(2) / strip_edges_max.max(1);
        let strips = cells.min(batches.saturating_add(cuts));
        let bytes = batches * (size_of::<Column>() + size_of::<FileRoots>()) as u64
            + cells.saturating_mul(size_of::<Cell>() as u64)
            + strips.saturating_mul(size_of::<Range<usize>>() as u64)
            + LEASE_STEP_BYTES;
        DirectoryBounds {
            cells,
            strips,
            strips_of_column: batches.min(cuts.saturating_add(1)),
            bytes,
        }
    }
}

/// A parsed directory.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) columns: Vec<Column>,
    pub(crate) files: Vec<FileRoots>,
    pub(crate) leases: Vec<Lease>,
}

/// Edges that a byte of blocks holds at most.
///
/// 4096 edges of one source to one vertex take 16 bytes of header, 512 of bitmap and 8 of zeros.
const EDGES_OF_BYTE_MAX: u64 = 8;
/// Bytes of all files of a kind at most.
const PAYLOADS_MAX: u64 = 1 << 56;

/// Parses a directory of `batches` batches. An error says at which byte what does not fit.
pub(crate) fn parse(
    bytes: &[u8],
    (batches, edge, strip_edges_max): (usize, EdgeKind, u64),
    budget: &MemoryBudget,
    corrupt: &dyn Fn(u64, &'static str) -> FormatError,
) -> Result<Directory, FormatError> {
    let at = 0;
    let mut reader = DirectoryReader { bytes, at, corrupt };
    let mut lease = GrowingLease::new(budget, "the directory of cells", LEASE_STEP_BYTES);
    let mut take = |bytes: usize| lease.take(bytes as u64);
    let width = edge.bytes() as u64;
    let count = reader.number_to("more files than batches", batches as u64)?;
    let mut files = Vec::new();
    let mut data_bytes_of_files = 0;
    let mut columns: Vec<Column> = Vec::new();
    take(batches * size_of::<Column>())?;
    columns.reserve_exact(batches);
    for file in 0..count {
        take(size_of::<FileRoots>())?;
        let left = (batches - columns.len()) as u64;
        let of_file = reader.number_to("more batches than the graph has", left)?;
        let mut roots = FileRoots::default();
        for root in &mut roots {
            // A payload near 2^64 would overflow the sums computed from it; no disk holds one.
            root.payload = reader.number_to("a file larger than any disk", PAYLOADS_MAX)?;
        }
        data_bytes_of_files += roots[0].payload;
        if data_bytes_of_files > PAYLOADS_MAX {
            return Err(reader.fault("files larger than any disk"));
        }
        for root in &mut roots {
            root.checksum =
                reader.number_to("a checksum of more than 32 bits", u64::from(u32::MAX))? as u32;
        }
        let mut next = CellStarts::default();
        for _ in 0..of_file {
            let cells_max = (bytes.len() - reader.at) as u64 / CELL_BYTES_MIN;
            let of_column =
                reader.number_to("more cells than the directory holds", cells_max)? as usize;
            take(of_column * size_of::<Cell>())?;
            let first_edge = next.edge;
            let cells = reader.cells(of_column, batches as u64, &roots, &mut next)?;
            let strips = strips(&cells, strip_edges_max);
            take(strips.len() * size_of::<Range<usize>>())?;
            columns.push(Column {
                cells: cells.into(),
                strips: strips.into(),
                edges: next.edge - first_edge,
                file: file as u32,
            });
        }
        let payloads = [next.data, next.block_list, next.bitmap, next.edge * width];
        if roots.map(|root| root.payload) != payloads {
            return Err(reader.fault("cells do not add up to their file"));
        }
        files.push(roots);
    }
    if columns.len() != batches || reader.at != bytes.len() {
        return Err(reader.fault("the directory does not end with the last batch"));
    }
    Ok(Directory {
        columns,
        files,
        leases: lease.into_leases(),
    })
}

/// Where the next cell of a file begins: bytes of each kind, and edges.
#[derive(Default)]
struct CellStarts {
    data: u64,
    block_list: u64,
    bitmap: u64,
    edge: u64,
}

/// Cuts a column into strips. Source: docs/reference/file-format.md, "directory".
fn strips(cells: &[Cell], edges_max: u64) -> Vec<Range<usize>> {
    let mut strips = Vec::new();
    let (mut from, mut edges) = (0, 0);
    for (i, cell) in cells.iter().enumerate() {
        if i > from && edges + cell.edges > edges_max {
            strips.push(from..i);
            (from, edges) = (i, 0);
        }
        edges += cell.edges;
    }
    if from < cells.len() {
        strips.push(from..cells.len());
    }
    strips.shrink_to_fit();
    strips
}

struct DirectoryReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The error for what does not fit at a byte.
    corrupt: &'a dyn Fn(u64, &'static str) -> FormatError,
}

impl DirectoryReader<'_> {
    fn fault(&self, what: &'static str) -> FormatError {
        (self.corrupt)(self.at as u64, what)
    }
    /// Reads the cells of a column, whose index must fit the file.
    fn cells(
        &mut self,
        count: usize,
        batches: u64,
        roots: &FileRoots,
        start: &mut CellStarts,
    ) -> Result<Vec<Cell>, FormatError> {
        let mut cells = Vec::with_capacity(count);
        let mut next = 0u64;
        for _ in 0..count {
            let source_batch =
                next + self.number_to("a source batch the graph has not", batches)?;
            if source_batch >= batches {
                return Err(self.fault("a source batch the graph has not"));
            }
            next = source_batch + 1;
            let edges = self.number_to("a cell larger than its file", u64::MAX - 1)? + 1;
            let data_bytes =
                self.number_to("a cell larger than its file", roots[0].payload - start.data)?;
            if edges > data_bytes * EDGES_OF_BYTE_MAX {
                return Err(self.fault("more edges than a cell's blocks hold"));
            }
            let lines = self.number_to("a bitmap larger than a batch", BITMAP_LINES_MAX)?;
            let cell = Cell {
                data_start: start.data,
                data_bytes,
                block_list_start: start.block_list,
                bitmap_start: start.bitmap,
                bitmap_lines: lines as u32,
                edges,
                first_edge: start.edge,
                source_batch: source_batch as u32,
            };
            start.data += data_bytes;
            start.block_list += cell.block_list_bytes();
            start.bitmap += cell.bitmap_bytes();
            start.edge += edges;
            if start.block_list > roots[1].payload || start.bitmap > roots[2].payload {
                return Err(self.fault("an index larger than its file"));
            }
            cells.push(cell);
        }
        Ok(cells)
    }
    fn number_to(&mut self, what: &'static str, max: u64) -> Result<u64, FormatError> {
        let number = varint::get(self.bytes, &mut self.at);
        let number = number.ok_or_else(|| self.fault("a number is cut off"))?;
        (number <= max)
            .then_some(number)
            .ok_or_else(|| self.fault(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::file::page::malformed;

    fn parse(
        bytes: &[u8],
        batches: usize,
        edge: EdgeKind,
        strip_edges_max: u64,
        budget: &MemoryBudget,
    ) -> Result<Directory, FormatError> {
        let corrupt = |offset: u64, what: &str| malformed("directory".into(), offset, what);
        super::parse(bytes, (batches, edge, strip_edges_max), budget, &corrupt)
    }

    fn sizes(destination_batch: u32, source_batch: u32, edges: u64) -> CellSizes {
        CellSizes {
            destination_batch,
            source_batch,
            edges,
            data_bytes: 20 * edges,
            bitmap_lines: 3,
        }
    }

    fn example() -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, 2);
        let roots = |edges: u64, cells: u64| {
            [20 * edges, 0, 3 * 64 * cells, 4 * edges].map(|payload| FileRoot {
                payload,
                checksum: 0xdead_beef,
            })
        };
        let first = [
            sizes(0, 1, 10),
            sizes(0, 2, 5),
            sizes(0, 3, 30),
            sizes(2, 0, 1),
        ];
        put_file(&mut bytes, &(0..3), &roots(46, 4), &first);
        put_file(&mut bytes, &(3..4), &roots(7, 1), &[sizes(3, 3, 7)]);
        bytes
    }

    #[test]
    fn directory_round_trips_positions_and_strips() {
        let budget = MemoryBudget::new(1 << 20);
        let directory = parse(&example(), 4, EdgeKind::F32, 15, &budget).unwrap();
        let column = &directory.columns[0];
        assert_eq!((column.edges(), column.strips()), (45, &[0..2, 2..3][..]));
        assert_eq!(column.cells()[2].data(), 300..900);
        assert_eq!(column.cells()[2].block_list(), 0..0);
        assert_eq!(column.cells()[2].bitmap(), 6 * 64..9 * 64);
        assert_eq!(column.cells()[2].weights(4), 60..180);
        assert!(
            directory.columns[1].cells().is_empty() && directory.columns[1].strips().is_empty()
        );
        assert_eq!(directory.columns[2].cells()[0].first_edge(), 45);
        assert_eq!(
            (
                directory.columns[3].file(),
                directory.columns[3].cells()[0].data()
            ),
            (1, 0..140)
        );
        assert!(budget.available() < budget.total());
        drop(directory);
        assert_eq!(budget.available(), budget.total());
    }

    #[test]
    fn directory_damage_is_refused() {
        let budget = MemoryBudget::new(1 << 20);
        let good = example();
        for cut in 0..good.len() {
            assert!(
                parse(&good[..cut], 4, EdgeKind::F32, 15, &budget).is_err(),
                "cut at {cut}"
            );
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                // Changes of a checksum or a source batch still parse; nothing may panic or overflow.
                let _ = parse(&bad, 4, EdgeKind::F32, 15, &budget);
            }
        }
        for edges in [1 << 8, 1 << 57, u64::MAX] {
            // Without weights only the blocks say how many edges there can be.
            let mut bad = Vec::new();
            varint::put(&mut bad, 1);
            let cell = CellSizes {
                data_bytes: 31,
                ..sizes(0, 0, 1)
            };
            let roots = [31, 0, 3 * 64, 0].map(|payload| FileRoot {
                payload,
                checksum: 0,
            });
            put_file(&mut bad, &(0..1), &roots, &[CellSizes { edges, ..cell }]);
            let parsed = parse(&bad, 1, EdgeKind::None, 15, &budget);
            assert!(
                matches!(parsed, Err(FormatError::Malformed { .. })),
                "{edges}"
            );
        }
        assert!(parse(&good, 5, EdgeKind::F32, 15, &budget).is_err());
        assert!(parse(&good, 3, EdgeKind::F32, 15, &budget).is_err());
        assert!(parse(&good, 4, EdgeKind::F64, 15, &budget).is_err());
        let small = MemoryBudget::new(100);
        assert!(matches!(
            parse(&good, 4, EdgeKind::F32, 15, &small),
            Err(FormatError::Budget(_))
        ));
    }
}
