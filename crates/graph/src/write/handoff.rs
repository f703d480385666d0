//! What the writers of one graph on several ranks tell the one that finishes it: the column files that each has written.
//!
//! ```text
//! file    side: u8 | number: u64 | roots: 4 of payload: u64, checksum: u64 | weights: least, greatest: f64, NaN without | cells: u64
//! cell    destination batch, source batch, edges, bytes of data, lines of the bitmap, bytes of the spool, checksum of the spool: u64 each
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_raw::lock;

use crate::cell::directory::CellSizes;
use crate::error::FormatError;
use crate::file::page::{FileId, FileKind, FileRoot, FileSide};
use crate::vertex::order::ORDER;
use crate::weight_range::WeightRange;
use crate::write::graph_writer::GraphWriter;
use crate::write::shared::{CellMeta, ColumnFileManifest, SPOOL, WriterState};

const FILE_BYTES: usize = 1 + 8 * 12;
const CELL_BYTES: usize = 8 * 7;
/// Cells that one message carries.
const CELLS: usize = 1 << 10;

impl GraphWriter {
    /// Encodes all column files that were written here, in parts of any length, and passes them to `say`.
    ///
    /// [`ManifestDecoder::take`] decodes them at the writer that finishes the graph in the same directory. This writer
    /// owns the files: drop it after the other has finished.
    ///
    /// # Errors
    /// `say` fails.
    pub fn tell<E>(&self, mut say: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let done = lock(&self.shared.done);
        (done.iter()).try_for_each(|(id, file)| file.tell(*id, &mut say))
    }

    /// Encodes one file, if it is complete.
    ///
    /// # Errors
    /// `say` fails.
    pub fn tell_of<E>(
        &self,
        side: FileSide,
        number: usize,
        mut say: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let done = lock(&self.shared.done);
        match done.get(&(side, number)) {
            Some(file) => file.tell((side, number), &mut say),
            None => Ok(()),
        }
    }

    /// Whether a column file is complete.
    pub fn has(&self, side: FileSide, number: usize) -> bool {
        lock(&self.shared.done).contains_key(&(side, number))
    }

    /// The files that a column file consists of, its temporary one too.
    pub fn paths_of(&self, side: FileSide, number: usize) -> Vec<PathBuf> {
        let shared = &self.shared;
        let kinds = FileKind::of_columns(shared.shape.edge).iter();
        let paths = kinds.map(|kind| FileId::new(side, *kind, number as u32).path(&shared.staging));
        paths.chain([shared.spool_path(side, number)]).collect()
    }

    /// What has to be known of the order of the vertices, if it was written: its length and its checksum.
    pub fn order_made(&self) -> Option<[u64; 2]> {
        lock(&self.shared.order).map(|root| [root.payload, root.checksum.into()])
    }

    /// The file of the order of the vertices.
    pub fn order_path(&self) -> PathBuf {
        ORDER.path(&self.shared.staging)
    }

    /// Resumes with the order that another writer [made](Self::order_made).
    pub fn go_on_with_order(&self, made: [u64; 2]) {
        let (payload, checksum) = (made[0], made[1] as u32);
        *lock(&self.shared.order) = Some(FileRoot { payload, checksum });
    }

    /// Returns the names of the temporary files of local column files that finishing the graph reads.
    pub fn spools(&self) -> Vec<String> {
        let name = |(side, number): &(FileSide, usize)| {
            let id = FileId::new(*side, FileKind::Data, *number as u32);
            let path = Path::new(&id.to_string()).with_extension(SPOOL);
            path.to_string_lossy().into_owned()
        };
        lock(&self.shared.done).keys().map(name).collect()
    }

    /// Takes in what another writer of the same graph tells.
    pub fn listen(&self) -> ManifestDecoder {
        ManifestDecoder {
            shared: Arc::clone(&self.shared),
            left: Vec::new(),
            file: None,
        }
    }
}

