//! Buckets in Ethernet frames by DPDK, past the kernel (BlitzG, section V).
//!
//! A device is shared by the threads of a rank: who receives passes frames of other lanes on. Between processes of one host each pair
//! of ranks has a device of its own, in shared memory (memif).

mod plugin;

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use graphmill_raw::{AlignedBuffer, lock};

use crate::bucket::dpdk::plugin::{Address, DpdkPlugin, FRAMES};
use crate::bucket::link::{LinkPorts, Port, yields};
use crate::error::FabricError;
use crate::plugin::DPDK_PLUGIN;

/// Bytes of packets for each device.
const DEVICE_BYTES: usize = 8 << 20;
/// Bytes that DPDK takes for itself: what `-m` says.
const OWN_BYTES: usize = 48 << 20;
/// Frames that wait for a lane at most.
const WAITING: usize = 256;
/// The device between processes of one host.
const MEMIF: &str = "memif";

/// The devices of one rank, before they are connected.
#[derive(Debug)]
pub struct DpdkLink {
    plugin: DpdkPlugin,
    rank: usize,
    ranks: usize,
    job: u64,
    /// For each rank, the device to it, and its own address there.
    devices: Vec<Option<(usize, Address)>>,
}

impl DpdkLink {
    /// Returns the bytes of packets and of DPDK of one rank, and of these the bytes of packets.
    #[must_use]
    pub fn memory(device: &str, ranks: usize) -> [usize; 2] {
        let packets = DEVICE_BYTES * if device == MEMIF { ranks.max(2) - 1 } else { 1 };
        [packets + OWN_BYTES, packets]
    }

    /// Starts DPDK with the devices that wait for a peer; allowed once in a process.
    ///
    /// `device` is `memif`, or a device as DPDK names it, such as `net_af_packet0,iface=eth1`. `memory` is for packets.
    ///
    /// # Errors
    /// The plugin is missing or has another version, or DPDK refuses the device.
    pub fn start(
        device: &str,
        [rank, ranks]: [usize; 2],
        job: u64,
        memory: AlignedBuffer,
    ) -> Result<Self, FabricError> {
        let places = DPDK_PLUGIN.places();
        let path = places.iter().find(|path| path.exists());
        let path = path.ok_or_else(|| FabricError::Plugin {
            path: places.last().cloned().unwrap_or_default(),
            what: "it is not there; build it where DPDK is (graphmill dpdk build)".into(),
        })?;
        let more = std::env::var("GRAPHMILL_DPDK_ARGS").ok();
        let usual = format!(
            "--no-huge --no-pci --no-shconf --no-telemetry -m {} -d librte_mempool_ring.so -d librte_bus_vdev.so -d librte_net_memif.so -d librte_net_af_packet.so",
            OWN_BYTES >> 20
        );
        let arguments = more.unwrap_or(usual);
        let own = format!("--file-prefix=graphmill-{}", std::process::id());
        let first = ["graphmill", "--log-level=error", &own].map(str::to_owned);
        let words = arguments.split_whitespace().map(str::to_owned);
        let words: Vec<String> = first.into_iter().chain(words).collect();
        let mut link = DpdkLink {
            plugin: DpdkPlugin::start(path, &words, memory)?,
            rank,
            ranks,
            job,
            devices: vec![None; ranks],
        };
        let attached = match device {
            MEMIF => link.attach_pairs(rank + 1..ranks, "server"),
            device => link.plugin.attach(device).map(|one| {
                link.devices = vec![Some(one); ranks];
            }),
        };
        attached.map_err(|error| refused(&*error))?;
        Ok(link)
    }

    /// Attaches devices in shared memory to some ranks.
    fn attach_pairs(
        &mut self,
        peers: std::ops::Range<usize>,
        role: &str,
    ) -> Result<(), Box<dyn Error>> {
        for peer in peers {
            let [low, high] = [self.rank.min(peer), self.rank.max(peer)];
            let socket = format!("graphmill-{:016x}-{low}-{high}", self.job);
            let device = format!(
                "net_memif{peer},role={role},id=0,bsize=2048,rsize=11,socket-abstract=yes,socket={socket}"
            );
            self.devices[peer] = Some(self.plugin.attach(&device)?);
        }
        Ok(())
    }

    /// Returns what the other ranks need to know before any of them connects.
    #[must_use]
    pub fn address(&self) -> Vec<u8> {
        let first = self.devices.iter().flatten().next();
        first
            .map_or(Address::default(), |(_, address)| *address)
            .to_vec()
    }

