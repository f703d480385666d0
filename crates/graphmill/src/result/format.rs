//! Formats of result files, by the ends of their names.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::result_error::ResultError;

/// Whether a result is to be a directory of parts: its name ends with a slash.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

/// What a result file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultFormat {
    /// Columns `vertex` and the value; unreached is null.
    Parquet,
    /// The same as text with a header; unreached is `inf`, of columns of vertices an empty field.
    Text {
        /// Columns are separated by tabs, else by commas.
        tabs: bool,
        /// Compressed.
        gzip: bool,
    },
}

/// Whether a result goes to standard output.
pub fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

impl ResultFormat {
    /// Returns the format by the end of the file's name.
    ///
    /// A directory without an ending is Parquet, standard output is CSV.
    ///
    /// # Errors
    /// [`ResultError::UnknownFormat`] when it has another ending.
    pub(crate) fn of(path: &Path) -> Result<ResultFormat, ResultError> {
        let ending = |path: &Path| {
            let ending = path.extension().unwrap_or_default();
            ending.to_string_lossy().to_ascii_lowercase()
        };
        let (gzip, last) = match ending(path) {
            last if last == "gz" => (true, ending(&path.with_extension(""))),
            last => (false, last),
        };
        match (&*last, gzip) {
            ("parquet", false) => Ok(ResultFormat::Parquet),
            ("csv", gzip) => Ok(ResultFormat::Text { tabs: false, gzip }),
            ("tsv", gzip) => Ok(ResultFormat::Text { tabs: true, gzip }),
            ("", false) if is_folder(path) => Ok(ResultFormat::Parquet),
            ("", false) if is_stdout(path) => Ok(ResultFormat::Text { tabs: false, gzip }),
            _ => Err(ResultError::UnknownFormat {
                path: path.to_path_buf(),
            }),
        }
    }

    /// The end of the name of a file of this format.
    pub(super) fn ending(self) -> &'static str {
        match self {
            ResultFormat::Parquet => "parquet",
            ResultFormat::Text { tabs, gzip } => match (tabs, gzip) {
                (false, false) => "csv",
                (false, true) => "csv.gz",
                (true, false) => "tsv",
                (true, true) => "tsv.gz",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_follows_from_the_file_name() {
        assert_eq!(
            ResultFormat::of(Path::new("a.parquet")).unwrap(),
            ResultFormat::Parquet
        );
        for (name, ending) in [
            ("b/a.csv", "csv"),
            ("a.csv/", "csv"),
            ("-", "csv"),
            ("/dev/stdout", "csv"),
            ("A.CSV.GZ", "csv.gz"),
            ("a.b.tsv", "tsv"),
            ("a.tsv.gz/", "tsv.gz"),
        ] {
            assert_eq!(ResultFormat::of(Path::new(name)).unwrap().ending(), ending);
        }
        assert_eq!(
            ResultFormat::of(Path::new("b/a/")).unwrap(),
            ResultFormat::Parquet
        );
        for name in [
            "a",
            "a.txt",
            "csv",
            "a.gz",
            "a.parquet.gz",
            "a.json/",
            "a/-",
            "--",
        ] {
            assert!(ResultFormat::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
