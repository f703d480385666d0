//! Decoded lists: the destinations of every source of every cell as plain arrays, for sparse passes.
//!
//! They are made when all cells are in memory and the budget has room to spare: a seek is then two loads where a
//! packed block has to be picked apart. Dense passes do not use them: packed blocks move fewer bytes and are faster.

use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, SourceIndex};
use graphmill_raw::{AlignedBuffer, Segments};
use graphmill_storage::{Job, JobError, Lease, Step, Worker};

use crate::engine::{Machine, run};
use crate::error::EngineError;
use crate::pins::Pins;

/// The lists of all cells.
pub(crate) struct Lists {
    /// Destinations, batch-local, in order of columns, cells and edges.
    destinations: AlignedBuffer,
    /// For each cell with a bitmap: where the list of each of its sources begins among its edges, and where the last ends.
    begins: AlignedBuffer,
    /// Where the destinations of each column begin.
    columns: Vec<usize>,
    /// Where the begins of each cell of each column are.
    cells: Vec<Vec<usize>>,
    _leases: [Lease; 2],
}

impl Lists {
    /// Decodes all cells, if that takes at most `bytes` of the budget; they are pinned.
    pub(crate) fn decode(
        machine: &Machine,
        pins: &Pins,
        bytes: u64,
    ) -> Result<Option<Self>, EngineError> {
        let graph = &machine.graph;
        let (mut columns, mut cells) = (vec![0], Vec::new());
        let (mut edges, mut sources) = (0u64, 0u64);
        for batch in 0..machine.batches.len() {
            let column = graph.column(batch);
            let mut of_column = Vec::with_capacity(column.cells().len() + 1);
            for cell in column.cells() {
                if cell.edges() > u64::from(u32::MAX) {
                    return Ok(None);
                }
                of_column.push(sources as usize);
                sources += cell.edges().min(machine.batches.span(cell.source_batch())) + 1;
            }
            of_column.push(sources as usize);
            edges += column.edges();
            columns.push(edges as usize);
            cells.push(of_column);
        }
        if (edges + sources).saturating_mul(4) > bytes {
            return Ok(None);
        }
        let room = |numbers: u64| machine.budget.buffer("decoded lists", 4 * numbers as usize);
        let (destinations, first) = room(edges)?.into_parts();
        let (begins, second) = room(sources)?.into_parts();
        let begin_cuts = (0..=cells.len())
            .map(|batch| match cells.get(batch) {
                Some(cells) => cells.first().copied().unwrap_or(0),
                None => sources as usize,
            })
            .collect();
        let job = Decode {
            machine,
            pins,
            destinations: Segments::new(destinations, columns.clone()),
            begins: Segments::new(begins, begin_cuts),
            cells: &cells,
            next: AtomicUsize::new(0),
        };
        run(machine, &job)?;
        let (destinations, begins) = (job.destinations.into_buffer(), job.begins.into_buffer());
        Ok(Some(Lists {
            destinations,
            begins,
            columns,
            cells,
            _leases: [first, second],
        }))
    }

    /// The list of the source of rank `rank` in a cell, and the number of its first edge within the cell.
    #[inline]
    pub(crate) fn list(
        &self,
        column: usize,
        position: usize,
        before: u64,
        rank: u32,
    ) -> Option<(&[u32], usize)> {
        let at = self.cells.get(column)?.get(position)? + rank as usize;
        let [from, to] = *self.begins.typed::<u32>().get(at..at + 2)? else {
            return None;
        };
        let start = self.columns.get(column)? + before as usize;
        let list = self
            .destinations
            .typed::<u32>()
            .get(start + from as usize..start + to as usize)?;
        Some((list, from as usize))
    }
}

/// Decoding as a job: each step is one column.
struct Decode<'p> {
    machine: &'p Machine,
    pins: &'p Pins,
    destinations: Segments<u32>,
    begins: Segments<u32>,
    cells: &'p [Vec<usize>],
    next: AtomicUsize,
}

impl Decode<'_> {
    fn column(&self, number: usize) -> Result<(), EngineError> {
        let machine = self.machine;
        let (Some(mut destinations), Some(mut begins)) =
            (self.destinations.write(number), self.begins.write(number))
        else {
            return Ok(());
        };
        let mut scratch = Box::new([0; BLOCK_EDGES_MAX]);
        let mut sources = Box::new([0; BLOCK_EDGES_MAX]);
        let mut filled = 0;
        for (position, cell) in machine.graph.column(number).cells().iter().enumerate() {
            let broken = || machine.graph.broken_cell(number, cell);
            let (Some((mut bytes, _)), Some(index)) = (
                self.pins.cell(machine, number, position),
                self.pins.index(machine, number, position),
            ) else {
                return Err(broken().into());
            };
            let ranked = SourceIndex::parse(index)
                .map_err(|e| machine.broken(number, cell, &e))?
                .has_bitmap();
            let places = &self.cells[number];
            let from = places[position] - places[0];
            let room = places[position + 1] - places[position];
            let begins = &mut begins[from..from + room];
            let offset = machine.global_offset(cell.source_batch(), number);
            let (mut edges, mut groups, mut last) = (0usize, 0usize, None);
            while !bytes.is_empty() {
                let parsed = BlockView::parse(bytes, offset)
                    .map_err(|e| machine.broken(number, cell, &e))?;
                let (block, used) = parsed.ok_or_else(broken)?;
                bytes = &bytes[used..];
                let count = block.sources(&mut sources);
                let into = destinations
                    .get_mut(filled + edges..filled + edges + block.edges())
                    .ok_or_else(broken)?;
                let mut full = false;
                block.for_each_group(
                    &mut scratch,
                    &sources[..count],
                    |_| true,
                    |group, list, first| {
                        if let Some(into) = into.get_mut(first..first + list.len()) {
                            into.copy_from_slice(list);
                        }
                        if ranked && last != Some(sources[group]) {
                            last = Some(sources[group]);
                            match begins.get_mut(groups) {
                                Some(begin) => *begin = (edges + first) as u32,
                                None => full = true,
                            }
                            groups += 1;
                        }
                    },
                );
                if full {
                    return Err(broken().into());
                }
                edges += block.edges();
            }
            if edges as u64 != cell.edges() {
                return Err(broken().into());
            }
            if ranked {
                *begins.get_mut(groups).ok_or_else(broken)? = edges as u32;
            }
            filled += edges;
        }
        Ok(())
    }
}

impl Job for Decode<'_> {
    fn step(&self, _: &mut Worker) -> Result<Step, JobError> {
        self.machine.check_stop()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.cells.len() {
            return Ok(Step::Finished);
        }
        self.column(number)?;
        Ok(Step::Worked)
    }
}
