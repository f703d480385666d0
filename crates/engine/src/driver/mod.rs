//! `impl Engine` beyond single passes: Pregel programs, fixpoints, components, replay after a kill, rows from elsewhere, results.

pub(crate) mod buckets;
pub(crate) mod chunks;
pub(crate) mod collect;
pub(crate) mod components;
pub(crate) mod count;
pub(crate) mod count_windows;
pub(crate) mod fill;
pub(crate) mod fixpoint;
pub(crate) mod mail;
pub(crate) mod mailboxes;
pub(crate) mod memory;
pub(crate) mod pass_list;
pub(crate) mod pregel;
pub(crate) mod pregel_mail;
pub(crate) mod pregel_push;
pub(crate) mod pregel_step;
pub(crate) mod replay;
pub(crate) mod sample;
pub(crate) mod scanned_search;
pub(crate) mod shared_metrics;
