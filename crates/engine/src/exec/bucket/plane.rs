//! The data plane of a rank: its exchange of buckets, the lanes of all ranks, and the roles of threads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::bucket::{
    BUCKET_BYTES, BucketExchange, BucketLink, BucketSeal, DpdkLink, KEY_BYTES, LinkPorts,
    LocalLink, RECEIVE_BYTES, UdpSockets,
};
use graphmill_fabric::protocol_error;
use graphmill_graph::StoredGraph;
use graphmill_raw::AlignedBuffer;
use graphmill_storage::Lease;

use crate::comm::communicator::Communicator;
use crate::config::{BucketOptions, CombineChoice, LinkChoice};
use crate::context::EngineState;
use crate::error::{EngineError, ensure};
use crate::exec::bucket::lanes::LaneCuts;
use crate::memory::buckets::{LANES_MAX, exchange_shape, queued_datagrams, role_counts};

/// Time after which a device that is not up counts as broken.
const CONNECT: Duration = Duration::from_secs(10);
/// Time without an acknowledgement after which a rank is silent.
///
/// Longer than the silence of a fabric, which names a rank that hangs: other ranks may wait for that one and acknowledge nothing.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);

/// Which threads have which roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Workers, sender threads and lanes.
    pub(crate) counts: [usize; 3],
    /// The thread of the first of each.
    firsts: [usize; 3],
}

impl Roles {
    /// Returns the roles of `threads` threads: all for each, unless `asked` gives each thread one.
    pub(crate) fn new(threads: usize, asked: Option<[usize; 3]>) -> Self {
        Roles {
            counts: role_counts(threads, asked),
            firsts: asked.map_or([0; 3], |[work, send, _]| [0, work, work + send]),
        }
    }

    /// The workers, sender threads or lanes of one of `threads` threads.
    pub(crate) fn of(
        &self,
        role: usize,
        thread: usize,
        threads: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        let first = (thread + threads - self.firsts[role] % threads) % threads;
        (first..self.counts[role]).step_by(threads)
    }
}

/// The data plane of one rank.
pub(crate) struct BucketPlane {
    pub(crate) exchange: BucketExchange,
    pub(crate) lanes: LaneCuts,
    pub(crate) roles: Roles,
    pub(crate) combine: CombineChoice,
    _leases: Vec<Lease>,
}

impl BucketPlane {
    /// Joins the data planes of all ranks. Every rank calls it.
    pub(crate) fn join(
        common: &EngineState,
        graph: &StoredGraph,
        options: BucketOptions,
    ) -> Result<Self, EngineError> {
        let (ranks, budget) = (&common.ranks, &common.budget);
        let roles = Roles::new(common.workers.count(), options.threads);
        ensure(
            roles
                .counts
                .iter()
                .all(|count| (1..=LANES_MAX).contains(count)),
            || EngineError::Roles,
        )?;
        let counts = ranks.gather(vec![roles.counts[2] as u8])?;
        let counts: Vec<usize> = counts
            .iter()
            .map(|of| of.first().copied().unwrap_or(0).into())
            .collect();
        let lanes = LaneCuts::new(graph, ranks, &counts);
        if lanes.widest(&common.batches) > u64::from(u32::MAX) {
            return Err(EngineError::TooFewLanes);
        }
        let shape = exchange_shape(ranks.rank(), lanes.counts(), roles.counts);
        let mut leases = vec![budget.lease("rings of buckets", shape.ring_bytes())?];
        let mut memory = |what, bytes| {
            let (memory, lease) = budget.buffer(what, bytes)?.into_parts();
            leases.push(lease);
            Ok::<_, EngineError>(memory)
        };
        let buckets = memory("buckets", shape.bytes())?;
        let (key, job) = key_and_job(ranks)?;
        let (senders, own) = (roles.counts[1], roles.counts[2]);
        // In memory, if all ranks are in this process.
        let queued = queued_datagrams(ranks.count());
        let local = match &ranks.fabric {
            None => Some(Box::new(LocalLink::new(&shape.lanes, queued)) as Box<dyn BucketLink>),
            Some(fabric) if options.link != LinkChoice::Udp => {
                fabric.bucket_link(job, &shape.lanes, queued)
            }
            Some(_) => None,
        };
        let has_queues = match options.link {
            LinkChoice::Udp => false,
            LinkChoice::Dpdk => true,
            LinkChoice::Auto | LinkChoice::Local => local.is_some(),
        };
        let queues = if has_queues {
            own * queued * BUCKET_BYTES
        } else {
            0
        };
        let queues = budget.lease("queues of datagrams", queues as u64)?;
        let (ports, is_local) = match (options.link, local) {
            (LinkChoice::Auto | LinkChoice::Local, Some(link)) => {
                (link.ports(ranks.rank(), senders, own), true)
            }
            (LinkChoice::Dpdk, Some(link)) if ranks.fabric.is_none() => {
                (link.ports(ranks.rank(), senders, own), true)
            }
            (LinkChoice::Local, None) => return Err(EngineError::NoLocalLink),
            (LinkChoice::Dpdk, Some(_)) => return Err(EngineError::OneDpdk),
            (LinkChoice::Dpdk, None) => {
                let device = options.dpdk_device();
                let [all, packets] = DpdkLink::memory(device, ranks.count());
                let packets = memory("packets", packets)?;
                leases.push(budget.lease("DPDK", (all - packets.len()) as u64)?);
                (
                    dpdk_ports(common, device, (senders, own), job, packets)?,
                    false,
                )
            }
            (LinkChoice::Auto | LinkChoice::Udp, _) => {
                let buffers = (0..own).map(|_| memory("received datagrams", RECEIVE_BYTES));
                let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
                (udp_ports(common, options, (senders, own), buffers)?, false)
            }
        };
        let ports = match options.rate {
            None => ports,
            Some(rate) => {
                let clock = Arc::clone(&common.clock);
                ports.shaped(rate, Arc::new(move || clock.now()))
            }
        };
        let seal = match is_local || options.plain {
            true => BucketSeal::plain(job),
            false => BucketSeal::sealed(&key).ok_or(EngineError::NoKey)?,
        };
        leases.push(queues);
        let exchange =
            BucketExchange::new(shape, seal, ports, buckets).ok_or(EngineError::Broken)?;
        Ok(BucketPlane {
            exchange,
            lanes,
            roles,
            combine: options.combine,
            _leases: leases,
        })
    }
}

