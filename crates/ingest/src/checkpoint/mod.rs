//! The state of an interrupted import that the next one resumes from, and the folders of both.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `job.rs` | which import it is: the names of its folders |
//! | `step_log.rs` | the records of completed steps |
//! | `staging.rs` | the folder that becomes the graph |
//! | `workdir.rs` | all folders of an import, opened and removed together |

pub(crate) mod job;
pub(crate) mod staging;
pub(crate) mod step_log;
pub(crate) mod workdir;
