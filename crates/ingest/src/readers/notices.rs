//! Describes in words how files are read.

use std::collections::BTreeSet;

use graphmill_graph::EdgeKind;

use super::files::{FileSource, ReadNotice};
use super::input_file::{FileContent, InputFile};
use super::text::dialect::{Comments, RecordKind, Syntax};
use super::text::record::Delimiter;
use crate::source::Ids;

impl FileSource {
    /// Returns how the files are read, in one line for each way.
    pub fn notices(&self, directed: bool) -> Vec<ReadNotice> {
        let mut groups: Vec<(&InputFile, u64, u64)> = Vec::new();
        for file in &self.input.edges {
            let comments = match &file.content {
                FileContent::Text(_, head) => head.report.comments,
                FileContent::Pairs(_) | FileContent::Parquet(_) => 0,
            };
            let is_same = |first: &InputFile| first.content.is_read_as(&file.content);
            match groups.iter_mut().find(|(first, ..)| is_same(first)) {
                Some((_, files, sum)) => (*files, *sum) = (*files + 1, *sum + comments),
                None => groups.push((file, 1, comments)),
            }
        }
        groups
            .into_iter()
            .map(|(file, files, comments)| self.notice(file, files, comments, directed))
            .collect()
    }

    fn notice(&self, file: &InputFile, files: u64, comments: u64, directed: bool) -> String {
        let mut line = file.path.display().to_string();
        if files > 1 {
            line += &format!(" and {} more", files - 1);
        }
        let ids = match self.ids {
            Ids::Integer => "ids int",
            Ids::Signed => "ids int (some negative)",
            Ids::Wrapping => "ids int (maybe negative)",
            Ids::Text => "ids text",
            Ids::Uuid => "ids uuid",
        };
        let directed = match (self.columns, directed) {
            (RecordKind::Vertex, _) => "",
            (_, true) => ", directed",
            (_, false) => ", undirected",
        };
        let dialect = match &file.content {
            FileContent::Pairs(width) => {
                let bits = width.pair_bytes() * 4;
                return format!("{line}: pairs of {bits}-bit integers{directed}");
            }
            FileContent::Parquet(parquet) => {
                line += &self.columns_text(&parquet.columns.names);
                line += &format!(", {ids}{directed}");
                return line + &ignored(parquet.columns.ignored);
            }
            FileContent::Text(dialect, _) => dialect,
        };
        line += &self.columns_text(&dialect.names);
        let header = dialect.header.as_ref().map_or("no", |_| "yes");
        line += &format!(", header {header}, {ids}{directed}");
        let delimiter = dialect.cut.delimiter;
        match (dialect.syntax, delimiter) {
            (Syntax::Csv, Delimiter::Byte(b',')) | (Syntax::Tsv, Delimiter::Byte(b'\t')) => {}
            (Syntax::Text | Syntax::Dimacs, Delimiter::Blanks | Delimiter::Byte(b'\t')) => {}
            _ => line += &format!("; separated by {}", delimiter.name()),
        }
        let taken = match self.columns {
            RecordKind::Vertex => 1,
            RecordKind::Edge => {
                let weight = usize::from(self.weights.is_weight());
                let data = dialect.data.iter().map(|data| data.column);
                let columns = dialect.wanted.into_iter().take(2 + weight).chain(data);
                columns.collect::<BTreeSet<usize>>().len()
            }
        };
        line += &ignored(dialect.columns.map_or(0, |all| all.saturating_sub(taken)));
        if comments > 0 {
            let plural = if comments == 1 { "" } else { "s" };
            line += &format!("; {comments} comment line{plural}");
        }
        if let Some(first) = &self.first_text
            && first.path == file.path
        {
            let (at, found) = (first.line, &first.found);
            line += &format!("; ids are text because of line {at}: {found:?}");
        }
        if let Comments::Prefix(prefix) = &dialect.comments {
            line += &format!("; lines that start with {prefix:?} are comments");
        }
        if let Some(doubt) = &dialect.doubt {
            line += &format!("; {doubt}");
        }
        line
    }

    fn columns_text(&self, [source, target, weight]: &[String; 3]) -> String {
        let columns = match self.columns {
            RecordKind::Vertex => format!(": column {source}"),
            RecordKind::Edge => format!(": columns {source} -> {target}"),
        };
        match self.weights {
            EdgeKind::None => columns,
            EdgeKind::F32 | EdgeKind::F64 => format!("{columns}, weights {weight}"),
            EdgeKind::Record(_) => format!("{columns}, data {}", self.fields),
        }
    }
}

/// Returns the words for ignored columns.
fn ignored(columns: usize) -> String {
    match columns {
        0 => String::new(),
        1 => "; 1 column ignored".into(),
        more => format!("; {more} columns ignored"),
    }
}
