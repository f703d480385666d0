//! The dispatch graph: which runs of a rank's columns need the messages of which sources.
//!
//! For each batch and each run that has edges of it there is a list of the sources that have: a bit for each source of the batch, or
//! their numbers where these take less, as the paper has CSR and DCSR of it; nothing where it is all of them. It comes from
//! the fan-out lists of the stored graph. Which strips make a run depends on memory, so it is made anew for each, in about the time of
//! reading the fan-out lists; it is in memory where it has room, else on disk.

use std::path::Path;
use std::sync::{Arc, Mutex};

use graphmill_graph::{Batches, FRAME_BYTES, FanoutChunk};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, Kind, Lease};
use zerocopy::{FromBytes, IntoBytes};

use crate::active::lock;
use crate::columns::{Columns, Target};
use crate::error::EngineError;
use crate::machine::Machine;
use crate::message::file::{Piece, PieceFile, Window};
use crate::message::piece::{Form, Sources, WORD, each_bit, is_listed};
use crate::wire::exchange::PEERS;

/// Buffers of those who read or write lists.
const WINDOW: usize = 2;
/// Parts of the vertices that are looked at for a guess, and how many vertices of each.
const SAMPLES: u64 = 16;
const SAMPLE_VERTICES: u64 = 4096;
/// A list, and a piece of messages for its run.
pub(crate) const ENTRY_BYTES: u64 = 128;

/// To which run messages go.
pub(crate) struct RunOf {
    runs: usize,
    /// For each batch of this rank, where the sources of each of its strips end, and the run that folds the strip.
    strips: Vec<Vec<(usize, usize)>>,
    first: usize,
}

impl RunOf {
    pub(crate) fn new(columns: &impl Columns, runs: &[Vec<Target>]) -> Self {
        let own = columns.own();
        let mut strips = vec![Vec::new(); own.len()];
        for (run, targets) in runs.iter().enumerate() {
            for target in targets {
                let sources = columns.strip_sources(target.batch, target.strip);
                strips[target.batch - own.start].push((sources.end, run));
            }
        }
        strips.iter_mut().for_each(|of| of.sort_unstable());
        RunOf {
            runs: runs.len(),
            strips,
            first: own.start,
        }
    }

    /// The runs that fold what comes from a batch, by batch of this rank.
    pub(crate) fn from(&self, batch: usize) -> Vec<Option<usize>> {
        let run = |strips: &Vec<(usize, usize)>| {
            let at = strips.partition_point(|(end, _)| *end <= batch);
            strips.get(at).map(|(_, run)| *run)
        };
        self.strips.iter().map(run).collect()
    }

    /// The run of a column of this rank, out of those of [`RunOf::from`].
    fn of(&self, from: &[Option<usize>], column: usize) -> Option<usize> {
        *from.get(column.checked_sub(self.first)?)?
    }

    /// Who sends messages and who needs them, by some of the sources. Whether messages of other ranks are `filtered`.
    pub(crate) fn sample(&self, machine: &Machine, filtered: bool) -> Result<Sample, EngineError> {
        let (graph, vertices) = (machine.graph, machine.batches.vertices());
        let own =
            machine.batches.cut(self.first)..machine.batches.cut(self.first + self.strips.len());
        let step = sample_step(vertices);
        let (mut needed, mut from) = (0u64, 0);
        // Of this rank, and of others.
        let (mut seen, mut come) = ([0u64; 2], [0u64; 2]);
        let mut frames = lock(&machine.frames);
        while from < vertices {
            let range = from..(from + SAMPLE_VERTICES).min(vertices);
            let of_own = own
                .end
                .min(range.end)
                .saturating_sub(own.start.max(range.start));
            seen[0] += of_own;
            seen[1] += range.end - range.start - of_own;
            let mut of_source = Vec::new();
            let mut batch = machine.batches.batch_of(from);
            let mut of_batch = self.from(batch);
            graph.fanouts_in(
                graph.forward(),
                &mut frames,
                range.clone(),
                |first, chunk| {
                    for i in 0..FanoutChunk::VERTICES {
                        let v = first + i as u64;
                        if !range.contains(&v) {
                            continue;
                        }
                        while v >= machine.batches.cut(batch + 1) {
                            batch += 1;
                            of_batch = self.from(batch);
                        }
                        of_source.clear();
                        let (mut is_sound, mut sends) = (true, false);
                        chunk.each(i, |position| match chunk.batch(position) {
                            Some(column) => {
                                sends = true;
                                of_source.extend(self.of(&of_batch, column));
                            }
                            None => is_sound = false,
                        })?;
                        if !is_sound {
                            return None;
                        }
                        of_source.sort_unstable();
                        of_source.dedup();
                        needed += of_source.len() as u64;
                        let comes = match own.contains(&v) || !filtered {
                            true => sends,
                            false => !of_source.is_empty(),
                        };
                        come[usize::from(!own.contains(&v))] += u64::from(comes);
                    }
                    Some(())
                },
            )?;
            from += step;
        }
        machine.arrays.count_read(frames.take_bytes_read());
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        Ok(Sample {
            spread: share(needed, seen[0] + seen[1]),
            messages: [share(come[0], seen[0]), share(come[1], seen[1])],
        })
    }
}

