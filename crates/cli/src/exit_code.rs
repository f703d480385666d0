//! Exit codes of the command.

/// A command did what it was asked for.
pub(crate) const DONE: u8 = 0;
/// A command failed.
pub(crate) const FAILED: u8 = 1;
/// A command was asked for wrongly.
pub(crate) const USAGE: u8 = 2;
/// A command was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;
