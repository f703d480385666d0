//! Passes that stream chunks of edges in any order, after Chaos (Roy et al., SOSP 2015).
//!
//! | file | content |
//! | --- | --- |
//! | `window.rs` | how many requests for chunks a rank keeps outstanding |
//! | `steal.rs` | whether the owner of a batch accepts help with it |

pub(crate) mod steal;
pub(crate) mod window;
