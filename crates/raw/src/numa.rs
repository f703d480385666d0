//! NUMA nodes: which exist, which of them memory comes from, and where a thread runs.
//!
//! A node is memory with the processors near it, or memory alone. CXL memory, and Optane memory used as RAM, are nodes without
//! processors.

#![expect(unsafe_code, reason = "calls the system")]

use std::fmt;
use std::io;
use std::str::FromStr;

/// Maximum number of nodes of a kernel, and of processors that this module distinguishes.
const NODES_MAX: usize = 1024;
const WORDS: usize = NODES_MAX / 64;

/// A set of nodes by number.
#[derive(Clone, PartialEq, Eq)]
pub struct Nodes(Box<[u64; WORDS]>);

impl Nodes {
    /// Returns the nodes of this machine that have memory; node 0 if the kernel has no nodes.
    pub fn with_memory() -> Nodes {
        listed("has_memory").unwrap_or_else(|| Nodes::of([0]))
    }
    /// Returns the nodes of this machine that have processors.
    pub fn with_processors() -> Nodes {
        listed("has_cpu").unwrap_or_else(|| Nodes::of([0]))
    }
    /// Returns a set of these nodes, without numbers that no kernel can have.
    pub fn of(numbers: impl IntoIterator<Item = usize>) -> Nodes {
        let mut nodes = Nodes(Box::new([0; WORDS]));
        for node in numbers {
            if let Some(word) = nodes.0.get_mut(node / 64) {
                *word |= 1 << (node % 64);
            }
        }
        nodes
    }
    /// Returns the numbers of the nodes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..NODES_MAX).filter(|node| self.has(*node))
    }
    /// Returns true if the set has this node.
    pub fn has(&self, node: usize) -> bool {
        self.0
            .get(node / 64)
            .is_some_and(|word| word >> (node % 64) & 1 != 0)
    }
    /// Returns the number of nodes.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
    /// Returns true if all nodes of the set are among `others`.
    pub fn is_subset(&self, others: &Nodes) -> bool {
        self.without(others).count() == 0
    }
    /// Returns the nodes of both sets.
    pub fn union(&self, others: &Nodes) -> Nodes {
        Nodes::of(self.iter().chain(others.iter()))
    }
    /// Returns the nodes that `others` does not have.
    pub fn without(&self, others: &Nodes) -> Nodes {
        Nodes::of(self.iter().filter(|node| !others.has(*node)))
    }
}

/// Parses a list as the kernel writes it: `0-1,3`.
impl FromStr for Nodes {
    type Err = ();

    fn from_str(text: &str) -> Result<Nodes, ()> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().ok().filter(|number| *number < NODES_MAX),
            false => None,
        };
        let mut nodes = Nodes::of([]);
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first).ok_or(())?, number(last).ok_or(())?);
            if first > last {
                return Err(());
            }
            let more = Nodes::of(first..=last);
            for (word, more) in nodes.0.iter_mut().zip(*more.0) {
                *word |= more;
            }
        }
        Ok(nodes)
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        let mut first = 0;
        while let Some(begin) = (first..NODES_MAX).find(|node| self.has(*node)) {
            let end = (begin..NODES_MAX).find(|node| !self.has(*node));
            let last = end.unwrap_or(NODES_MAX) - 1;
            match begin == last {
                true => write!(f, "{comma}{begin}")?,
                false => write!(f, "{comma}{begin}-{last}")?,
            }
            (comma, first) = (",", last + 1);
        }
        Ok(())
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nodes({self})")
    }
}

/// Reads the list of nodes that the kernel keeps under a name.
fn listed(name: &str) -> Option<Nodes> {
    let list = std::fs::read_to_string(format!("/sys/devices/system/node/{name}")).ok()?;
    list.trim().parse().ok()
}

/// The memory of a machine, node by node.
///
/// A table can also be made by hand, for tests on a machine of one node.
#[derive(Clone, Debug)]
pub struct NodeTable {
    /// The nodes that have memory.
    pub with_memory: Nodes,
    /// The nodes that have processors.
    pub with_processors: Nodes,
    /// Bytes that a process can get from each node; a node without an entry has no known limit.
    pub free: Vec<(usize, u64)>,
}