    /// Connects to the ranks that wait, once all ranks have started; `heard` is what they said.
    ///
    /// Returns the ports of `senders` sender threads and `lanes` lanes.
    ///
    /// # Errors
    /// A device is refused, or is not up within `limit`.
    pub fn connect(
        mut self,
        heard: &[Vec<u8>],
        [senders, lanes]: [usize; 2],
        limit: Duration,
        wait: &dyn Fn(Duration),
    ) -> Result<LinkPorts, FabricError> {
        if self.devices[self.rank].is_none() {
            let rank = self.rank;
            let attached = self.attach_pairs(0..rank, "client");
            attached.map_err(|error| refused(&*error))?;
        }
        const STEP: Duration = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        let others = || (0..self.ranks).filter(|peer| *peer != self.rank);
        for peer in others() {
            let Some((device, _)) = self.devices[peer] else {
                continue;
            };
            while !self.plugin.is_up(device) {
                if waited > limit {
                    let cause = "its DPDK device is not up".into();
                    return Err(FabricError::Lost { rank: peer, cause });
                }
                wait(STEP);
                waited += STEP;
            }
        }
        let address = |peer: usize| -> Address {
            let said = heard.get(peer).and_then(|said| said.first_chunk());
            said.copied().unwrap_or_default()
        };
        let shared = Arc::new(DpdkPorts {
            peers: (0..self.ranks)
                .map(|peer| Some((self.devices[peer]?, address(peer))))
                .collect(),
            devices: self
                .devices
                .iter()
                .flatten()
                .map(|(device, _)| *device)
                .max(),
            lanes: (0..lanes).map(|_| Mutex::default()).collect(),
            plugin: Mutex::new(self.plugin),
        });
        let port = |lane: Option<usize>| -> Box<dyn Port> {
            let shared = Arc::clone(&shared);
            Box::new(DpdkPort { shared, lane })
        };
        Ok(LinkPorts {
            senders: (0..senders).map(|_| port(None)).collect(),
            lanes: (0..lanes).map(|lane| port(Some(lane))).collect(),
        })
    }
}

fn refused(error: &dyn Error) -> FabricError {
    FabricError::Device {
        what: error.to_string(),
    }
}

/// The way to another rank: its device, with the own address there, and its address.
type Way = ((usize, Address), Address);

/// What all threads of a rank share.
#[derive(Debug)]
struct DpdkPorts {
    plugin: Mutex<DpdkPlugin>,
    peers: Vec<Option<Way>>,
    /// The last device.
    devices: Option<usize>,
    /// Frames that another lane received.
    lanes: Vec<Mutex<VecDeque<Vec<u8>>>>,
}

/// The end of one thread.
#[derive(Debug)]
struct DpdkPort {
    shared: Arc<DpdkPorts>,
    /// The lane that it receives for.
    lane: Option<usize>,
}

impl Port for DpdkPort {
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize> {
        let Some(((device, own), peer)) = self.shared.peers[to] else {
            return Ok(0);
        };
        let mut taken = 0;
        let plugin: &mut MutexGuard<'_, DpdkPlugin> = &mut lock(&self.shared.plugin);
        for burst in buckets.chunks(FRAMES) {
            let sent = plugin.send(device, [peer, own], lane as u16, burst);
            let sent = sent.ok_or_else(|| io::Error::other("a bucket is too long for a frame"))?;
            taken += sent;
            if sent < burst.len() {
                break;
            }
        }
        Ok(taken)
    }

    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize> {
        let (Some(own), Some(last)) = (self.lane, self.shared.devices) else {
            return Ok(0);
        };
        let come = std::mem::take(&mut *lock(&self.shared.lanes[own]));
        let mut count = come.len();
        come.into_iter().for_each(|mut frame| visit(&mut frame));
        // Another thread that has the devices passes frames on.
        let Ok(mut plugin) = self.shared.plugin.try_lock() else {
            return Ok(count);
        };
        for device in 0..=last {
            count += plugin.receive(device, &mut |lane, bucket| {
                let lane = usize::from(lane);
                if lane == own {
                    visit(bucket);
                } else if let Some(queue) = self.shared.lanes.get(lane) {
                    let queue = &mut *lock(queue);
                    // One that finds no room is as good as lost.
                    if queue.len() < WAITING {
                        queue.push_back(bucket.to_vec());
                    }
                }
            });
        }
        Ok(count)
    }

    fn wait(&mut self, idle: u32, limit: Duration) {
        if !yields(idle) {
            std::thread::sleep(limit.min(Duration::from_micros(20)));
        }
    }
}
