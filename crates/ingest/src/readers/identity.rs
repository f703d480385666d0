//! The text that tells an input from others. Checkpoints of imports hold it, so it is independent of the names of types and fields.

use std::fmt::Write;

use graphmill_storage::FileIdentity;

use super::compression::Compression;
use super::files::FileSource;
use super::input_file::FileContent;
use super::text::dialect::{Comments, RecordKind, Syntax};
use super::text::record::Quotes;
use crate::source::Ids;

impl FileSource {
    /// Returns the files with their times, and how they are read.
    pub(super) fn identity_text(&self) -> String {
        let records = match self.columns {
            RecordKind::Edge => "edges",
            RecordKind::Vertex => "vertices",
        };
        let ids = match self.ids {
            Ids::Integer => "integers",
            Ids::Signed => "signed integers",
            Ids::Wrapping => "wrapping integers",
            Ids::Text => "text",
            Ids::Uuid => "UUIDs",
        };
        let id_type = self
            .asked
            .map_or(String::new(), |asked| format!(" {}", asked.name()));
        let below = self.vertices_below;
        let below = below.map_or(String::new(), |below| format!(" below {below}"));
        let malformed = if self.skip { "skipped" } else { "refused" };
        let data = match self.fields.kind() {
            Some(_) => format!("records {}", self.fields),
            None => format!("weights of {} bytes", self.weights.bytes()),
        };
        let mut text = format!(
            "{records}, ids {ids}{id_type}{below}, {data}, malformed lines {malformed}, pieces of {} bytes",
            self.piece_bytes
        );
        for file in &self.input.edges {
            let FileIdentity {
                inode,
                bytes,
                modified,
                changed,
            } = file.stamp;
            let packed = match file.compression {
                Compression::None => "",
                Compression::Gzip => " of gzip",
                Compression::Zstd { .. } => " of zstd",
            };
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "; {:?}: inode {inode}, {bytes} bytes{packed}, modified {modified:?}, changed {changed:?}, {}",
                file.path,
                content_text(&file.content)
            );
        }
        text
    }
}

/// Returns the columns that are read of a file, and how.
fn content_text(content: &FileContent) -> String {
    let (dialect, head) = match content {
        FileContent::Pairs(width) => return format!("pairs of {} bytes", width.pair_bytes()),
        FileContent::Parquet(file) => return format!("Parquet, columns {:?}", file.columns.wanted),
        FileContent::Text(dialect, head) => (dialect, head),
    };
    let syntax = match dialect.syntax {
        Syntax::Text => "text",
        Syntax::Csv => "CSV",
        Syntax::Tsv => "TSV",
        Syntax::Dimacs => "DIMACS",
    };
    let comments = match &dialect.comments {
        Comments::Auto => "at the start".into(),
        Comments::Prefix(prefix) => format!("after {prefix:?}"),
        Comments::None => "none".into(),
    };
    let cut = dialect.cut;
    let quotes = match cut.quotes {
        Quotes::Enclose => "enclose",
        Quotes::Absent => "refused",
        Quotes::Within => "within",
        Quotes::Text => "text",
    };
    let data: Vec<usize> = dialect.data.iter().map(|data| data.column).collect();
    let data = match &data[..] {
        [] => String::new(),
        data => format!("data {data:?}, "),
    };
    format!(
        "{syntax} from {}, {data}columns {:?} of {:?}, delimiter {} ({}, {}), quotes {quotes}, comments {comments}",
        head.bytes,
        dialect.wanted,
        dialect.columns,
        cut.delimiter.name(),
        if cut.trims { "trimmed" } else { "exact" },
        if cut.is_open { "open" } else { "known" },
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use graphmill_storage::{CancelToken, Disk, FileIdentity, MemoryBudget, SimDisk};

    use crate::readers::{FileSource, ReadOptions};
    use crate::source::EdgeSource;

    #[test]
    fn identity_of_files_is_a_fixed_text_for_any_budget() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let paths = [PathBuf::from("/a.csv"), PathBuf::from("/b.el")];
        for (path, text) in paths
            .iter()
            .zip(["source,target\n1,2\n3,4\n", "5 6\n7 8\n"])
        {
            disk.write_small(path, text.as_bytes()).unwrap();
        }
        for mib in [8, 16] {
            let (budget, stop) = (MemoryBudget::new(mib << 20), CancelToken::new());
            let options = ReadOptions::default();
            let mut source = FileSource::open(&disk, &budget, &paths, &options, &stop).unwrap();
            for (inode, file) in (1..).zip(&mut source.input.edges) {
                file.stamp = FileIdentity {
                    inode,
                    bytes: file.bytes,
                    modified: (2, 3),
                    changed: (4, 5),
                };
            }
            assert_eq!(source.identity().unwrap(), IDENTITY);
        }
    }

    const IDENTITY: &str = "edges, ids integers, weights of 0 bytes, malformed lines refused, pieces of 16777216 bytes; \
        \"/a.csv\": inode 1, 22 bytes, modified (2, 3), changed (4, 5), CSV from 14, columns [0, 1, 2] of Some(2), \
        delimiter , (exact, known), quotes refused, comments at the start; \
        \"/b.el\": inode 2, 8 bytes, modified (2, 3), changed (4, 5), text from 0, columns [0, 1, 2] of Some(2), \
        delimiter space (trimmed, known), quotes within, comments at the start";
}
