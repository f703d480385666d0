//! Compressed files: which ones are, and the runs of their unpacked bytes.
//!
//! Gzip files may have several members, zstd files several frames, one after the other.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use graphmill_storage::{Buffer, Lease, MemoryBudget};

use super::read_ahead::{ByteRuns, HEADROOM_BYTES, ReadAhead};
use crate::error::IngestError;

/// Unpacked bytes of a run.
const RUN_BYTES: usize = 256 << 10;
/// Bytes of the state of a gzip decoder: its window of 32 KiB, tables and margin.
const GZIP_BYTES: u64 = 64 << 10;
/// The largest window of zstd without `--ultra` or `--long`, as a power of two: every decoder takes it.
const ZSTD_WINDOW_LOG: u32 = 23;
/// The largest that is taken at all: `--ultra -22`, `--long=27`.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Bytes of the state of a zstd decoder except its window: tables, a block of 128 KiB twice, margin.
const ZSTD_BYTES: u64 = 512 << 10;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd {
        /// The window that is leased and allowed, as a power of two.
        window_log: u32,
    },
}

impl Compression {
    /// The compression of a text file that begins with `head`, which no text begins with.
    pub(crate) fn of_head(path: &Path, head: &[u8]) -> Result<Self, IngestError> {
        let unknown = match head {
            [0x1f, 0x8b, ..] => return Ok(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                return zstd_window_log(path, head).map(|window_log| Self::Zstd { window_log });
            }
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => "bzip2",
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
            [0x04, 0x22, 0x4d, 0x18, ..] => "lz4",
            [b'P', b'K', 3, 4, ..] => "zip",
            _ => return Ok(Self::None),
        };
        let problem =
            format!("{unknown} is not read; unpack the file, or pack it with gzip or zstd");
        Err(IngestError::input(path, problem))
    }

    /// Returns the compression by the name, with the usual window of zstd.
    pub(crate) fn of_name(path: &Path) -> Self {
        let ends = |endings: [&str; 2]| endings.iter().any(|ending| has_ending(path, ending));
        let window_log = ZSTD_WINDOW_LOG;
        match (ends(["gz", "gzip"]), ends(["zst", "zstd"])) {
            (true, _) => Self::Gzip,
            (_, true) => Self::Zstd { window_log },
            _ => Self::None,
        }
    }

    /// Returns the name without the ending of its compression, and whether it had one.
    pub(crate) fn strip(path: &Path) -> (PathBuf, bool) {
        match Self::of_name(path) {
            Self::None => (path.to_path_buf(), false),
            _ => (path.with_extension(""), true),
        }
    }

    /// Bytes that an [`Unpacker`] leases.
    pub(crate) fn leased_bytes(self) -> u64 {
        let buffer = (HEADROOM_BYTES + RUN_BYTES) as u64;
        match self {
            Self::None => 0,
            Self::Gzip => buffer + GZIP_BYTES,
            Self::Zstd { window_log } => buffer + ZSTD_BYTES + (1 << window_log),
        }
    }
}

