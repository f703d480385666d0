//! Source lists: which sources of each batch have edges to each of some groups of columns, so that the group needs their messages.
//!
//! Where the groups are other ranks they are the filtering lists of DFOGraph (section 4.3), where they are the column groups of a rank,
//! the dispatch graph (section 4.2). A list has a bit for each source of its batch, or the numbers of those that are on it where these
//! take less, as the paper has CSR and DCSR; nothing where all of them are. Lists come from the fan-out lists of the stored graph, and are
//! in memory where they have room, else on disk.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use graphmill_graph::{FanoutChunk, PageCache};
use graphmill_raw::{AlignedBuffer, lock};
use graphmill_storage::{Buffer, Lease};
use zerocopy::{FromBytes, IntoBytes};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::messages::routing_size::{TableMemory, WINDOW};
use crate::messages::run_codec::{RunEncoding, Sources, WORD, is_listed, put_numbers};
use crate::messages::spill::{RunRef, SpillCursor, SpillFile};

/// The sources and the groups of columns that lists are made of.
pub(crate) struct ColumnGroups<'g> {
    /// The batches of the sources.
    pub(crate) of: Range<usize>,
    pub(crate) count: usize,
    pub(crate) bytes: TableMemory,
    /// Number of concurrent readers of lists.
    pub(crate) readers: usize,
    /// Returns the group of each column that a batch has edges to.
    pub(crate) group_of: Box<dyn Fn(usize) -> Vec<Option<usize>> + 'g>,
}

/// The sources of one batch that one group needs.
#[derive(Clone, Copy, Debug)]
struct SourceList {
    group: u32,
    count: u32,
    /// Where in memory, if all lists are there; a multiple of 8.
    at: u64,
    /// Where on disk.
    run: Option<RunRef>,
}

/// Returns the bytes of a list of `count` out of `span` sources.
pub(crate) fn list_bytes(count: u64, span: usize) -> usize {
    match () {
        () if count == span as u64 => 0,
        () if is_listed(count, span) => (count as usize * 4).next_multiple_of(8),
        () => span.div_ceil(WORD) * 8,
    }
}

/// The lists of all batches.
pub(crate) struct RoutingTable {
    /// The first batch.
    first: usize,
    /// Of each batch, where its lists begin, in order of groups; and where the last ones end.
    begins: Vec<usize>,
    lists: Vec<SourceList>,
    spans: Vec<usize>,
    /// Sources on the lists of each group, and bytes of these on disk.
    pub(crate) listed: Vec<u64>,
    pub(crate) on_disk: Vec<u64>,
    data: Data,
    _lease: Lease,
}

enum Data {
    Memory(Buffer),
    Disk {
        file: SpillFile,
        /// One a reader.
        cursors: Vec<Mutex<SpillCursor>>,
    },
}

/// Where lists go while they are made.
enum TableBuilder {
    Memory(Buffer),
    Disk(SpillFile, Box<SpillCursor>),
}

impl TableBuilder {
    /// Appends a list to others that take `end` bytes; returns its place on disk, if it is there.
    fn put(
        &mut self,
        count: u64,
        [end, bytes]: [usize; 2],
        put: impl FnOnce(&mut [u8]),
    ) -> Result<Option<RunRef>, EngineError> {
        match self {
            _ if bytes == 0 => Ok(None),
            TableBuilder::Memory(all) => {
                put(&mut all[end..end + bytes]);
                Ok(None)
            }
            TableBuilder::Disk(file, spill_cursor) => {
                let mut buffer = spill_cursor.spare(file)?;
                put(&mut buffer[..bytes]);
                let encoding = RunEncoding {
                    count,
                    sources: Sources::All,
                    bytes,
                };
                let offset = file.more(bytes);
                let run = file.run_ref(encoding, &buffer, offset);
                spill_cursor.write(file, offset, buffer, bytes);
                Ok(Some(run))
            }
        }
    }
}

