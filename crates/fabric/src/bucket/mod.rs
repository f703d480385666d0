//! Buckets: datagrams of messages between ranks, reliable and sealed (BlitzG, sections IV and V).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `layout.rs` | the bytes of a bucket |
//! | `stream.rs` | the state of a stream at its sender and at its receiver, without a network or a clock |
//! | `seal.rs` | encryption, and the check of a datagram |
//! | `outbox.rs`, `sender.rs`, `lane.rs` | the parts of a worker, of a sender thread and of a lane |
//! | `exchange.rs` | all parts of one rank, and the rings between them |
//! | `state.rs` | the part of an exchange that all threads read |
//! | `link.rs` | the port of a link |
//! | `local.rs`, `udp.rs` | links within a process, and over UDP |
//! | `dpdk.rs`, `dpdk/` | a link by DPDK, and the plugin through which DPDK is reached |
//! | `shaped.rs` | a limit on the bytes that are sent, around any link |
//! | `lossy.rs` | a link in virtual time, with faults |
//!
//! docs/internals/buckets.md describes the design.

mod dpdk;
mod exchange;
mod lane;
mod layout;
mod link;
mod local;
mod lossy;
mod outbox;
mod seal;
mod sender;
mod shaped;
mod state;
mod stream;
mod udp;

pub use dpdk::DpdkLink;
pub use exchange::BucketExchange;
pub use lane::{BucketLane, Fold};
pub use layout::{
    BUCKET_BYTES, BucketHeader, BucketKind, HEADER_BYTES, MAP_WORDS, Refusal, TAG_BYTES,
    message_parts,
};
pub use link::{BucketLink, LinkPorts, Port, yields};
pub use local::LocalLink;
pub use lossy::{LossyLink, LossyModel};
pub use outbox::BucketOutbox;
pub use seal::{BucketSeal, KEY_BYTES};
pub use sender::BucketSender;
pub use shaped::{FRAME_BYTES, Now};
pub use state::{ExchangeCounters, ExchangeShape, ExchangeState};
pub use stream::{Arrival, Incoming, Outgoing, WINDOW_MAX};
pub use udp::{RECEIVE_BYTES, UdpSockets};
