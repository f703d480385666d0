//! Edges that can be read again: from the input itself if that is cheap, or from an edge file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{CancelToken, Disk, MemoryBudget, RecordReader, RecordWriter, corrupt};

use super::bucket_file::ChunkReader;
use super::edge_file::{EDGE_CHUNK_BYTES_MAX, EdgeBatchSink, OrderedEdgeFile};
use super::parallel;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::options::ImportResources;
use crate::source::{EdgeSink, EdgeSource, PieceReader};

/// Edges in units that workers read independently; every edge has its number in the input.
#[derive(Debug)]
pub(crate) enum EdgeReplay<'a> {
    /// The input, with the number of the first edge of each piece.
    Input(&'a dyn EdgeSource, Vec<u64>),
    /// A temporary file.
    TempFile(OrderedEdgeFile),
}

/// One worker's way to read a [`EdgeReplay`].
pub(crate) enum EdgeReplayReader<'a> {
    Input(Box<dyn PieceReader + 'a>),
    TempFile(ChunkReader),
}

/// Chunks of an edge file in flight.
const AHEAD: usize = 4;

impl<'a> EdgeReplay<'a> {
    /// Reads the edges of `input` that [were encoded](EdgeReplay::encode), or of their edge file.
    pub(crate) fn decode(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        (input, folder): (&'a dyn EdgeSource, &Path),
        from: &mut RecordReader<'_>,
    ) -> io::Result<Self> {
        if from.word()? == 0 {
            let starts = from.numbers()?;
            return match starts.len() as u64 == input.pieces() {
                true => Ok(Self::Input(input, starts)),
                false => Err(corrupt()),
            };
        }
        let name = String::from_utf8(from.bytes()?).map_err(|_| corrupt())?;
        let of = (&*folder.join(name), input.weights());
        OrderedEdgeFile::decode(disk, budget, of, from).map(Self::TempFile)
    }

    /// The temporary file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Input(..) => None,
            Self::TempFile(edge_file) => Some(edge_file.file.path()),
        }
    }

    /// Writes the location of the edges.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        match self {
            Self::Input(_, starts) => {
                out.put_u32(0)?;
                out.put_u64s(starts.iter().copied())
            }
            Self::TempFile(edge_file) => {
                out.put_u32(1)?;
                let name = edge_file.file.path().file_name().unwrap_or_default();
                out.put_bytes(name.as_encoded_bytes())?;
                edge_file.encode(out)
            }
        }
    }

    /// Number of units.
    pub(crate) fn units(&self) -> u64 {
        match self {
            Self::Input(source, _) => source.pieces(),
            Self::TempFile(edge_file) => edge_file.units(),
        }
    }

    /// The numbers of the first edge of each unit.
    pub(crate) fn unit_starts(&self) -> Vec<u64> {
        match self {
            Self::Input(_, starts) => starts.clone(),
            Self::TempFile(edge_file) => edge_file.unit_starts().collect(),
        }
    }

    /// Returns an error if the input changed since it was opened; called after its last reading.
    pub(crate) fn check_unchanged(&self, disk: &dyn Disk) -> Result<(), IngestError> {
        match self {
            Self::Input(source, _) => source.check_unchanged(disk),
            Self::TempFile(_) => Ok(()),
        }
    }

    /// Bytes that each reader leases.
    pub(crate) fn reader_bytes(&self) -> u64 {
        match self {
            Self::Input(source, _) => source.reader_bytes(),
            Self::TempFile(edge_file) => (AHEAD * edge_file.chunk_bytes) as u64,
        }
    }

    /// Returns the most bytes of a reader, for any amount of memory.
    pub(crate) fn reader_bytes_max(&self) -> u64 {
        match self {
            Self::Input(source, _) => source.reader_bytes(),
            Self::TempFile(_) => (AHEAD * EDGE_CHUNK_BYTES_MAX) as u64,
        }
    }

    /// A reader for one worker.
    pub(crate) fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
    ) -> Result<EdgeReplayReader<'_>, IngestError> {
        match self {
            Self::Input(source, _) => Ok(EdgeReplayReader::Input(source.reader(disk, budget)?)),
            Self::TempFile(edge_file) => Ok(EdgeReplayReader::TempFile(ChunkReader::new(
                &**disk,
                budget,
                edge_file.chunk_bytes,
                AHEAD,
            )?)),
        }
    }

    /// Reads all units into sinks that workers `make` for themselves.
    pub(crate) fn read_all<S: EdgeBatchSink + Send>(
        &self,
        resources: ImportResources<'_>,
        lanes: usize,
        make: impl Fn() -> Result<S, IngestError> + Sync,
    ) -> Result<Vec<S>, IngestError> {
        let make = || Ok((self.reader(resources.disk, resources.budget)?, make()?));
        let work = |(reader, sink): &mut (EdgeReplayReader<'_>, S), unit| {
            self.read(unit, reader, resources.stop, sink)
        };
        let states = parallel::run(resources, lanes, self.units(), make, work)?;
        Ok(states.into_iter().map(|(_, sink)| sink).collect())
    }

    /// Reads one unit, with a reader that this source made.
    pub(crate) fn read(
        &self,
        unit: u64,
        reader: &mut EdgeReplayReader<'_>,
        stop: &CancelToken,
        sink: &mut impl EdgeBatchSink,
    ) -> Result<(), IngestError> {
        match (self, reader) {
            (Self::Input(_, starts), EdgeReplayReader::Input(reader)) => {
                let mut numbered = WithSequence {
                    sink,
                    sequence: starts[unit as usize],
                };
                reader.read(unit, stop, &mut numbered)?;
                // Sequence numbers are only right if the pieces have not changed.
                match starts.get(unit as usize + 1) {
                    Some(&next) if next != numbered.sequence => Err(IngestError::input_changed()),
                    _ => Ok(()),
                }
            }
            (Self::TempFile(edge_file), EdgeReplayReader::TempFile(chunk_reader)) => {
                edge_file.read(unit, chunk_reader, stop, sink)
            }
            _ => Err(IngestError::internal("a reader of another source")),
        }
    }
}

/// Counts the edges that pass by.
struct WithSequence<'a, S> {
    sink: &'a mut S,
    sequence: u64,
}

impl<S: EdgeBatchSink> EdgeSink for WithSequence<'_, S> {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        let sequence = self.sequence;
        self.sequence += edges.len() as u64;
        self.sink.integers(edges, data, sequence)
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError> {
        let sequence = self.sequence;
        self.sequence += edges.len() as u64;
        self.sink.texts(edges, data, sequence)
    }
}