impl RoutingTable {
    /// Builds the lists of some groups in at most `limit` bytes, or in a file.
    ///
    /// Returns them with the bytes read and written. Returns `None` if `limit` is too small to build them.
    pub(crate) fn build(
        context: &ExecContext,
        groups: &ColumnGroups<'_>,
        path: &Path,
        limit: u64,
    ) -> Result<Option<(Self, [u64; 2])>, EngineError> {
        let (batches, bytes) = (&context.batches, &groups.bytes);
        let words = (batches.widest() as usize).div_ceil(WORD);
        let limit = limit.min(context.budget.available());
        if bytes.least > limit {
            return Ok(None);
        }
        let of_rows = (context.budget).lease("sources that columns need", bytes.rows)?;
        let new_cursor = || {
            let disk = context.graph.disk();
            SpillCursor::new(disk.as_ref(), &context.budget, WINDOW, words * 8)
        };
        let _lease = (context.budget).lease("lists of sources", bytes.entries)?;
        let in_memory = |bytes: u64| (context.budget).buffer("lists of sources", bytes as usize);
        let mut making = match bytes.fits(limit) {
            true => TableBuilder::Memory(in_memory(bytes.lists)?),
            false => {
                let disk = Arc::clone(context.graph.disk());
                let file = SpillFile::create(disk, path, std::iter::empty())?;
                TableBuilder::Disk(file, Box::new(new_cursor()?))
            }
        };
        let mut matrix = vec![0u64; groups.count * words];
        let mut listed = vec![0; groups.count];
        let (mut begins, mut lists, mut end) = (vec![0], Vec::with_capacity(bytes.count), 0);
        let span = |batch| batches.span(batch) as usize;
        let spans: Vec<usize> = groups.of.clone().map(span).collect();
        let mut frames = lock(&context.frames);
        for (batch, &span) in groups.of.clone().zip(&spans) {
            context.ranks.check_stop()?;
            mark(context, &mut frames, batch, groups, (&mut matrix, words))?;
            let rows = matrix.chunks_exact_mut(words).enumerate();
            for (group, row) in rows {
                let row = &mut row[..span.div_ceil(WORD)];
                let count = ones(row);
                if count == 0 {
                    continue;
                }
                let bytes = list_bytes(count, span);
                let put = |out: &mut [u8]| put_list(out, row, count, span);
                let run = making.put(count, [end, bytes], put)?;
                lists.push(SourceList {
                    group: group as u32,
                    count: count as u32,
                    at: end as u64,
                    run,
                });
                listed[group] += count;
                end += bytes;
                row.fill(0);
            }
            begins.push(lists.len());
        }
        let mut traffic = [frames.take_bytes_read(), 0];
        drop((frames, matrix, of_rows));
        let data = match making {
            TableBuilder::Memory(mut all) => {
                // Unless there is no room for both.
                if bytes.should_compact(end as u64)
                    && let Ok(mut own) = in_memory(end as u64)
                {
                    own[..end].copy_from_slice(&all[..end]);
                    all = own;
                }
                Data::Memory(all)
            }
            TableBuilder::Disk(file, mut spill_cursor) => {
                spill_cursor.flush(&file)?;
                let fits = bytes.fits_after_build(end as u64, limit);
                let mut memory = fits.then(|| in_memory(end as u64)).transpose()?;
                if let Some(all) = &mut memory {
                    load(&file, &mut spill_cursor, &mut lists, all)?;
                }
                drop(spill_cursor);
                let [read, written] = file.file.take_traffic();
                traffic = [traffic[0] + read, written];
                match memory {
                    Some(all) => Data::Memory(all),
                    None => {
                        let cursors = (0..groups.readers).map(|_| Ok(Mutex::new(new_cursor()?)));
                        let cursors = cursors.collect::<Result<_, EngineError>>()?;
                        Data::Disk { file, cursors }
                    }
                }
            }
        };
        let mut on_disk = vec![0; groups.count];
        for list in &lists {
            let bytes = |run: RunRef| AlignedBuffer::footprint(run.encoding.bytes);
            on_disk[list.group as usize] += list.run.map_or(0, bytes);
        }
        let lists = RoutingTable {
            first: groups.of.start,
            begins,
            lists,
            spans,
            listed,
            on_disk,
            data,
            _lease,
        };
        Ok(Some((lists, traffic)))
    }

