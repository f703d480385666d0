//! Bytes between ranks: frames from one rank to another, and collective operations.
//!
//! A *rank* is one of the processes, or threads, that work on one graph together. This crate knows nothing of graphs, batches or messages:
//! its callers decide which bytes go where and in which order.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `port.rs` | [`Fabric`]: the verbs; [`Operation`], [`Completion`] |
//! | `collective.rs` | [`all_gather`], [`all_reduce`], [`barrier`], [`Outflow`]: all ranks at once, or two, over any fabric |
//! | `courier.rs` | [`Courier`]: parcels to all others, while all of them work |
//! | `counted.rs` | [`CountedFabric`]: counts the bytes that pass through another fabric |
//! | `lines.rs` | frames that wait for each other, for fabrics within one process |
//! | `local.rs` | [`local()`]: ranks that are threads of one process |
//! | `sim.rs` | [`simulated()`]: ranks that take turns by a seed, on a network with delays and faults |
//! | `mpi.rs`, `mpi/` | [`MpiFabric`]: ranks that are processes of an MPI job; the plugin through which MPI is reached |
//! | `error.rs` | [`FabricError`] |

mod collective;
mod counted;
mod courier;
mod error;
mod lines;
mod local;
mod mpi;
mod port;
mod sim;

pub use collective::{Outflow, all_gather, all_reduce, barrier, receive_all};
pub use counted::CountedFabric;
pub use courier::Courier;
pub use error::FabricError;
pub use local::{LocalFabric, local};
pub use mpi::{MPI_PLUGIN, MpiFabric};
pub use port::{Channel, Completion, Fabric, Operation};
pub use sim::{Network, SimFabric, simulated};