/// True if a name ends with a point and `ending`, in any case.
pub(crate) fn has_ending(name: &Path, ending: &str) -> bool {
    name.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// Returns the larger of the window that the first frame asks for and the common one.
///
/// See RFC 8878, section 3.1.1.1.
fn zstd_window_log(path: &Path, head: &[u8]) -> Result<u32, IngestError> {
    let asked = match head {
        // A frame in a single segment (bit 5): its window is its content, whose size follows the id of a dictionary.
        [0x28, 0xb5, 0x2f, 0xfd, descriptor, rest @ ..] if descriptor & 0x20 != 0 => {
            let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
            let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
            let mut content = [0; 8];
            let stored = rest.iter().skip(dictionary).take(size);
            for (to, from) in content.iter_mut().zip(stored) {
                *to = *from;
            }
            // Two bytes say 256 less.
            let less = if size == 2 { 256 } else { 0 };
            let content = u64::from_le_bytes(content).saturating_add(less);
            u64::BITS - content.saturating_sub(1).leading_zeros()
        }
        // Three bits are eighths, rounded up.
        [0x28, 0xb5, 0x2f, 0xfd, _, window, ..] => {
            10 + u32::from(window >> 3) + u32::from(window & 7 != 0)
        }
        _ => 0,
    };
    if asked > ZSTD_WINDOW_LOG_MAX {
        let problem = format!(
            "unpacking takes a window of 2^{asked} bytes; pack it again with zstd --long={ZSTD_WINDOW_LOG_MAX} or less"
        );
        return Err(IngestError::input(path, problem));
    }
    Ok(asked.max(ZSTD_WINDOW_LOG))
}

/// One worker's memory to unpack files.
#[derive(Debug)]
pub(crate) struct Unpacker {
    buffer: Buffer,
    _state: Lease,
}

impl Unpacker {
    /// Leases `bytes`: the largest [`Compression::leased_bytes`] of the files to unpack.
    pub(crate) fn new(budget: &MemoryBudget, bytes: u64) -> Result<Self, IngestError> {
        let buffer = budget.buffer("a buffer to unpack edges", HEADROOM_BYTES + RUN_BYTES)?;
        let state = bytes.saturating_sub((HEADROOM_BYTES + RUN_BYTES) as u64);
        Ok(Self {
            buffer,
            _state: budget.lease("the state of a decoder of compressed edges", state)?,
        })
    }

    /// Unpacks the file that `packed` has open at its start.
    pub(crate) fn open<'a>(
        &'a mut self,
        path: &'a Path,
        compression: Compression,
        packed: &'a mut ReadAhead,
    ) -> Result<Unpacked<'a>, IngestError> {
        let decoder = match compression {
            Compression::Zstd { window_log } => {
                let failed = |error| unpack_error(path, "zstd", 0, error);
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(packed).map_err(failed)?;
                decoder.window_log_max(window_log).map_err(failed)?;
                Decoder::Zstd(decoder)
            }
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(packed))),
            Compression::None => {
                return Err(IngestError::internal(
                    "a file that is not compressed cannot be unpacked",
                ));
            }
        };
        Ok(Unpacked {
            path,
            decoder,
            buffer: &mut self.buffer,
            end: HEADROOM_BYTES,
            unpacked: 0,
        })
    }
}

enum Decoder<'a> {
    Gzip(Box<MultiGzDecoder<&'a mut ReadAhead>>),
    Zstd(zstd::stream::read::Decoder<'static, &'a mut ReadAhead>),
}

/// The unpacked bytes of a file.
pub(crate) struct Unpacked<'a> {
    path: &'a Path,
    decoder: Decoder<'a>,
    buffer: &'a mut Buffer,
    /// End of the present run in the buffer.
    end: usize,
    unpacked: u64,
}

impl ByteRuns for Unpacked<'_> {
    fn next(&mut self, kept: usize) -> Result<(&[u8], bool), IngestError> {
        let start = HEADROOM_BYTES.checked_sub(kept).ok_or_else(|| {
            IngestError::internal("more bytes are kept of a run than there is room for")
        })?;
        self.buffer.copy_within(self.end - kept..self.end, start);
        let mut end = HEADROOM_BYTES;
        while end < self.buffer.len() {
            let out = &mut self.buffer[end..];
            let (kind, read) = match &mut self.decoder {
                Decoder::Gzip(decoder) => ("gzip", decoder.read(out)),
                Decoder::Zstd(decoder) => ("zstd", decoder.read(out)),
            };
            match read {
                Ok(0) => break,
                Ok(bytes) => {
                    end += bytes;
                    self.unpacked += bytes as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unpack_error(self.path, kind, self.unpacked, error)),
            }
        }
        self.end = end;
        Ok((&self.buffer[start..end], end < self.buffer.len()))
    }

    fn taken(&self) -> u64 {
        match &self.decoder {
            Decoder::Gzip(decoder) => decoder.get_ref().taken(),
            Decoder::Zstd(decoder) => decoder.get_ref().taken(),
        }
    }
}

/// Returns the error of the disk unchanged, or the error of a decoder about the data.
fn unpack_error(
    path: &Path,
    kind: &'static str,
    unpacked: u64,
    error: std::io::Error,
) -> IngestError {
    match error.downcast::<IngestError>() {
        Ok(error) => error,
        Err(error) => IngestError::Compressed {
            path: path.to_path_buf(),
            kind,
            unpacked,
            reason: error.to_string(),
        },
    }
}
