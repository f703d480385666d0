//! The faults of one attempt.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use graphmill_fabric::NetworkModel;
use graphmill_storage::{CancelToken, Fault, FaultKind, On, SimDisk, SplitMix64};

use crate::clock::Ticking;

/// A request to a rank to stop.
#[derive(Debug, Clone, Copy)]
struct CancelFault {
    rank: usize,
    /// The number of the moment, counted per kind of moment.
    nth: u64,
    at: Moment,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// An operation on its disk.
    Operation,
    /// A read of its clock, as between two calls of its driver program.
    Look,
}

/// The faults of an attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Faults of disks, with the number of the disk.
    disks: Vec<(usize, Fault)>,
    pub(crate) network: NetworkModel,
    /// Number of passes after which a rank is asked to stop.
    pub(crate) stop_after: Option<u64>,
    /// Requests to ranks to stop.
    wishes: Vec<CancelFault>,
    /// The number of the checkpoint that the attempt resumed from; 0 is none.
    pub(crate) resumed: Arc<AtomicU64>,
}

impl Faults {
    /// Draws the faults of an attempt that does `operations` operations on a disk without faults.
    pub(crate) fn draw(
        random: &mut SplitMix64,
        disks: usize,
        ranks: usize,
        operations: u64,
    ) -> Faults {
        let mut faults = Faults::default();
        // Early as often as late, and sometimes after the end.
        let spread = 1 << random.below(u64::from(operations.max(2).ilog2()) + 2);
        let nth = 1 + random.below(spread);
        let at = Duration::from_micros(random.below(20_000));
        let rank = random.below(ranks as u64) as usize;
        let other = (rank + 1) % ranks;
        let disk = random.below(disks as u64) as usize;
        let on = [On::Any, On::Read, On::Write, On::Sync, On::Name][random.below(5) as usize];
        let full = [On::Write, On::Write, On::Sync][random.below(3) as usize];
        let later = nth + 1 + random.below(12);
        let mut fail_on = |disk, kind, on, nth, for_good| {
            faults.disks.push((disk, fault(kind, on, nth, for_good)));
        };
        // All disks of the cluster lose power at about the same time.
        if random.below(10) == 0 {
            for disk in 0..disks {
                let nth = nth + random.below(12);
                fail_on(disk, FaultKind::PowerCut, On::Any, nth, true);
            }
            return faults;
        }
        let mut fail = |kind, on, nth, for_good| fail_on(disk, kind, on, nth, for_good);
        // Sometimes a name operation fails too.
        if random.below(6) == 0 {
            fail(FaultKind::Eio, On::Name, 1 + random.below(64), false);
        }
        // One rank alone has no network.
        match random.below(if ranks > 1 { 14 } else { 11 }) {
            0..=3 => fail(FaultKind::PowerCut, On::Any, nth, true),
            4 => fail(FaultKind::Eio, on, nth, false),
            5 => fail(FaultKind::Eio, on, nth, true),
            // Some disks report that they are full only at a sync.
            6 => fail(FaultKind::Enospc, full, nth, true),
            7 => fail(FaultKind::Short, on, nth, false),
            8 => {
                // A later power cut loses bytes whose sync failed.
                fail(FaultKind::Eio, On::Sync, nth, false);
                fail(FaultKind::PowerCut, On::Sync, later, true);
            }
            9 => faults.stop_after = Some(1 + nth % 8),
            10 => {
                let at = [Moment::Operation, Moment::Look][random.below(2) as usize];
                let (nth, later) = match at {
                    Moment::Operation => (nth, later),
                    Moment::Look => (1 + random.below(24), 1 + random.below(48)),
                };
                faults.wishes.push(CancelFault { rank, nth, at });
                // After a second request it stops at once.
                if random.below(3) == 0 {
                    let nth = later;
                    faults.wishes.push(CancelFault { rank, nth, at });
                }
            }
            11 => {
                faults.network.crashes[0] = Some((rank, at));
                if random.below(3) == 0 {
                    let at = at + Duration::from_micros(random.below(2000));
                    faults.network.crashes[1] = Some((other, at));
                }
            }
            12 => faults.network.broken = Some(([rank, other], at)),
            _ => faults.network.silent = Some((rank, at)),
        }
        faults
    }

