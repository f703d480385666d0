//! Lines of edges between UUIDs.

use graphmill_graph::uuid_of;

use super::Parser;
use crate::error::{IngestError, LineProblem};
use crate::limits::BATCH_EDGES_MAX;
use crate::readers::text::fault::ParseError;
use crate::readers::text::record::trim;
use crate::source::EdgeSink;

/// Source and destination.
type UuidEdge = [[u8; 16]; 2];

impl Parser<'_> {
    /// Parses the records of `bytes` from `at` on as [`Parser::lines`] does.
    pub(super) fn uuids(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        limit: usize,
        last: bool,
        sink: &mut dyn EdgeSink,
    ) -> Result<usize, ParseError> {
        let mut edges = Vec::with_capacity(BATCH_EDGES_MAX);
        while at < limit {
            let Some((line, next)) = self.record(bytes, at, last)? else {
                break;
            };
            match self.uuids_of(line) {
                Ok(Some((ends, data))) => {
                    edges.push(ends);
                    self.data.push(data, self.weights);
                }
                Ok(None) => {}
                Err(problem) => self.malformed(problem, line, at)?,
            }
            at = next;
            if edges.len() == BATCH_EDGES_MAX {
                self.flush_uuids(&mut edges, sink)?;
            }
        }
        self.flush_uuids(&mut edges, sink)?;
        Ok(at)
    }

    fn flush_uuids(
        &mut self,
        edges: &mut Vec<UuidEdge>,
        sink: &mut dyn EdgeSink,
    ) -> Result<(), IngestError> {
        let texts = edges
            .iter()
            .map(|[source, target]| (&source[..], &target[..]));
        let mut texts: Vec<(&[u8], &[u8])> = texts.collect();
        self.flush_texts(&mut texts, sink)?;
        edges.clear();
        Ok(())
    }

    /// Parses the line as an edge between UUIDs.
    fn uuids_of(&mut self, line: &[u8]) -> Result<Option<(UuidEdge, u128)>, LineProblem> {
        let Some(row) = self.row(line)? else {
            return Ok(None);
        };
        let [source, destination, _] = self.dialect.wanted;
        let mut ends = [[0; 16]; 2];
        let fields = row.ends.iter().zip([source + 1, destination + 1]);
        for (end, (field, column)) in ends.iter_mut().zip(fields) {
            let uuid = uuid_of(trim(field.bytes));
            *end = uuid.ok_or(LineProblem::NotUuid { column })?;
        }
        let data = self.data_of(&row)?;
        self.report.edges += 1;
        Ok(Some((ends, data)))
    }
}