    /// How many groups need the message of a source, in the mean.
    pub(crate) fn fanout(&self) -> f64 {
        let needed: u64 = self.listed.iter().sum();
        needed as f64 / (self.spans.iter().sum::<usize>() as f64).max(1.0)
    }

    /// Returns the bytes of lists that a full pass reads from disk.
    pub(crate) fn all_on_disk(&self) -> u64 {
        self.on_disk.iter().sum()
    }

    /// Bytes read from disk since the last call.
    pub(crate) fn take_bytes_read(&self) -> u64 {
        match &self.data {
            Data::Memory(_) => 0,
            Data::Disk { file, .. } => file.file.take_traffic()[0],
        }
    }

    fn lists_of(&self, batch: usize) -> Range<usize> {
        let number = batch - self.first;
        self.begins[number]..self.begins[number + 1]
    }

    /// The groups that need any message of a batch.
    pub(crate) fn groups_of(&self, batch: usize) -> impl Iterator<Item = usize> {
        let lists = &self.lists[self.lists_of(batch)];
        lists.iter().map(|list| list.group as usize)
    }

    /// The list of a batch for a group: its number among all, and itself.
    fn list(&self, batch: usize, group: usize) -> Option<(usize, &SourceList)> {
        let range = self.lists_of(batch);
        let lists = &self.lists[range.clone()];
        let number = lists.binary_search_by_key(&group, |list| list.group as usize);
        let number = number.ok()?;
        Some((range.start + number, &lists[number]))
    }

    /// True if a group needs any message of a batch.
    pub(crate) fn has(&self, batch: usize, group: usize) -> bool {
        self.list(batch, group).is_some()
    }

    /// Announces that a reader will select messages of a batch for these groups, in this order.
    ///
    /// Lists on disk are read ahead.
    pub(crate) fn want(
        &self,
        batch: usize,
        groups: impl Iterator<Item = usize>,
        reader: usize,
    ) -> Result<(), EngineError> {
        let Data::Disk { file, cursors } = &self.data else {
            return Ok(());
        };
        let spill_cursor = &mut *lock(&cursors[reader]);
        for (number, list) in groups.filter_map(|group| self.list(batch, group)) {
            if let Some(run) = list.run {
                spill_cursor.want(number, run);
            }
        }
        spill_cursor.pump(file)
    }

    /// Selects the sources of a batch that sent a message which a group needs.
    ///
    /// The reader must have announced it. Returns their bits, their number, and the elements scanned.
    pub(crate) fn select(
        &self,
        (batch, group): (usize, usize),
        present: &[u64],
        reader: usize,
        selected: &mut [u64],
    ) -> Result<[u64; 2], EngineError> {
        let Some((number, list)) = self.list(batch, group) else {
            selected.fill(0);
            return Ok([0, 0]);
        };
        let span = self.spans[batch - self.first];
        let count = u64::from(list.count);
        let bytes = list_bytes(count, span);
        match &self.data {
            Data::Memory(all) => {
                let at = list.at as usize;
                Ok(both(&all[at..at + bytes], count, span, present, selected))
            }
            Data::Disk { file, cursors } => match list.run {
                None => Ok(both(&[], count, span, present, selected)),
                Some(_) => {
                    let spill_cursor = &mut *lock(&cursors[reader]);
                    let (buffer, _) = spill_cursor.take(file, number)?;
                    let found = both(&buffer[..bytes], count, span, present, selected);
                    spill_cursor.give_back(file, number, buffer, None)?;
                    Ok(found)
                }
            },
        }
    }
}

/// Reads lists that are on disk into memory.
fn load(
    file: &SpillFile,
    spill_cursor: &mut SpillCursor,
    lists: &mut [SourceList],
    all: &mut Buffer,
) -> Result<(), EngineError> {
    for (number, list) in lists.iter_mut().enumerate() {
        let Some(run) = list.run.take() else {
            continue;
        };
        spill_cursor.want(number, run);
        let (buffer, _) = spill_cursor.take(file, number)?;
        let (at, bytes) = (list.at as usize, run.encoding.bytes);
        all[at..at + bytes].copy_from_slice(&buffer[..bytes]);
        spill_cursor.give_back(file, number, buffer, None)?;
    }
    Ok(())
}