    /// Draws how datagrams are lost, doubled, late and changed, which harms no attempt.
    pub(crate) fn draw_datagrams(&mut self, random: &mut SplitMix64) {
        let mut one_of = |shares: [u64; 4]| shares[random.below(4) as usize];
        let datagrams = &mut self.network.datagrams;
        datagrams.lost = one_of([0, 10, 50, 300]);
        datagrams.doubled = one_of([0, 0, 20, 200]);
        datagrams.changed = one_of([0, 0, 10, 50]);
        datagrams.late = one_of([0, 50, 300, 500]);
        datagrams.late_by = Duration::from_micros(one_of([100, 300, 1000, 5000]));
    }

    /// Makes faults with one fault of a disk.
    pub(crate) fn of_disk(disk: usize, fault: Fault) -> Faults {
        Faults::default().and_of_disk(disk, fault)
    }

    /// Adds one fault of a disk.
    pub(crate) fn and_of_disk(mut self, disk: usize, fault: Fault) -> Faults {
        self.disks.push((disk, fault));
        self
    }

    /// Makes faults that lose all datagrams from a rank, to one rank or to all.
    pub(crate) fn cutting(from: usize, to: Option<usize>) -> Faults {
        let mut faults = Faults::default();
        faults.network.cut = Some((from, to));
        faults
    }

    /// Makes faults that ask a rank to stop after `passes` passes.
    pub(crate) fn stopping_after(passes: u64) -> Faults {
        Faults {
            stop_after: Some(passes),
            ..Faults::default()
        }
    }

    /// Makes faults with one request to a rank to stop.
    pub(crate) fn asking(rank: usize, nth: u64, at: Moment) -> Faults {
        Faults {
            wishes: vec![CancelFault { rank, nth, at }],
            ..Faults::default()
        }
    }

    /// Plans the faults and the requests to stop, on these disks and clocks.
    pub(crate) fn inject(&self, disks: &[SimDisk], clocks: &[Arc<Ticking>], stops: &[CancelToken]) {
        for (disk, fault) in &self.disks {
            disks[*disk].inject(*fault);
        }
        for CancelFault { rank, nth, at } in &self.wishes {
            match at {
                Moment::Operation => {
                    let disk = disks.get(*rank).unwrap_or(&disks[0]);
                    disk.ask_at(*nth, &stops[*rank]);
                }
                Moment::Look => clocks[*rank].ask_at(*nth, &stops[*rank]),
            }
        }
    }

    /// Ends the faults; a disk that lost power keeps its durable bytes and a part of the others.
    pub(crate) fn leave(&self, disks: &mut [SimDisk], random: &mut SplitMix64) {
        for (number, disk) in disks.iter_mut().enumerate() {
            disk.heal();
            let is_cut =
                |(of, fault): &(usize, Fault)| *of == number && fault.kind == FaultKind::PowerCut;
            if self.disks.iter().any(is_cut) {
                *disk = disk.after_power_cut(random.next_u64());
            }
        }
    }

    /// Returns true if an attempt must succeed despite the faults.
    pub(crate) fn are_harmless(&self) -> bool {
        let network = &self.network;
        let is_harmful = |(_, fault): &(usize, Fault)| fault.kind != FaultKind::Short;
        !self.disks.iter().any(is_harmful)
            && self.stop_after.is_none()
            && self.wishes.is_empty()
            && network.crashes == [None; 2]
            && network.broken.is_none()
            && network.silent.is_none()
    }
}

/// Makes a fault of a disk.
pub(crate) fn fault(kind: FaultKind, on: On, nth: u64, for_good: bool) -> Fault {
    Fault {
        kind,
        on,
        nth,
        for_good,
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (disk, fault) in &self.disks {
            let Fault { kind, on, nth, .. } = fault;
            let from = if fault.for_good {
                " and all after it"
            } else {
                ""
            };
            write!(
                f,
                "{kind:?} of {on:?} operation {nth}{from} of disk {disk} "
            )?;
        }
        let network = &self.network;
        for (rank, at) in network.crashes.iter().flatten() {
            write!(f, "rank {rank} crashes at {at:?} ")?;
        }
        if let Some((ranks, at)) = network.broken {
            write!(f, "ranks {ranks:?} lose each other at {at:?} ")?;
        }
        if let Some((rank, at)) = network.silent {
            write!(f, "rank {rank} is silent from {at:?} on ")?;
        }
        for CancelFault { rank, nth, at } in &self.wishes {
            write!(f, "rank {rank} is asked to stop at {at:?} {nth} ")?;
        }
        match self.stop_after {
            Some(passes) => write!(f, "to stop after {passes} passes"),
            None => Ok(()),
        }
    }
}