impl NodeTable {
    /// Reads the table of this machine.
    pub fn of_machine() -> NodeTable {
        let with_memory = Nodes::with_memory();
        let free = |node| {
            let path = format!("/sys/devices/system/node/node{node}/meminfo");
            Some((node, free_bytes(&std::fs::read_to_string(path).ok()?)?))
        };
        NodeTable {
            free: with_memory.iter().filter_map(free).collect(),
            with_processors: Nodes::with_processors(),
            with_memory,
        }
    }

    /// Returns the bytes that a process can get from some nodes together; `None` if one has no known limit.
    pub fn free_on(&self, nodes: &Nodes) -> Option<u64> {
        let of_node = |node| self.free.iter().find(|(of, _)| *of == node);
        nodes.iter().map(|node| Some(of_node(node)?.1)).sum()
    }
}

/// The share of a node that stays free for the kernel, as a divisor; at least [`KERNEL_BYTES`].
const KERNEL_PART: u64 = 32;
const KERNEL_BYTES: u64 = 4 << 20;

/// Returns the bytes that a process can get from a node, by the node's `meminfo`.
///
/// These are its free pages, and pages that the kernel takes back first: of files, and reclaimable ones of its own.
fn free_bytes(meminfo: &str) -> Option<u64> {
    let bytes = |name: &str| {
        let line = meminfo.lines().find(|line| line.contains(name))?;
        let number = line.split_whitespace().rev().nth(1)?;
        number.parse::<u64>().ok()?.checked_mul(1024)
    };
    let taken_back = ["Active(file):", "Inactive(file):", "SReclaimable:"]
        .map(|name| bytes(&format!(" {name}")).unwrap_or(0));
    let free = bytes(" MemFree:")?.saturating_add(taken_back.iter().sum());
    let kernel = (bytes(" MemTotal:")? / KERNEL_PART).max(KERNEL_BYTES);
    Some(free.saturating_sub(kernel))
}

/// The way in which memory comes from several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Only from these nodes.
    Bind,
    /// From these nodes as long as they have memory, then from others.
    Preferred,
    /// From each node in turn, page by page.
    Interleave,
}

impl Policy {
    /// Returns its number in the kernel's `linux/mempolicy.h`.
    fn mode(self, nodes: &Nodes) -> libc::c_int {
        match self {
            Policy::Preferred if nodes.count() <= 1 => 1,
            Policy::Bind => 2,
            Policy::Interleave => 3,
            // MPOL_PREFERRED_MANY, since Linux 5.15.
            Policy::Preferred => 5,
        }
    }
}

/// Sets the nodes that the pages of a mapping come from when they are first touched.
///
/// # Safety
/// `start..start + bytes` are whole pages of a mapping that the caller owns.
pub(crate) unsafe fn bind(
    start: *mut u8,
    bytes: usize,
    nodes: &Nodes,
    policy: Policy,
) -> io::Result<()> {
    // SAFETY: the mask outlives the call, which reads `NODES_MAX` bits of it (one less than the given number). No byte of the
    // mapping changes, and the caller promises that it owns the mapping.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes,
            policy.mode(nodes),
            nodes.0.as_ptr(),
            NODES_MAX + 1,
            0,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the node that the page of a byte lies on.
///
/// A page that was never written is the shared page of zeros, which lies on any node.
///
/// # Errors
/// The kernel has no nodes, or a container forbids the call.
pub fn node_of(byte: &u8) -> io::Result<usize> {
    const MPOL_F_NODE_AND_ADDR: libc::c_int = 1 | 2;
    let mut node: libc::c_int = 0;
    // SAFETY: the kernel writes one number to `node`, which lives until the call returns, and only looks up the node of the byte.
    let done = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut node,
            std::ptr::null_mut::<u64>(),
            0,
            std::ptr::from_ref(byte),
            MPOL_F_NODE_AND_ADDR,
        )
    };
    match usize::try_from(node) {
        Ok(node) if done == 0 => Ok(node),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the processor and the node that this thread runs on now; 0 and 0 if the call fails.
pub fn here() -> (usize, usize) {
    let (mut processor, mut node) = (0_u32, 0_u32);
    // SAFETY: the kernel writes a number to each of the two, which live until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            &raw mut processor,
            &raw mut node,
            std::ptr::null_mut::<u8>(),
        )
    };
    (processor as usize, node as usize)
}