/// Draws a key and a word that names the job, the same at every rank. Others may see the word.
fn key_and_job(ranks: &Communicator) -> Result<([u8; KEY_BYTES], u64), EngineError> {
    let mut drawn = [0; KEY_BYTES + size_of::<u64>()];
    if ranks.rank() == 0 {
        BucketSeal::draw_key(&mut drawn).ok_or(EngineError::NoKey)?;
    }
    let all = ranks.gather(drawn.to_vec())?;
    let of_first = all.first().ok_or_else(protocol_error)?;
    let (key, job) = of_first
        .split_first_chunk::<KEY_BYTES>()
        .ok_or_else(protocol_error)?;
    let job = job.try_into().map_err(|_| protocol_error())?;
    Ok((*key, u64::from_le_bytes(job)))
}

/// Starts DPDK, and connects to the other ranks.
fn dpdk_ports(
    common: &EngineState,
    device: &str,
    (senders, lanes): (usize, usize),
    job: u64,
    packets: AlignedBuffer,
) -> Result<LinkPorts, EngineError> {
    let ranks = &common.ranks;
    let link = DpdkLink::start(device, [ranks.rank(), ranks.count()], job, packets)?;
    let heard = ranks.gather(link.address())?;
    let wait = |time| common.clock.wait(time);
    Ok(link.connect(&heard, [senders, lanes], CONNECT, &wait)?)
}

/// Binds sockets, and tells the other ranks their addresses.
fn udp_ports(
    common: &EngineState,
    options: BucketOptions,
    (senders, lanes): (usize, usize),
    buffers: Vec<AlignedBuffer>,
) -> Result<LinkPorts, EngineError> {
    let ip = options.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    ensure(!ip.is_unspecified(), || EngineError::NoAddress {
        address: ip,
    })?;
    let link = |source| EngineError::Link { source };
    let sockets = UdpSockets::bind(ip, senders, lanes, BUCKET_BYTES).map_err(link)?;
    let addresses = sockets.addresses().map_err(link)?;
    let said: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let heard = common.ranks.gather(said.join(" ").into_bytes())?;
    let parse = |said: &Vec<u8>| -> Option<Vec<SocketAddr>> {
        let words = std::str::from_utf8(said).ok()?.split_whitespace();
        words.map(|word| word.parse().ok()).collect()
    };
    let peers: Option<Vec<Vec<SocketAddr>>> = heard.iter().map(parse).collect();
    Ok(sockets.ports(peers.ok_or_else(protocol_error)?, buffers))
}