/// What some of the sources say of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Runs that need the message of a source, in the mean.
    pub(crate) spread: f64,
    /// The share of sources whose messages are here once they are active: of this rank's, those that have edges; of the others', those
    /// that have edges to this rank, where messages are filtered.
    pub(crate) messages: [f64; 2],
}

/// From one part of the vertices that is looked at to the next.
fn sample_step(vertices: u64) -> u64 {
    (vertices / SAMPLES).max(SAMPLE_VERTICES)
}

/// Bytes that are read of so many of fan-out lists to look at these parts.
pub(crate) fn sample_bytes(vertices: u64, fanout: u64) -> u64 {
    let parts = vertices.div_ceil(sample_step(vertices));
    let of_vertices = u128::from(fanout) * u128::from(parts * SAMPLE_VERTICES);
    let of_vertices = of_vertices / u128::from(vertices.max(1));
    // Frames at both ends of a part are read whole.
    (of_vertices.min(u128::from(fanout)) as u64 + parts * FRAME_BYTES).min(fanout)
}

/// Bytes of the budget that a dispatch graph takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphBytes {
    /// What is known of one batch while it is made.
    rows: u64,
    /// With its lists on disk.
    pub(crate) least: u64,
    /// At most.
    pub(crate) most: u64,
}

impl GraphBytes {
    /// Of a graph of so many runs and so many cells in their columns.
    pub(crate) fn new(batches: &Batches, workers: usize, cells: u64, runs: usize) -> Self {
        let words = batches.widest().div_ceil(WORD as u64);
        let rows = words.saturating_mul(8 * runs as u64);
        let readers = (workers + PEERS) as u64;
        let window = WINDOW as u64 * AlignedBuffer::footprint(words as usize * 8);
        let least = rows + cells * ENTRY_BYTES + readers * window;
        let span = |batch| batches.span(batch).div_ceil(WORD as u64) * 8;
        let lists: u64 = (0..batches.len()).map(span).sum();
        let pages = lists.saturating_mul(runs as u64).div_ceil(4096);
        GraphBytes {
            rows,
            least,
            most: least.saturating_add(pages.saturating_mul(4096)),
        }
    }

    /// Whether lists of so many bytes have room in memory, in the place of what made them.
    pub(crate) fn loads(&self, lists: u64, room: u64) -> bool {
        let lists = AlignedBuffer::footprint(lists as usize);
        (self.least - self.rows).saturating_add(lists) <= room
    }
}

/// The sources of one batch that one run needs.
#[derive(Clone, Copy, Debug)]
struct List {
    run: u32,
    count: u32,
    /// Where in memory, if all lists are there; a multiple of 8.
    at: u64,
    /// Where on disk.
    piece: Option<Piece>,
}

/// Bytes of a list of so many out of so many sources.
pub(crate) fn list_bytes(count: u64, span: usize) -> usize {
    match () {
        () if count == span as u64 => 0,
        () if is_listed(count, span) => (count as usize * 4).next_multiple_of(8),
        () => span.div_ceil(WORD) * 8,
    }
}

/// The lists of all batches.
pub(crate) struct DispatchGraph {
    /// Of each batch, where its lists begin, in order of runs; and where the last ones end.
    begins: Vec<usize>,
    lists: Vec<List>,
    spans: Vec<usize>,
    data: Data,
    _lease: Lease,
}

enum Data {
    Memory(Buffer),
    Disk {
        file: PieceFile,
        /// One a worker, and one for what comes from each of the ranks at the same time.
        windows: Vec<Mutex<Window>>,
    },
}

