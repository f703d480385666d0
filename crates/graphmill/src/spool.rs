//! Edges from standard input: written once to a private file among the temporary ones, and read from there as from any other.
//!
//! The file has mode 0600, its directory 0700; both go with the [`Spool`]. It is compressed as the input is, and named so that a reader
//! sees that.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use graphmill_storage::{CancelToken, StorageError, WorkDir, open_disk};

use crate::error::{Error, check_stop};
use crate::machine::mpi::MpiJob;
use crate::machine::resources::{MachineConfig, folder_of};

/// Bytes of a read; few reads are in flight.
const CHUNK_BYTES: usize = 1 << 16;
/// Time between two looks whether work is to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// Inputs, with standard input (`-`) replaced by a file that lives as long as this.
#[derive(Debug)]
pub struct Spool {
    inputs: Vec<PathBuf>,
    scratch: Option<WorkDir>,
}

impl Spool {
    /// Reads standard input to its end if `inputs` name it; does nothing otherwise.
    ///
    /// The file is in the configured temporary directory, else beside `output`, else where the system has large
    /// ones (`TMPDIR`, `/var/tmp`).
    ///
    /// # Errors
    /// Standard input is named twice or is that of a rank of a job; it cannot be read; the file cannot be written; work is to stop.
    pub fn of(
        inputs: &[PathBuf],
        machine: &MachineConfig,
        output: Option<&Path>,
        stop: &CancelToken,
    ) -> Result<Spool, Error> {
        let (inputs, scratch) = (inputs.to_vec(), None);
        let mut spool = Spool { inputs, scratch };
        let mut named = spool.inputs.iter_mut().filter(|input| is_stdin(input));
        let Some(input) = named.next() else {
            return Ok(spool);
        };
        if named.next().is_some() {
            return Err(Error::StdinTwice);
        }
        if MpiJob::of_environment().is_some_and(|job| job.ranks > 1) {
            return Err(Error::StdinOfRanks);
        }
        let folder = match (&machine.tmp, output) {
            (Some(tmp), _) => tmp.clone(),
            (None, Some(output)) => folder_of(output),
            (None, None) => std::env::var_os("TMPDIR").map_or("/var/tmp".into(), PathBuf::from),
        };
        let failed = |source: io::Error| Error::NoSpool {
            folder: folder.clone(),
            source,
        };
        let scratch = WorkDir::create(&open_disk(machine.io)?, &folder, "stdin");
        let scratch = scratch.map_err(|error| match error {
            StorageError::Path { source, .. } => failed(source),
            error => error.into(),
        })?;
        std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o700)).map_err(failed)?;
        *input = copy(&read_aside()?, scratch.path(), stop, failed)?;
        spool.scratch = Some(scratch);
        Ok(spool)
    }

    /// The inputs, with a file in place of standard input.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// Whether one of them was standard input.
    pub fn is_used(&self) -> bool {
        self.scratch.is_some()
    }
}

/// Whether an input is standard input.
pub(crate) fn is_stdin(input: &Path) -> bool {
    input == Path::new("-")
}

/// Reads standard input on a thread of its own, so that the caller can react to a stop request.
fn read_aside() -> Result<Receiver<io::Result<Vec<u8>>>, Error> {
    let (sender, chunks) = sync_channel(2);
    let read = move || {
        let mut stdin = io::stdin().lock();
        loop {
            let (mut chunk, mut next) = (Vec::new(), stdin.by_ref().take(CHUNK_BYTES as u64));
            let read = next.read_to_end(&mut chunk);
            let is_last = !matches!(read, Ok(1..));
            if sender.send(read.map(|_| chunk)).is_err() || is_last {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("stdin".into()).spawn(read);
    thread.map_err(|source| StorageError::Thread { source })?;
    Ok(chunks)
}

/// Writes all chunks to a new file in `folder`; returns its path.
fn copy(
    chunks: &Receiver<io::Result<Vec<u8>>>,
    folder: &Path,
    stop: &CancelToken,
    failed: impl Fn(io::Error) -> Error,
) -> Result<PathBuf, Error> {
    let next = || loop {
        check_stop(stop)?;
        match chunks.recv_timeout(PATIENCE) {
            Ok(chunk) => return chunk.map_err(|source| Error::Stdin { source }),
            Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    let mut chunk = next()?;
    let path = folder.join(match &chunk[..] {
        [0x1f, 0x8b, ..] => "standard-input.gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "standard-input.zst",
        _ => "standard-input",
    });
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(&failed)?;
    while !chunk.is_empty() {
        file.write_all(&chunk).map_err(&failed)?;
        chunk = next()?;
    }
    Ok(path)
}
