//! PageRank by vertex-target communication (BlitzG, section II): message buffers, a parser, and two queues for each vertex.
//!
//! A worker fills a message buffer for each rank. A full buffer goes over the fabric. The parser of the receiver puts each message into the
//! queue of its vertex, and in the next superstep each vertex gathers its queue. Each rank is one thread.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use graphmill_fabric::{Fabric, FabricOperation, LocalFabric, local};
use graphmill_graph::StoredGraph;
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Clock, SystemClock};
use rustix::time::{ClockId, clock_gettime};

use crate::queues::Queues;
use crate::rows::{RowScratch, TargetMessage, TargetRows, TargetSink};

/// The channel of message buffers.
const MESSAGES: u16 = 1;
/// Buffers that a rank may receive from each other one at the same time, and send to it.
const IN_FLIGHT: usize = 4;
/// A bit in the first place of a buffer, which counts its messages: no buffer comes after it.
const LAST: u32 = 1 << 31;
/// Bytes of the headers of a frame on the network, for each 1,448 bytes of a buffer.
const FRAME: (u64, u64) = (1514, 1448);

/// A run that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetOptions {
    pub(crate) ranks: usize,
    /// Messages of a buffer, more than a block has.
    pub(crate) buffer: usize,
    /// Messages ahead of the parser whose queues are loaded.
    pub(crate) ahead: usize,
    pub(crate) iterations: usize,
    /// Bytes that a rank sends in a second at most.
    pub(crate) rate: Option<u64>,
}

/// What one superstep took, without the first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TargetTimes {
    pub(crate) messages: u64,
    pub(crate) bytes_sent: u64,
    /// Bytes of queues, message buffers and values of all ranks.
    pub(crate) memory: u64,
    /// CPU seconds of all ranks: until all messages are in queues, and to gather them.
    pub(crate) enqueue: f64,
    pub(crate) gather: f64,
    /// Wall-clock seconds.
    pub(crate) wall: f64,
    /// The sum of all ranks of vertices.
    pub(crate) mass: f64,
}

/// Returns the processor time of the calling thread.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn cpu_seconds() -> f64 {
    cpu_time().as_secs_f64()
}

/// Queues that drop what they get: shows what generation alone takes.
pub(crate) struct NoQueues;

impl Queues for NoQueues {
    const NAME: &'static str = "no queues";
    fn new(_: &[u32]) -> Self {
        NoQueues
    }
    fn prefetch(&self, _: u32) {}
    fn push(&mut self, _: u32, _: f32) {}
    fn gather(&mut self, _: &mut [f32]) {}
    fn bytes(&self) -> usize {
        0
    }
}

/// One rank.
struct TargetRank<'t, Q> {
    fabric: &'t LocalFabric,
    options: TargetOptions,
    clock: &'t SystemClock,
    queues: Q,
    /// For each rank, the buffer that is not full, and its messages.
    open: Vec<(AlignedBuffer, usize)>,
    free: VecDeque<AlignedBuffer>,
    sends: usize,
    receives: usize,
    /// Ranks from which more buffers come.
    awaited: usize,
    bytes_sent: u64,
    /// When all that was sent has gone, at the limited rate.
    gone: Duration,
    failed: Option<String>,
}

impl<'t, Q: Queues> TargetRank<'t, Q> {
    fn new(
        (fabric, clock): (&'t LocalFabric, &'t SystemClock),
        options: TargetOptions,
        queues: Q,
    ) -> Result<Self, Box<dyn Error>> {
        let buffer = || AlignedBuffer::zeroed((1 + options.buffer) * size_of::<TargetMessage>());
        let open = (0..options.ranks).map(|_| Ok((buffer()?, 0)));
        let spare = (0..IN_FLIGHT * (options.ranks - 1)).map(|_| buffer());
        let mut rank = TargetRank {
            fabric,
            options,
            clock,
            queues,
            open: open.collect::<Result<_, Box<dyn Error>>>()?,
            free: spare.collect::<Result<_, _>>()?,
            sends: 0,
            receives: 0,
            awaited: 0,
            bytes_sent: 0,
            gone: Duration::ZERO,
            failed: None,
        };
        for from in (0..options.ranks).filter(|from| *from != fabric.rank()) {
            for _ in 0..IN_FLIGHT {
                rank.receive(from, buffer()?);
            }
        }
        Ok(rank)
    }

    fn receive(&mut self, from: usize, buffer: AlignedBuffer) {
        let receive = FabricOperation::Receive {
            from,
            channel: MESSAGES,
            buffer,
        };
        self.fabric.submit(receive, from as u64);
        self.receives += 1;
    }

