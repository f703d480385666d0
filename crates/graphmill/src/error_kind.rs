//! Kinds of errors, for a caller that treats them differently.

use graphmill_algorithms::AlgorithmError;
use graphmill_engine::EngineError;
use graphmill_graph::FormatError;
use graphmill_ingest::IngestError;
use graphmill_storage::StorageError;

use crate::error::Error;
use crate::result_error::ResultError;
use crate::validate_error::ValidateError;

/// What an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: another one may succeed.
    Usage,
    /// The memory budget is too small.
    Memory,
    /// A disk is full or fails, or a file cannot be opened.
    Disk,
    /// A file is not what it should be.
    Input,
    /// Another rank failed, or ranks differ.
    Ranks,
    /// Work was asked to stop.
    Stopped,
    /// None of these.
    Other,
}

impl Error {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            _ if self.is_stopped() || self.is_interrupted() => ErrorKind::Stopped,
            _ if self.is_of_memory() => ErrorKind::Memory,
            _ if self.is_usage() => ErrorKind::Usage,
            _ if self.between_ranks().is_some() => ErrorKind::Ranks,
            _ if self.is_of_disk() || self.is_of_files() => ErrorKind::Disk,
            Error::Ingest(_) | Error::Graph(_) => ErrorKind::Input,
            _ => ErrorKind::Other,
        }
    }

    /// True if the memory budget is too small.
    fn is_of_memory(&self) -> bool {
        let of_storage = |error: &StorageError| matches!(error, StorageError::Budget(_));
        let of_graph = |error: &FormatError| match error {
            FormatError::Budget(_) => true,
            FormatError::Storage(error) => of_storage(error),
            _ => false,
        };
        match self {
            Error::Budget(_) | Error::Validate(ValidateError::Budget(_)) => true,
            Error::Engine(error) | Error::Algorithm(AlgorithmError::Engine(error)) => match error {
                EngineError::Budget(_) | EngineError::TooSmall { .. } => true,
                EngineError::Graph(error) => of_graph(error),
                EngineError::Storage(error) => of_storage(error),
                _ => false,
            },
            Error::Ingest(error) => match error {
                IngestError::Budget(_) | IngestError::TooLittleMemory { .. } => true,
                IngestError::Graph(error) => of_graph(error),
                IngestError::Storage(error) => of_storage(error),
                _ => false,
            },
            Error::Graph(error) => of_graph(error),
            Error::Storage(error) | Error::Result(ResultError::Storage(error)) => of_storage(error),
            _ => false,
        }
    }

    /// True if the system refuses a file.
    fn is_of_files(&self) -> bool {
        let of_graph = |error: &FormatError| matches!(error, FormatError::Storage(_));
        match self {
            Error::NoOutput { .. } | Error::NoScratch { .. } | Error::NoCache { .. } => true,
            Error::Storage(_) | Error::Result(ResultError::Storage(_) | ResultError::Write(_)) => {
                true
            }
            Error::Ingest(IngestError::Storage(_)) => true,
            Error::Ingest(IngestError::Graph(error)) | Error::Graph(error) => of_graph(error),
            Error::Engine(error) | Error::Algorithm(AlgorithmError::Engine(error)) => match error {
                EngineError::Storage(_) => true,
                EngineError::Graph(error) => of_graph(error),
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use graphmill_storage::MemoryBudget;

    use super::*;

    #[test]
    fn errors_have_kinds_through_all_layers() {
        let refused = || match MemoryBudget::new(0).lease("a test", 1) {
            Err(error) => error,
            Ok(_) => unreachable!("an empty budget leases nothing"),
        };
        let of_engine = |error: EngineError| Error::from(AlgorithmError::from(error)).kind();
        assert_eq!(Error::from(refused()).kind(), ErrorKind::Memory);
        let format = FormatError::from(StorageError::from(refused()));
        assert_eq!(of_engine(format.into()), ErrorKind::Memory);
        let missing = || StorageError::Path {
            action: "open",
            path: "rows".into(),
            source: std::io::ErrorKind::NotFound.into(),
        };
        assert_eq!(of_engine(missing().into()), ErrorKind::Disk);
        assert_eq!(of_engine(EngineError::Stopped), ErrorKind::Stopped);
        assert_eq!(Error::TwoKindsOfData.kind(), ErrorKind::Usage);
        let path = "g".into();
        assert_eq!(
            Error::from(FormatError::NotAGraph { path }).kind(),
            ErrorKind::Input
        );
    }
}
