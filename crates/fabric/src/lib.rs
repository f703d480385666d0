//! Bytes between ranks: frames from one rank to another, and collective operations.
//!
//! A *rank* is one of the processes, or threads, that work on one graph together. This crate knows nothing of graphs, batches or messages.
//! Its callers decide which bytes go to which rank, and in which order.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `port.rs` | [`Fabric`]: the connection of a rank to the others; [`FabricOperation`], [`FabricCompletion`] |
//! | `collective.rs` | [`all_gather`], [`all_reduce`], [`barrier`], [`FramedSender`]: operations of all ranks, or of two, over any fabric |
//! | `shuffle.rs` | [`Shuffle`]: parcels between all ranks while all of them work; imports use it |
//! | `counted.rs` | [`CountedFabric`]: counts the bytes that pass through another fabric |
//! | `pending.rs` | frames that wait for each other, for fabrics within one process |
//! | `local.rs` | [`local()`]: ranks that are threads of one process |
//! | `sim.rs` | [`simulated()`]: ranks that take turns by a seed, on a network with delays and faults |
//! | `plugin.rs` | [`PluginKind`]: libraries that are compiled where MPI or DPDK is, and loaded at run time |
//! | `mpi.rs`, `mpi/` | [`MpiFabric`]: ranks that are processes of an MPI job; the plugin through which MPI is reached |
//! | `bucket/` | [`bucket`]: datagrams of messages, reliable and sealed |
//! | `error.rs` | [`FabricError`] |

pub mod bucket;
mod collective;
mod counted;
mod error;
mod local;
mod mpi;
mod pending;
mod plugin;
mod port;
mod shuffle;
mod sim;

pub use collective::{FramedSender, all_gather, all_reduce, barrier, protocol_error, receive_all};
pub use counted::CountedFabric;
pub use error::FabricError;
pub use local::{LocalFabric, local};
pub use mpi::MpiFabric;
pub use plugin::{DPDK_PLUGIN, MPI_PLUGIN, PluginKind};
pub use port::{Channel, Fabric, FabricCompletion, FabricOperation};
pub use shuffle::Shuffle;
pub use sim::{NetworkModel, SimFabric, simulated};