    /// Puts the messages of a buffer into queues; returns true if it is the last.
    fn parse(&mut self, buffer: &AlignedBuffer) -> bool {
        let messages = buffer.typed::<TargetMessage>();
        let head = messages[0].vertex;
        let messages = &messages[1..=(head & !LAST) as usize];
        for (i, message) in messages.iter().enumerate() {
            if let Some(later) = messages.get(i + self.options.ahead) {
                self.queues.prefetch(later.vertex);
            }
            self.queues.push(message.vertex, message.value);
        }
        head & LAST != 0
    }

    /// Takes what the fabric has done.
    fn poll(&mut self) {
        while let Some(done) = self.fabric.poll() {
            if let Err(error) = done.result {
                self.failed = Some(error.to_string());
            }
            let Some(buffer) = done.buffer else {
                continue;
            };
            match done.token as usize {
                from if from < self.options.ranks => {
                    self.receives -= 1;
                    self.awaited -= usize::from(self.parse(&buffer));
                    self.receive(from, buffer);
                }
                _ => {
                    self.sends -= 1;
                    self.free.push_back(buffer);
                }
            }
        }
    }

    /// Passes the open buffer of a rank on.
    fn flush(&mut self, to: usize, last: u32) {
        let count = std::mem::take(&mut self.open[to].1);
        self.open[to].0.typed_mut::<TargetMessage>()[0].vertex = count as u32 | last;
        if to == self.fabric.rank() {
            let Ok(none) = AlignedBuffer::zeroed(0) else {
                return;
            };
            let buffer = std::mem::replace(&mut self.open[to].0, none);
            self.parse(&buffer);
            self.open[to].0 = buffer;
            return;
        }
        let next = loop {
            self.poll();
            match self.free.pop_front() {
                Some(free) => break free,
                None if self.failed.is_some() => return,
                None => thread::yield_now(),
            }
        };
        let buffer = std::mem::replace(&mut self.open[to].0, next);
        let range = 0..(1 + count) * size_of::<TargetMessage>();
        if let Some(rate) = self.options.rate {
            let bytes = range.len() as u64 * FRAME.0 / FRAME.1;
            while self.clock.now() < self.gone {
                self.poll();
                thread::yield_now();
            }
            self.gone = self.gone.max(self.clock.now())
                + Duration::from_secs_f64(bytes as f64 / rate as f64);
        }
        self.bytes_sent += range.len() as u64;
        let send = FabricOperation::Send {
            to,
            channel: MESSAGES,
            buffer,
            range,
        };
        self.fabric.submit(send, (self.options.ranks + to) as u64);
        self.sends += 1;
    }

    /// Sends all messages, and waits until the queues have the messages of all ranks.
    fn superstep(
        &mut self,
        rows: &TargetRows,
        values: &[f32],
        scratch: &mut RowScratch,
    ) -> Result<(), Box<dyn Error>> {
        self.awaited += self.options.ranks - 1;
        rows.walk(values, scratch, self);
        for to in 0..self.options.ranks {
            self.flush(to, LAST);
        }
        while (self.awaited > 0 || self.sends > 0) && self.failed.is_none() {
            self.poll();
            thread::yield_now();
        }
        match self.failed.take() {
            Some(failed) => Err(failed.into()),
            None => Ok(()),
        }
    }
}

impl<Q: Queues> TargetSink for TargetRank<'_, Q> {
    fn room(&mut self, rank: usize, messages: usize) -> &mut [TargetMessage] {
        if self.open[rank].1 + messages > self.options.buffer {
            self.flush(rank, 0);
        }
        let (buffer, count) = &mut self.open[rank];
        let begin = 1 + *count;
        *count += messages;
        &mut buffer.typed_mut::<TargetMessage>()[begin..begin + messages]
    }
}

/// Counts the arcs into each vertex of each rank, and out of each own one.
fn degrees(all: &[TargetRows]) -> [Vec<Vec<u32>>; 2] {
    struct Counts(Vec<Vec<u32>>, Vec<TargetMessage>, usize);
    impl Counts {
        fn take(&mut self) {
            for message in self.1.drain(..) {
                self.0[self.2][message.vertex as usize] += 1;
            }
        }
    }
    impl TargetSink for Counts {
        fn room(&mut self, rank: usize, messages: usize) -> &mut [TargetMessage] {
            self.take();
            self.2 = rank;
            self.1.resize(messages, TargetMessage::default());
            &mut self.1
        }
    }
    let of_ranks = || {
        (0..all.len())
            .map(|rank| vec![0; all[0].vertices(rank)])
            .collect::<Vec<_>>()
    };
    let (mut into, mut out) = (Counts(of_ranks(), Vec::new(), 0), of_ranks());
    for rows in all {
        let numbers: Vec<f32> = (0..rows.vertices(rows.rank) as u32)
            .map(f32::from_bits)
            .collect();
        struct Sources<'s>(&'s mut [u32], Vec<TargetMessage>);
        impl TargetSink for Sources<'_> {
            fn room(&mut self, _: usize, messages: usize) -> &mut [TargetMessage] {
                for message in self.1.drain(..) {
                    self.0[message.value.to_bits() as usize] += 1;
                }
                self.1.resize(messages, TargetMessage::default());
                &mut self.1
            }
        }
        let mut scratch = RowScratch::default();
        let mut sources = Sources(&mut out[rows.rank], Vec::new());
        rows.walk(&numbers, &mut scratch, &mut sources);
        sources.room(0, 0);
        rows.walk(&numbers, &mut scratch, &mut into);
        into.take();
    }
    [into.0, out]
}

