//! Buckets over UDP: one call sends as many as the kernel cuts out of one buffer, and receives as many as it joins.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use graphmill_raw::{AlignedBuffer, cut_sent_datagrams, join_received_datagrams};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg, sendmsg_addr};

use crate::bucket::link::{LinkPorts, Port, yields};

/// Bytes of the buffer that a port receives into: the longest that the kernel joins.
pub const RECEIVE_BYTES: usize = 1 << 16;
/// Bytes that the kernel holds for a socket, if it may.
const SOCKET_BYTES: usize = 8 << 20;
/// Buckets of one call at most: the kernel cuts at most 65,507 bytes into 64 datagrams.
fn burst(bucket_bytes: usize) -> usize {
    (65_507 / bucket_bytes).clamp(1, 64)
}

/// Returns an address if it is of this host, or else the one that this host sends from to it.
fn own_address(ip: IpAddr) -> io::Result<IpAddr> {
    if UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok() {
        return Ok(ip);
    }
    let any = match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // This sends nothing: the system chooses the address by its routes.
    socket.connect(SocketAddr::new(ip, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The sockets of one rank, before it knows the other ranks.
#[derive(Debug)]
pub struct UdpSockets {
    senders: Vec<UdpSocket>,
    lanes: Vec<UdpSocket>,
    bucket_bytes: usize,
}

impl UdpSockets {
    /// Binds sockets to an address of this host, and to any free ports.
    ///
    /// For an address of another host, it is the address that this host sends from to that one.
    ///
    /// # Errors
    /// The system refuses a socket, or there is no way to the address.
    pub fn bind(ip: IpAddr, senders: usize, lanes: usize, bucket_bytes: usize) -> io::Result<Self> {
        let ip = own_address(ip)?;
        let socket = |_| {
            let socket = UdpSocket::bind(SocketAddr::new(ip, 0))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let all = |count: usize| (0..count).map(socket).collect::<io::Result<Vec<_>>>();
        let (senders, lanes) = (all(senders)?, all(lanes)?);
        for socket in &lanes {
            // Without privileges the kernel holds fewer bytes, and without joining a call receives one bucket.
            if set_socket_recv_buffer_size_force(socket, SOCKET_BYTES).is_err() {
                set_socket_recv_buffer_size(socket, SOCKET_BYTES)?;
            }
            let _ = join_received_datagrams(socket);
        }
        Ok(UdpSockets {
            senders,
            lanes,
            bucket_bytes,
        })
    }

    /// Returns the addresses of the lanes, which the other ranks send to.
    ///
    /// # Errors
    /// The system does not say them.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.lanes.iter().map(UdpSocket::local_addr).collect()
    }

    /// Returns the ports; `peers` are the addresses of all lanes of all ranks.
    ///
    /// Each lane takes a buffer of [`RECEIVE_BYTES`].
    #[must_use]
    pub fn ports(self, peers: Vec<Vec<SocketAddr>>, buffers: Vec<AlignedBuffer>) -> LinkPorts {
        let (peers, bucket_bytes) = (Arc::new(peers), self.bucket_bytes);
        let port = |(socket, buffer): (UdpSocket, Option<AlignedBuffer>)| -> Box<dyn Port> {
            let bytes = u16::try_from(bucket_bytes).ok();
            Box::new(UdpPort {
                cuts: bytes.is_some_and(|bytes| cut_sent_datagrams(&socket, bytes).is_ok()),
                peers: Arc::clone(&peers),
                socket,
                buffer,
                bucket_bytes,
            })
        };
        let lanes = self.lanes.into_iter().zip(buffers.into_iter().map(Some));
        LinkPorts {
            senders: self
                .senders
                .into_iter()
                .map(|socket| port((socket, None)))
                .collect(),
            lanes: lanes.map(port).collect(),
        }
    }
}

/// A socket of one thread.
#[derive(Debug)]
struct UdpPort {
    socket: UdpSocket,
    /// The addresses of all lanes of all ranks.
    peers: Arc<Vec<Vec<SocketAddr>>>,
    /// For a port that receives.
    buffer: Option<AlignedBuffer>,
    bucket_bytes: usize,
    /// The kernel cuts a burst into buckets.
    cuts: bool,
}

impl UdpPort {
    /// Sends a burst in one call; returns how many buckets the kernel took.
    fn send_burst(&self, to: SocketAddr, buckets: &[&[u8]]) -> Result<usize, Errno> {
        if self.cuts {
            let parts: Vec<IoSlice<'_>> = buckets.iter().map(|of| IoSlice::new(of)).collect();
            let mut none = SendAncillaryBuffer::default();
            sendmsg_addr(&self.socket, &to, &parts, &mut none, SendFlags::DONTWAIT)?;
            return Ok(buckets.len());
        }
        let to = to.as_any();
        let parts: Vec<[IoSlice<'_>; 1]> = buckets.iter().map(|of| [IoSlice::new(of)]).collect();
        let mut none: Vec<_> = buckets
            .iter()
            .map(|_| SendAncillaryBuffer::default())
            .collect();
        let each = parts.iter().zip(&mut none);
        let mut all: Vec<MMsgHdr<'_>> = each
            .map(|(part, none)| MMsgHdr::new_with_addr(&to, part, none))
            .collect();
        sendmmsg(&self.socket, &mut all, SendFlags::DONTWAIT)
    }
}

impl Port for UdpPort {
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize> {
        let to = self.peers[to][lane];
        let mut taken = 0;
        while taken < buckets.len() {
            let end = buckets.len().min(taken + burst(self.bucket_bytes));
            match self.send_burst(to, &buckets[taken..end]) {
                Ok(count) => taken += count,
                Err(Errno::AGAIN | Errno::NOBUFS) => break,
                // A rank that is not there yet, or not any more: its buckets are lost.
                Err(Errno::CONNREFUSED) => (),
                // The network cannot take a long buffer.
                Err(Errno::IO | Errno::INVAL | Errno::MSGSIZE) if self.cuts => {
                    self.cuts = false;
                    cut_sent_datagrams(&self.socket, 0)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }

    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize> {
        let Some(buffer) = &mut self.buffer else {
            return Ok(0);
        };
        match self.socket.recv(buffer) {
            Ok(bytes) => {
                let joined = buffer[..bytes].chunks_mut(self.bucket_bytes);
                let count = joined.len().max(1);
                joined.for_each(visit);
                Ok(count)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(0),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted => Ok(1),
                _ => Err(error),
            },
        }
    }

    fn wait(&mut self, idle: u32, limit: Duration) {
        if yields(idle) {
            return;
        }
        let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
        // A wait that fails is a short one.
        let _ = poll(&mut sockets, limit.try_into().ok().as_ref());
    }
}