impl DispatchGraph {
    /// The graph of a rank's runs in at most so much memory, and the bytes read and written for it; `None` where that is not enough to
    /// make it.
    pub(crate) fn build(
        machine: &Machine,
        run_of: &RunOf,
        path: &Path,
        room: u64,
    ) -> Result<Option<(Self, [u64; 2])>, EngineError> {
        let batches = &machine.batches;
        let words = (batches.widest() as usize).div_ceil(WORD);
        let cells = machine.all_own_cells().count();
        let workers = machine.workers.count();
        let bytes = GraphBytes::new(batches, workers, cells as u64, run_of.runs);
        let room = room.min(machine.budget.available());
        if bytes.least > room {
            return Ok(None);
        }
        let of_rows = (machine.budget).lease("runs that need messages", bytes.rows)?;
        let entries = cells as u64 * ENTRY_BYTES;
        let _lease = (machine.budget).lease("lists of sources that runs need", entries)?;
        let disk = machine.graph.disk();
        let new_window = || Window::new(disk.as_ref(), &machine.budget, WINDOW, words * 8);
        let file = PieceFile::create(Arc::clone(disk), path, std::iter::empty())?;
        let mut window = new_window()?;
        let mut matrix = vec![0u64; run_of.runs * words];
        let (mut begins, mut lists, mut end) = (vec![0], Vec::with_capacity(cells), 0);
        let spans: Vec<usize> = (0..batches.len())
            .map(|b| batches.span(b) as usize)
            .collect();
        let graph = machine.graph;
        let mut frames = lock(&machine.frames);
        for (batch, &span) in spans.iter().enumerate() {
            machine.check_stop()?;
            let from = run_of.from(batch);
            let range = batches.range(batch);
            let mut runs = Vec::new();
            graph.fanouts_in(
                graph.forward(),
                &mut frames,
                range.clone(),
                |first, chunk| {
                    runs.clear();
                    for position in 0..chunk.union() {
                        runs.push(run_of.of(&from, chunk.batch(position)?));
                    }
                    let end = range.end.min(first + FanoutChunk::VERTICES as u64);
                    for v in first.max(range.start)..end {
                        let local = (v - range.start) as usize;
                        chunk.each((v - first) as usize, |position| {
                            if let Some(run) = runs[position] {
                                matrix[run * words + local / WORD] |= 1 << (local % WORD);
                            }
                        })?;
                    }
                    Some(())
                },
            )?;
            for (run, row) in matrix.chunks_exact_mut(words).enumerate() {
                let row = &mut row[..span.div_ceil(WORD)];
                let count = row.iter().map(|word| u64::from(word.count_ones())).sum();
                if count == 0 {
                    continue;
                }
                let bytes = list_bytes(count, span);
                let mut piece = None;
                if bytes > 0 {
                    let mut buffer = window.spare(&file)?;
                    put_list(&mut buffer[..bytes], row, count, span);
                    let form = Form {
                        count,
                        sources: Sources::Known,
                        bytes,
                    };
                    let offset = file.more(bytes);
                    piece = Some(file.piece(form, &buffer, offset));
                    window.write(&file, offset, buffer, bytes);
                }
                lists.push(List {
                    run: run as u32,
                    count: count as u32,
                    at: end,
                    piece,
                });
                end += bytes as u64;
                row.fill(0);
            }
            begins.push(lists.len());
        }
        window.flush(&file)?;
        let read = frames.take_bytes_read();
        drop((frames, matrix, of_rows));
        let (mut traffic, data);
        if bytes.loads(end, room) {
            let mut all = machine.tiers.buffer(
                Kind::Messages,
                &machine.budget,
                "lists of sources",
                end as usize,
            )?;
            for (number, list) in lists.iter_mut().enumerate() {
                let Some(piece) = list.piece.take() else {
                    continue;
                };
                window.want(number, piece);
                let (buffer, _) = window.take(&file, number)?;
                let at = list.at as usize;
                all[at..at + piece.form.bytes].copy_from_slice(&buffer[..piece.form.bytes]);
                window.give_back(&file, number, buffer, None)?;
            }
            traffic = file.take_traffic();
            data = Data::Memory(all);
        } else {
            drop(window);
            let windows = (0..workers + PEERS).map(|_| Ok(Mutex::new(new_window()?)));
            let windows = windows.collect::<Result<_, EngineError>>()?;
            traffic = file.take_traffic();
            data = Data::Disk { file, windows };
        }
        traffic.0 += read;
        let graph = DispatchGraph {
            begins,
            lists,
            spans,
            data,
            _lease,
        };
        Ok(Some((graph, [traffic.0, traffic.1])))
    }