/// Returns the processors that this thread may run on, ascending; none if the call fails.
pub fn processors() -> Vec<usize> {
    if cfg!(miri) {
        return Vec::new();
    }
    let mut mask = [0_u64; WORDS];
    // SAFETY: the kernel writes at most the number of bytes that the call passes, which is the size of the mask.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    match written > 0 {
        true => Nodes(Box::new(mask)).iter().collect(),
        false => Vec::new(),
    }
}

/// Binds this thread to one processor if the kernel allows it; only speed depends on this.
pub(crate) fn pin_thread(processor: usize) {
    let mask = Nodes::of([processor]).0;
    // SAFETY: the kernel only reads the mask, which lives until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
            size_of_val(&*mask),
            mask.as_ptr(),
        )
    };
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::aligned_buffer::AlignedBuffer;

    #[test]
    fn node_lists_round_trip() {
        for list in ["0", "0-1", "1,3-5,63-64", "1023"] {
            let nodes: Nodes = list.parse().unwrap();
            assert_eq!(nodes.to_string(), list);
        }
        let nodes: Nodes = "3,0-1,1".parse().unwrap();
        assert_eq!(nodes.to_string(), "0-1,3");
        assert_eq!(nodes.without(&"1-9".parse().unwrap()).to_string(), "0");
        for list in ["", "1-0", "1024", "x", "1,", "-1", "+1", "0--1"] {
            assert_eq!(list.parse::<Nodes>(), Err(()), "{list}");
        }
    }

    #[test]
    fn free_memory_of_a_node_counts_what_the_kernel_takes_back() {
        let meminfo = "Node 2 MemTotal:         65536 kB\nNode 2 MemFree:          40000 kB\nNode 2 MemUsed: 25536 kB\n\
                       Node 2 Active(file):     1000 kB\nNode 2 Inactive(file):    500 kB\nNode 2 SReclaimable:      24 kB\n\
                       Node 2 Active(anon):    9999 kB\n";
        // A 32nd of 64 MiB is less than the least.
        assert_eq!(free_bytes(meminfo), Some((41524 << 10) - (4 << 20)));
        assert_eq!(free_bytes("Node 0 MemFree: 8 kB\n"), None);
        assert_eq!(
            free_bytes("Node 0 MemTotal: 99 kB\nNode 0 MemFree: x kB\n"),
            None
        );
        let of_machine = NodeTable::of_machine();
        let free = of_machine.free_on(&of_machine.with_memory);
        assert!(free.is_none_or(|free| free > 0), "{of_machine:?}");
        let table = NodeTable {
            free: vec![(0, 5), (2, 7)],
            ..of_machine
        };
        let free = |list: &str| table.free_on(&list.parse().unwrap());
        assert_eq!(
            [free("0"), free("0,2"), free("0-2")],
            [Some(5), Some(12), None]
        );
    }

    #[test]
    fn bound_memory_comes_from_its_node() {
        for node in Nodes::with_memory().iter() {
            for policy in [Policy::Bind, Policy::Preferred, Policy::Interleave] {
                let buffer = AlignedBuffer::on_nodes(3 << 20, &Nodes::of([node]), policy);
                let mut buffer = buffer.expect("nothing forbids mbind here");
                buffer.fill(1);
                for at in [0, 5000, (3 << 20) - 1] {
                    assert_eq!(node_of(&buffer[at]).unwrap(), node, "{policy:?}");
                }
            }
        }
    }

    #[test]
    fn interleaved_memory_comes_from_all_nodes() {
        let nodes = Nodes::with_memory();
        let buffer = AlignedBuffer::on_nodes(64 * 4096, &nodes, Policy::Interleave);
        let mut buffer = buffer.expect("nothing forbids mbind here");
        buffer.fill(1);
        let on = Nodes::of(
            buffer
                .iter()
                .step_by(4096)
                .map(|page| node_of(page).unwrap()),
        );
        assert_eq!(on, nodes);
    }

    #[test]
    fn missing_nodes_give_no_memory() {
        let nodes = Nodes::of([1023]);
        let error = AlignedBuffer::on_nodes(4096, &nodes, Policy::Bind).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn pinned_thread_stays_on_its_processor() {
        let allowed = processors();
        assert!(!allowed.is_empty());
        let last = allowed[allowed.len() - 1];
        let seen = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                pin_thread(last);
                (processors(), here().0)
            });
            thread.join().unwrap()
        });
        assert_eq!(seen, (vec![last], last));
        assert_eq!(processors(), allowed, "this thread goes where it went");
    }
}