/// Returns the number of bits that are set.
pub(crate) fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Marks in a matrix, of `words` words a row, which sources of a batch each group needs.
fn mark(
    context: &ExecContext,
    frames: &mut PageCache,
    batch: usize,
    groups: &ColumnGroups<'_>,
    (matrix, words): (&mut [u64], usize),
) -> Result<(), EngineError> {
    let (graph, range) = (context.graph, context.batches.range(batch));
    let of_column = (groups.group_of)(batch);
    let mut of_position = Vec::new();
    graph.fanouts_in(graph.forward(), frames, range.clone(), |first, chunk| {
        of_position.clear();
        for position in 0..chunk.union() {
            let column = chunk.batch(position)?;
            of_position.push(of_column.get(column).copied().flatten());
        }
        let end = range.end.min(first + FanoutChunk::VERTICES as u64);
        for v in first.max(range.start)..end {
            let local = (v - range.start) as usize;
            chunk.each((v - first) as usize, |position| {
                if let Some(group) = of_position[position] {
                    matrix[group * words + local / WORD] |= 1 << (local % WORD);
                }
            })?;
        }
        Some(())
    })?;
    Ok(())
}

/// Writes the list of those sources whose bits are set.
fn put_list(out: &mut [u8], row: &[u64], count: u64, span: usize) {
    if !is_listed(count, span) {
        out.copy_from_slice(row.as_bytes());
        return;
    }
    out.fill(0);
    put_numbers(out, row);
}

/// The bits of those sources that are on a list and are present; how many, and the elements looked at.
fn both(list: &[u8], count: u64, span: usize, present: &[u64], selected: &mut [u64]) -> [u64; 2] {
    let mut found = 0;
    if count == span as u64 {
        selected.copy_from_slice(present);
        return [ones(selected), selected.len() as u64];
    }
    if is_listed(count, span) {
        selected.fill(0);
        for source in list.as_chunks().0.iter().take(count as usize) {
            let source = u32::from_ne_bytes(*source) as usize;
            let bit = present[source / WORD] & 1 << (source % WORD);
            selected[source / WORD] |= bit;
            found += u64::from(bit != 0);
        }
        return [found, count];
    }
    let list = <[u64]>::ref_from_bytes(list).unwrap_or(&[]);
    for ((to, word), present) in selected.iter_mut().zip(list).zip(present) {
        *to = word & present;
        found += u64::from(to.count_ones());
    }
    [found, list.len() as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_list_selects_present_sources() {
        for span in [1usize, 63, 64, 1000, 4096] {
            let words = span.div_ceil(WORD);
            let every = |step: usize, from: usize| {
                let mut bits = vec![0u64; words];
                (from..span)
                    .step_by(step)
                    .for_each(|source| bits[source / WORD] |= 1 << (source % WORD));
                bits
            };
            let count = |bits: &[u64]| bits.iter().map(|word| u64::from(word.count_ones())).sum();
            // Bits, numbers, and nothing; the last of fewer than one in 32 among them.
            for step in [1, 2, 31, 32, 33, 40, 999, span] {
                let row = every(step, step / 2);
                let listed = count(&row);
                if listed == 0 {
                    continue;
                }
                let mut list = AlignedBuffer::zeroed(list_bytes(listed, span)).expect("memory");
                if !list.is_empty() {
                    put_list(&mut list, &row, listed, span);
                }
                for present in [every(1, 0), every(3, 1), vec![0; words]] {
                    let wanted: Vec<u64> = row.iter().zip(&present).map(|(a, b)| a & b).collect();
                    let mut selected = vec![!0; words];
                    let [found, _] = both(&list, listed, span, &present, &mut selected);
                    assert_eq!(selected, wanted, "{span}, {step}");
                    assert_eq!(found, count(&wanted));
                }
            }
        }
    }
}
