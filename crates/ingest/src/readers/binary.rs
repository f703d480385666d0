//! Raw pairs: little-endian source and destination, 32 or 64 bits each, one after the other and nothing else.

use std::ops::Range;

use graphmill_storage::CancelToken;

use super::id_range::IdRange;
use super::input_file::{IdWidth, InputFile};
use super::read_ahead::ByteRuns;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, Ids, PieceReport, SIGN};

/// Delivers the pairs of `runs`, which are a range of the bytes of a file.
pub(crate) fn pairs(
    runs: &mut dyn ByteRuns,
    width: IdWidth,
    (file, range, ids): (&InputFile, Range<u64>, IdRange),
    stop: &CancelToken,
    sink: &mut dyn EdgeSink,
) -> Result<PieceReport, IngestError> {
    let id_last = ids.last();
    let mut report = PieceReport::default();
    let mut limit = range.end - range.start;
    let mut edges = Vec::with_capacity(BATCH_EDGES_MAX);
    let (mut kept, mut taken) = (0, 0);
    loop {
        IngestError::check_stop(stop)?;
        let (run, last) = runs.next(kept)?;
        let run = &run[..run.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
        kept = run.len() % width.pair_bytes();
        let (whole, rest) = run.split_at(run.len() - kept);
        for batch in whole.chunks(width.pair_bytes() * BATCH_EDGES_MAX) {
            edges.clear();
            match width {
                IdWidth::U32 => edges.extend(batch.as_chunks::<8>().0.iter().map(|pair| {
                    let pair = u64::from_le_bytes(*pair);
                    (pair & 0xffff_ffff, pair >> 32)
                })),
                IdWidth::U64 => edges.extend(batch.as_chunks::<16>().0.iter().map(|pair| {
                    let pair = u128::from_le_bytes(*pair);
                    (pair as u64, (pair >> 64) as u64)
                })),
            }
            if edges
                .iter()
                .fold(0, |most, edge| edge.0.max(edge.1).max(most))
                > id_last
            {
                return Err(beyond(
                    file,
                    width,
                    range.start,
                    (report.edges, &edges),
                    ids,
                ));
            }
            if ids.ids == Ids::Signed {
                for edge in &mut edges {
                    *edge = (edge.0 ^ SIGN, edge.1 ^ SIGN);
                }
            }
            sink.integers(&edges, EdgeData::default())?;
            report.edges += edges.len() as u64;
        }
        limit -= whole.len() as u64;
        if last && !rest.is_empty() {
            let bytes = report.edges * width.pair_bytes() as u64 + kept as u64;
            return Err(file.no_whole_pairs(bytes, width));
        }
        sink.progress(runs.taken() - taken);
        taken = runs.taken();
        if last || limit == 0 {
            report.lines = report.edges;
            return Ok(report);
        }
    }
}

/// The error for the first of `edges` with an id that is not in `ids`.
///
/// `before` edges came before them, the first at byte `start`.
fn beyond(
    file: &InputFile,
    width: IdWidth,
    start: u64,
    (before, edges): (u64, &[(u64, u64)]),
    ids: IdRange,
) -> IngestError {
    let id_last = ids.last();
    let place = edges.iter().position(|edge| edge.0.max(edge.1) > id_last);
    let place = place.unwrap_or(0);
    let id = edges.get(place).map_or(0, |edge| edge.0.max(edge.1));
    let byte = start + (before + place as u64) * width.pair_bytes() as u64;
    let rule = match (ids.below, ids.asked) {
        (Some(below), _) => format!(
            "--vertices-below says that all ids are less than {below}: give a larger number"
        ),
        (None, Some(asked)) => format!("this is no {} (--ids)", asked.name()),
        (None, None) => "ids of other files are negative: no integer type has both".to_string(),
    };
    let problem = format!("the pair at byte {byte} has id {id}, and {rule}");
    IngestError::input(&file.path, problem)
}