    /// Bytes of lists that a pass reads from disk, if it dispatches all messages.
    pub(crate) fn on_disk(&self) -> u64 {
        let bytes = |list: &List| {
            list.piece
                .map_or(0, |piece| AlignedBuffer::footprint(piece.form.bytes))
        };
        self.lists.iter().map(bytes).sum()
    }

    /// How many runs need the message of a source, in the mean.
    pub(crate) fn spread(&self) -> f64 {
        let needed: u64 = self.lists.iter().map(|list| u64::from(list.count)).sum();
        needed as f64 / (self.spans.iter().sum::<usize>() as f64).max(1.0)
    }

    /// Bytes read from disk since the last call.
    pub(crate) fn take_bytes_read(&self) -> u64 {
        match &self.data {
            Data::Memory(_) => 0,
            Data::Disk { file, .. } => file.take_traffic().0,
        }
    }

    /// The runs that need any message of a batch.
    pub(crate) fn runs_of(&self, batch: usize) -> impl Iterator<Item = usize> {
        let lists = &self.lists[self.begins[batch]..self.begins[batch + 1]];
        lists.iter().map(|list| list.run as usize)
    }

    fn list(&self, batch: usize, run: usize) -> Option<(usize, &List)> {
        let lists = &self.lists[self.begins[batch]..self.begins[batch + 1]];
        let number = lists.binary_search_by_key(&run, |list| list.run as usize);
        number.ok().map(|number| (number, &lists[number]))
    }

    /// Says that a worker will select what such runs need of a batch, in this order: their lists are read ahead where they are on disk.
    pub(crate) fn want(
        &self,
        batch: usize,
        runs: impl Iterator<Item = usize>,
        worker: usize,
    ) -> Result<(), EngineError> {
        let Data::Disk { file, windows } = &self.data else {
            return Ok(());
        };
        let window = &mut *lock(&windows[worker]);
        for (number, list) in runs.filter_map(|run| self.list(batch, run)) {
            if let Some(piece) = list.piece {
                window.want(number, piece);
            }
        }
        window.pump(file)
    }

    /// Selects the sources of a batch that sent a message which a run needs, as the worker said it would: their bits; how many there are, and
    /// the elements that were looked at.
    pub(crate) fn select(
        &self,
        (batch, run): (usize, usize),
        present: &[u64],
        worker: usize,
        selected: &mut [u64],
    ) -> Result<[u64; 2], EngineError> {
        let Some((number, list)) = self.list(batch, run) else {
            selected.fill(0);
            return Ok([0, 0]);
        };
        let span = self.spans[batch];
        let count = u64::from(list.count);
        let bytes = list_bytes(count, span);
        match &self.data {
            Data::Memory(all) => {
                let at = list.at as usize;
                Ok(both(&all[at..at + bytes], count, span, present, selected))
            }
            Data::Disk { file, windows } => match list.piece {
                None => Ok(both(&[], count, span, present, selected)),
                Some(_) => {
                    let window = &mut *lock(&windows[worker]);
                    let (buffer, _) = window.take(file, number)?;
                    let found = both(&buffer[..bytes], count, span, present, selected);
                    window.give_back(file, number, buffer, None)?;
                    Ok(found)
                }
            },
        }
    }
}

/// Writes the list of those sources whose bits are set.
fn put_list(out: &mut [u8], row: &[u64], count: u64, span: usize) {
    if !is_listed(count, span) {
        out.copy_from_slice(row.as_bytes());
        return;
    }
    out.fill(0);
    let mut out = out.chunks_exact_mut(4);
    each_bit(row, |source| {
        if let Some(out) = out.next() {
            out.copy_from_slice(&(source as u32).to_ne_bytes());
        }
    });
}

/// The bits of those sources that are on a list and are present; how many, and the elements looked at.
fn both(list: &[u8], count: u64, span: usize, present: &[u64], selected: &mut [u64]) -> [u64; 2] {
    let mut found = 0;
    if count == span as u64 {
        selected.copy_from_slice(present);
        found = selected
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        return [found, selected.len() as u64];
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
