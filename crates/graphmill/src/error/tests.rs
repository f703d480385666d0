//! Kinds of errors.

use super::*;

#[test]
fn error_stopped_is_separate_from_failed() {
    let lost = |cause: String| FabricError::Lost { rank: 1, cause };
    let asked = Error::Interrupted {
        folder: PathBuf::new(),
        needs_resume: false,
    };
    let stopped: [Error; 8] = [
        lost(asked.to_others()).into(),
        lost(IngestError::Stopped.to_string()).into(),
        EngineError::from(lost(EngineError::Stopped.to_string())).into(),
        Error::Stopped,
        IngestError::Stopped.into(),
        EngineError::Stopped.into(),
        AlgorithmError::from(EngineError::Stopped).into(),
        ValidateError::Stopped.into(),
    ];
    assert!(stopped.iter().all(Error::is_stopped));
    let no_file = Error::NoInput {
        path: "interrupted".into(),
    };
    let failed: [Error; 5] = [
        lost("it was killed".into()).into(),
        lost(no_file.to_others()).into(),
        IngestError::SumTooLarge.into(),
        EngineError::Broken.into(),
        AlgorithmError::from(EngineError::Broken).into(),
    ];
    assert!(!failed.iter().any(Error::is_stopped));
}

#[test]
fn error_of_a_full_disk_is_recognised() {
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    let found: [Error; 4] = [
        ResultError::from(csv::Error::from(full())).into(),
        ResultError::from(full()).into(),
        IngestError::TooLittleDisk {
            folder: PathBuf::new(),
            needed: 2,
            free: 1,
        }
        .into(),
        AlgorithmError::from(EngineError::from(StorageError::Path {
            action: "write",
            path: PathBuf::new(),
            source: full(),
        }))
        .into(),
    ];
    assert!(found.iter().all(Error::is_of_disk));
    assert!(!Error::Stopped.is_of_disk() && !Error::from(EngineError::Broken).is_of_disk());
}