/// Runs `work` with each part on a thread of its own; returns the outcomes in order.
pub(crate) fn on_threads<P: Send, T: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> Result<T, String> + Sync,
) -> Vec<Result<T, String>> {
    let work = &work;
    thread::scope(|scope| {
        let threads = parts
            .into_iter()
            .map(|part| scope.spawn(move || work(part)));
        let threads: Vec<_> = threads.collect();
        let outcomes = threads.into_iter().map(|thread| {
            let outcome = thread.join();
            outcome.unwrap_or_else(|_| Err("a rank panicked".into()))
        });
        outcomes.collect()
    })
}

/// Runs PageRank; returns the mean times of a superstep.
pub(crate) fn run<Q: Queues + Send>(
    graph: &StoredGraph,
    options: TargetOptions,
) -> Result<TargetTimes, Box<dyn Error>> {
    let all = (0..options.ranks).map(|rank| TargetRows::read(graph, rank, options.ranks));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let [into, out] = degrees(&all);
    let (barrier, clock) = (Barrier::new(options.ranks), SystemClock::new());
    let fabrics = local(options.ranks, 1);
    let of_rank = |rows: &TargetRows,
                   into: &[u32],
                   out: &[u32],
                   fabric: &LocalFabric|
     -> Result<TargetTimes, String> {
        let text = |error: Box<dyn Error>| error.to_string();
        let mut rank = TargetRank::new((fabric, &clock), options, Q::new(into)).map_err(text)?;
        // The queue that is gathered while the other one is received into.
        let mut earlier = Q::new(into);
        let vertices = graph.vertices() as f32;
        let share = |rank: f32, degree: &u32| rank / (*degree).max(1) as f32;
        let mut values: Vec<f32> = out
            .iter()
            .map(|degree| share(1.0 / vertices, degree))
            .collect();
        let (mut sums, mut scratch) = (vec![0.0; values.len()], RowScratch::default());
        let mut times = TargetTimes::default();
        for iteration in 0..=options.iterations {
            if iteration == 1 {
                times = TargetTimes {
                    memory: times.memory,
                    ..TargetTimes::default()
                };
                rank.bytes_sent = 0;
            }
            barrier.wait();
            let (wall, begun) = (clock.now(), cpu_seconds());
            rank.superstep(rows, &values, &mut scratch).map_err(text)?;
            std::mem::swap(&mut rank.queues, &mut earlier);
            barrier.wait();
            let enqueued = cpu_seconds();
            sums.fill(0.0);
            earlier.gather(&mut sums);
            times.mass = 0.0;
            for ((value, sum), degree) in values.iter_mut().zip(&sums).zip(out) {
                let rank = 0.15 / vertices + 0.85 * sum;
                times.mass += f64::from(rank);
                *value = share(rank, degree);
            }
            times.enqueue += enqueued - begun;
            times.gather += cpu_seconds() - enqueued;
            barrier.wait();
            times.wall += (clock.now() - wall).as_secs_f64();
        }
        let buffers =
            (1 + 2 * IN_FLIGHT) * options.ranks * options.buffer * size_of::<TargetMessage>();
        times.memory =
            (rank.queues.bytes() + earlier.bytes() + buffers + 8 * values.len() + rows.bytes())
                as u64;
        times.messages = rows.arcs;
        times.bytes_sent = rank.bytes_sent / options.iterations as u64;
        Ok(times)
    };
    let work = |(rank, fabric): (usize, &LocalFabric)| {
        of_rank(&all[rank], &into[rank], &out[rank], fabric)
    };
    let of_ranks = on_threads(fabrics.iter().enumerate(), work);
    let mut total = TargetTimes::default();
    for times in of_ranks {
        let times = times?;
        let each = options.iterations as f64;
        total.messages += times.messages;
        total.bytes_sent += times.bytes_sent;
        total.memory += times.memory;
        total.enqueue += times.enqueue / each;
        total.gather += times.gather / each;
        total.wall = total.wall.max(times.wall / each);
        total.mass += times.mass;
    }
    Ok(total)
}
