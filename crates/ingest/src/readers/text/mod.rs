//! Lines of text to edges: SNAP and GAPBS lists, CSV, LDBC Graphalytics, the arcs of DIMACS, lists of vertices.
//!
//! 1. [`sniff`](sniff::sniff) decides from the first bytes of a file how it is read: its [`Dialect`](dialect::Dialect).
//! 2. [`Parser::lines`](parser::Parser::lines) takes a run of bytes. Most lines are `integer separator integer`: a short loop that
//!    reads eight bytes at once parses them.
//! 3. All other lines (quotes, odd spacing, long numbers, text, other columns) go record by record through
//!    [`RecordFormat`](record::RecordFormat), which knows all rules and decides which are errors.

pub(crate) mod columns;
mod comments;
pub(crate) mod dialect;
pub(crate) mod fault;
mod header;
mod names;
pub(crate) mod parser;
pub(crate) mod record;
mod sample;
mod separator;
pub(crate) mod sniff;
mod swar;
pub(crate) mod values;

pub use dialect::{Comments, Header, Quote, TextOptions};
pub use record::Delimiter;
