//! The state of an interrupted import that the next one resumes from, and the directories of both.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `job.rs` | which import it is: the names of its directories |
//! | `step_log.rs` | the records of completed steps |
//! | `staging.rs` | the directory that becomes the graph |
//! | `workdir.rs` | all directories of an import, opened and removed together |

pub(crate) mod job;
pub(crate) mod staging;
pub(crate) mod step_log;
pub(crate) mod workdir;
