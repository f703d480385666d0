//! What a program in another language says of itself.
//!
//! The records that the functions of [`ForeignFunctions`] are given have these words:
//!
//! | place | `shared` | `vertex` |
//! | --- | --- | --- |
//! | 0 | vertices of the graph | ordinal of the vertex's id |
//! | 1 | arcs | arcs that leave it |
//! | 2 | number of the pass, from 1; 0 in `begin` | not 0: it sends in the next pass; 0 before each call |
//! | 3 | vertices that send in the pass | summand 0 (`f64`); 0 before each call |
//! | 4 to 6 | sums 0 to 2 of the pass before (`f64`) | summands 1 to 3 |
//! | 7 | sum 3 | column 0 |
//! | 8 and more | numbers of the program | more columns |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graphmill_engine::{ApplyTo, COLUMNS_MAX, ForeignFailure, ForeignFunctions};

/// Words of `shared` before the program's own numbers.
pub const SHARED_BEGIN: usize = 8;
/// Words of a `vertex` record.
pub const VERTEX_WORDS: usize = COLUMNS_BEGIN + COLUMNS_MAX;

/// How messages to a vertex become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFold {
    /// Their sum.
    Sum,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
    /// By functions of the program, from a first accumulator.
    Own(u64),
}

/// The type of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignType {
    /// `f64`.
    Float,
    /// `i64`.
    Integer,
    /// The ordinal of a vertex's id; negative for no vertex.
    Vertex,
}

/// A program in another language.
#[derive(Clone, Debug)]
pub struct ForeignProgram {
    /// Its functions.
    pub functions: ForeignFunctions,
    /// The names and types of its columns: one to [`COLUMNS_MAX`].
    pub columns: Vec<(String, ForeignType)>,
    /// The column that is the result.
    pub result: usize,
    /// Its own numbers in `shared`.
    pub shared: Vec<u64>,
    /// Of those, the places that are ordinals of vertices, with their ids.
    pub vertices: Vec<(usize, String)>,
    /// The type of messages.
    pub message: ForeignType,
    /// How they become one.
    pub fold: ForeignFold,
    /// True if its own fold gives the same bits in any order.
    pub exact: bool,
    /// True if its fold takes the weights of edges.
    pub weighted: bool,
    /// True if all vertices send and are applied in every pass.
    pub everywhere: bool,
    /// True if messages go against the arcs.
    pub against: bool,
    /// The greatest number of passes.
    pub passes: Option<u64>,
    /// What tells it from other programs, by name: only the same program resumes from its checkpoints.
    pub identity: BTreeMap<String, String>,
}

/// The place of the columns in `vertex`.
pub(crate) const COLUMNS_BEGIN: usize = 7;
/// The place of the sums in `shared`.
pub(crate) const SUMS: usize = 4;
/// A program with the numbers that all vertices read in a pass.
pub(crate) struct ForeignCalls {
    pub(crate) program: Arc<ForeignProgram>,
    pub(crate) shared: Vec<u64>,
    /// A function failed.
    failed: AtomicBool,
}

impl ForeignCalls {
    pub(crate) fn new(program: &Arc<ForeignProgram>, shared: Vec<u64>) -> ForeignCalls {
        ForeignCalls {
            program: Arc::clone(program),
            shared,
            failed: AtomicBool::new(false),
        }
    }

    /// What a function returned; a failure is noted, and the pass continues without it.
    #[inline(always)]
    pub(crate) fn noted<T: Default>(&self, returned: Result<T, ForeignFailure>) -> T {
        returned.unwrap_or_else(|ForeignFailure| {
            self.failed.store(true, Ordering::Relaxed);
            T::default()
        })
    }

    /// True if a function failed on this rank.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl ForeignProgram {
    pub(crate) fn apply_to(&self) -> ApplyTo {
        match self.everywhere {
            true => ApplyTo::All,
            false => ApplyTo::Touched,
        }
    }

    /// True if folds give the same bits in any order; `is_known` if that is known without the program.
    pub(crate) fn is_exact(&self, is_known: bool) -> bool {
        match self.fold {
            ForeignFold::Own(_) => self.exact,
            _ => is_known,
        }
    }
}

// The sums of a pass are the words of `shared` before the program's own.
const _: () = assert!(SUMS + 4 == SHARED_BEGIN);
