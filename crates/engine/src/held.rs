//! What an engine holds of its graph from one pass to the next, whatever the program: pinned cells, classes of degrees.
//!
//! Cells are pinned when a dense pass comes, which reads them all anyway, or when sparse passes have read so much that
//! it is worth it: a search that meets ten vertices reads the frames of these, however large memory is.

use graphmill_graph::Cell;

use crate::degree_classes::DegreeClasses;
use crate::error::EngineError;
use crate::machine::{Machine, Ways};
use crate::pins::Pins;

/// Dense passes that would be pulls if only the turned graph were in memory, before it is loaded: about as many as the loading
/// takes the time of.
const PULLS_MISSED: u32 = 4;

/// A byte that a sparse pass seeks takes as long as so many that are read one after the other.
const SEEK_COST: u64 = 8;

/// What is held of a graph as it is stored, and with its arcs turned round.
#[derive(Default)]
pub(crate) struct Held {
    ways: [OfWay; 2],
    /// Weights are pinned too.
    weighted: bool,
    /// Bytes read to fill it that no pass has accounted for.
    read: u64,
    /// Passes that would have been pulls over the turned graph.
    pulls_missed: u32,
}

/// What is held of a graph one way round.
#[derive(Default)]
pub(crate) struct OfWay {
    pub(crate) pins: Pins,
    /// The pins are filled with all that there was room for.
    filled: bool,
    pub(crate) degrees: Option<DegreeClasses>,
    /// Bytes that sparse passes have read.
    sought: u64,
    /// Bytes of all cells and indices, once they were asked for.
    whole: Option<u64>,
}

impl OfWay {
    /// Whether all cells are in memory; `None` as long as nothing is pinned.
    pub(crate) fn all(&self) -> Option<bool> {
        self.filled.then(|| self.pins.all())
    }
}

impl Held {
    pub(crate) fn way(&self, turned: bool) -> &OfWay {
        &self.ways[usize::from(turned)]
    }
    /// Whether the cells of both ways round are in memory, or are worth loading where there may be room for them.
    pub(crate) fn both(&self) -> bool {
        match [&self.ways[0], &self.ways[1]].map(OfWay::all) {
            [Some(true), None] => self.pulls_missed >= PULLS_MISSED,
            [stored, turned] => turned == Some(true) && stored != Some(false),
        }
    }
    /// Takes note of a pass that would have been a pull over the turned graph.
    pub(crate) fn miss_pull(&mut self) {
        self.pulls_missed += 1;
    }
    /// Bytes of pinned cells.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.ways.iter().map(|way| way.pins.bytes()).sum()
    }
    /// Whether a program that asks for weights, or does not, can work with what is pinned.
    pub(crate) fn suits(&self, weighted: bool) -> bool {
        self.weighted || !weighted
    }
    /// Bytes read to fill it since the last call.
    pub(crate) fn take_bytes_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }
    /// Gives the memory of pinned cells back.
    pub(crate) fn release_pins(&mut self) {
        for way in &mut self.ways {
            let degrees = way.degrees.take();
            *way = OfWay {
                degrees,
                ..OfWay::default()
            };
        }
    }
    /// Gives all memory back.
    pub(crate) fn release(&mut self) {
        let read = self.read;
        *self = Held::default();
        self.read = read;
    }

    /// Loads the classes of degrees of each way round.
    pub(crate) fn load_degrees(&mut self, ways: Ways<'_>) -> Result<(), EngineError> {
        for (machine, way) in ways.each().zip(&mut self.ways) {
            if way.degrees.is_none() {
                let (degrees, read) = DegreeClasses::load(&machine)?;
                way.degrees = Some(degrees);
                self.read += read;
            }
        }
        Ok(())
    }

    /// Takes note of what a sparse pass read.
    pub(crate) fn sought(&mut self, turned: bool, bytes: u64) {
        self.ways[usize::from(turned)].sought += bytes;
    }

    /// Whether sparse passes have read so much that filling the pins with so many bytes is worth it.
    pub(crate) fn earned(
        &mut self,
        machine: &Machine,
        turned: bool,
        weighted: bool,
        room: u64,
    ) -> bool {
        let way = &mut self.ways[usize::from(turned)];
        let width = match weighted {
            true => machine.graph.edge_kind().bytes() as u64,
            false => 0,
        };
        let bytes = |cell: &Cell| cell.data_bytes() + cell.index_bytes() + cell.edges() * width;
        let whole = *way.whole.get_or_insert_with(|| {
            let columns = machine.graph.forward().columns().iter();
            columns.flat_map(|column| column.cells()).map(bytes).sum()
        });
        whole.min(room) <= way.sought.saturating_mul(SEEK_COST)
    }

    /// Pins cells of the graph one way round, in at most so many bytes of the budget.
    pub(crate) fn pin(
        &mut self,
        machine: &Machine,
        turned: bool,
        weighted: bool,
        room: u64,
    ) -> Result<(), EngineError> {
        let way = &mut self.ways[usize::from(turned)];
        way.pins = Pins::fill(machine, weighted, room)?;
        way.filled = true;
        self.weighted = weighted;
        self.read += way.pins.read();
        Ok(())
    }
}