impl ColumnFileManifest {
    /// Tells of it, in parts of any length.
    fn tell<E>(
        &self,
        (side, number): (FileSide, usize),
        say: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut said = vec![side as u8];
        let mut put = |number: u64| said.extend(number.to_le_bytes());
        put(number as u64);
        for root in self.roots {
            put(root.payload);
            put(root.checksum.into());
        }
        let ends = (self.weights).map_or([f64::NAN; 2], |range| [range.least, range.greatest]);
        ends.into_iter().for_each(|end| put(end.to_bits()));
        put(self.cells.len() as u64);
        say(&said)?;
        for cells in self.cells.chunks(CELLS) {
            said.clear();
            for cell in cells {
                let sizes = cell.sizes;
                let fields = [
                    sizes.destination_batch.into(),
                    sizes.source_batch.into(),
                    sizes.edges,
                    sizes.data_bytes,
                    sizes.bitmap_lines.into(),
                    cell.spool_bytes,
                    cell.spool_checksum.into(),
                ];
                said.extend(fields.iter().flat_map(|field: &u64| field.to_le_bytes()));
            }
            say(&said)?;
        }
        Ok(())
    }
}

/// Takes in what one other writer tells of the column files it has written.
pub struct ManifestDecoder {
    shared: Arc<WriterState>,
    /// Bytes that came and are not taken in.
    left: Vec<u8>,
    /// The file whose cells come.
    file: Option<PartialManifest>,
}

struct PartialManifest {
    side: FileSide,
    number: usize,
    cells: usize,
    done: ColumnFileManifest,
}

impl ManifestDecoder {
    /// Takes in more of it.
    ///
    /// # Errors
    /// It makes no sense, or the budget has no room for the notes of cells.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.left.extend(bytes);
        let left = std::mem::take(&mut self.left);
        let mut rest = &left[..];
        loop {
            self.end_file()?;
            let bytes = match self.file {
                None => FILE_BYTES,
                Some(_) => CELL_BYTES,
            };
            let Some((now, later)) = rest.split_at_checked(bytes) else {
                break;
            };
            match &mut self.file {
                None => self.file = Some(self.begin(now)?),
                Some(file) => file.done.cells.push(cell(now)),
            }
            rest = later;
        }
        self.left = rest.to_vec();
        Ok(())
    }

    fn begin(&self, said: &[u8]) -> Result<PartialManifest, FormatError> {
        let misuse = || FormatError::misuse("what a writer of the graph tells makes no sense");
        let (side, fields) = said.split_first().ok_or_else(misuse)?;
        let side = *FileSide::ALL.get(usize::from(*side)).ok_or_else(misuse)?;
        let mut fields = numbers(fields);
        let mut next = || fields.next().unwrap_or(0);
        let number = next() as usize;
        let roots = [(); 4].map(|()| FileRoot {
            payload: next(),
            checksum: next() as u32,
        });
        let [least, greatest] = [(); 2].map(|()| f64::from_bits(next()));
        let cells = next();
        let shared = &self.shared;
        if number >= shared.files(side).len() {
            return Err(misuse());
        }
        let bytes = cells.saturating_mul(size_of::<CellMeta>() as u64);
        let lease = shared.budget.lease("the notes of cells", bytes)?;
        Ok(PartialManifest {
            side,
            number,
            cells: cells as usize,
            done: ColumnFileManifest {
                roots,
                cells: Vec::with_capacity(cells as usize),
                spool: shared.spool(side, number),
                weights: (least <= greatest).then_some(WeightRange { least, greatest }),
                _leases: vec![lease],
            },
        })
    }

    /// Records the current file once all its cells have arrived.
    fn end_file(&mut self) -> Result<(), FormatError> {
        let is_whole = |file: &mut PartialManifest| file.done.cells.len() == file.cells;
        let whole = self.file.take_if(is_whole);
        whole.map_or(Ok(()), |file| {
            self.shared.note(file.side, file.number, file.done)
        })
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|n| u64::from_le_bytes(*n))
}

fn cell(said: &[u8]) -> CellMeta {
    let mut fields = numbers(said);
    let mut next = || fields.next().unwrap_or(0);
    CellMeta {
        sizes: CellSizes {
            destination_batch: next() as u32,
            source_batch: next() as u32,
            edges: next(),
            data_bytes: next(),
            bitmap_lines: next() as u32,
        },
        spool_bytes: next(),
        spool_checksum: next() as u32,
    }
}
