//! Functions of an edge program in another language, called by their addresses.
//!
//! Numbers are words of 64 bits: integers, or the bits of an `f64`. A *record* is a list of words: `shared`, which all vertices read,
//! and one of each vertex. `begin`, `signal` and `apply` are called for 1 to 64 vertices at once. A function
//! that fails returns a negative number. In C the functions are:
//!
//! ```text
//! int32_t before(uint64_t *shared);                                          0: no more passes
//! int32_t begin(const uint64_t *shared, uint64_t count, uint64_t *vertices);
//! int32_t signal(const uint64_t *shared, uint64_t count, uint64_t *vertices, uint64_t *messages, uint64_t *sent);
//!                                                                            bit i of *sent: vertex i sends its message
//! int32_t fold(const uint64_t *shared, uint64_t count, const uint64_t *messages, const double *weights,
//!              const uint32_t *receivers, uint64_t *accumulators);
//! int32_t merge(const uint64_t *shared, uint64_t *accumulator, const uint64_t *later);
//! int32_t apply(const uint64_t *shared, uint64_t count, uint64_t *vertices, const uint64_t *accumulators);
//! ```

#![expect(unsafe_code, reason = "calls functions by their addresses")]

use std::ptr;

type BeforeFn = unsafe extern "C" fn(*mut u64) -> i32;
type BeginFn = unsafe extern "C" fn(*const u64, u64, *mut u64) -> i32;
type SignalFn = unsafe extern "C" fn(*const u64, u64, *mut u64, *mut u64, *mut u64) -> i32;
type FoldFn =
    unsafe extern "C" fn(*const u64, u64, *const u64, *const f64, *const u32, *mut u64) -> i32;
type MergeFn = unsafe extern "C" fn(*const u64, *mut u64, *const u64) -> i32;
type ApplyFn = unsafe extern "C" fn(*const u64, u64, *mut u64, *const u64) -> i32;

/// A function of a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFailure;

/// What a function's return says.
#[inline(always)]
fn check(returned: i32) -> Result<(), ForeignFailure> {
    match returned {
        0.. => Ok(()),
        _ => Err(ForeignFailure),
    }
}

/// The most vertices of one call.
pub const CALL_VERTICES_MAX: usize = 64;

/// Addresses of the functions of a program; 0 where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignAddresses {
    /// Before each pass.
    pub before: usize,
    /// Of each vertex, before the first pass.
    pub begin: usize,
    /// Of each vertex that sends.
    pub signal: usize,
    /// Of edges.
    pub fold: usize,
    /// Of two accumulators of a vertex.
    pub merge: usize,
    /// Of each vertex that receives.
    pub apply: usize,
}

/// Functions of a program in another language, with the lengths of the records that they are given.
#[derive(Clone, Copy, Debug)]
pub struct ForeignFunctions {
    before: Option<BeforeFn>,
    begin: BeginFn,
    signal: SignalFn,
    fold: Option<(FoldFn, MergeFn)>,
    apply: ApplyFn,
    shared_words: usize,
    vertex_words: usize,
}

impl ForeignFunctions {
    /// The functions at these addresses; a vertex record has `vertex_words` words.
    ///
    /// `None` if `begin`, `signal` or `apply` is missing, or one of `fold` and `merge` alone, or a record has no words.
    ///
    /// # Safety
    /// At each address that is not 0 is a function of the type above, for as long as the process lives. It may be called from several
    /// threads at once. It accesses no other memory than these words: `shared_words` of `shared`, `count` records of vertices, one word
    /// of `accumulator` and `later`, `count` of each list, and of a fold's `accumulators` those that `receivers` name. It does not
    /// unwind.
    pub unsafe fn at(
        addresses: &ForeignAddresses,
        shared_words: usize,
        vertex_words: usize,
    ) -> Option<ForeignFunctions> {
        let at = |address: usize| match address {
            0 => None,
            _ => Some(ptr::with_exposed_provenance::<()>(address)),
        };
        let (begin, signal) = (at(addresses.begin)?, at(addresses.signal)?);
        let (before, apply) = (at(addresses.before), at(addresses.apply)?);
        let fold = match (at(addresses.fold), at(addresses.merge)) {
            (None, None) => None,
            // SAFETY: the caller says that functions of these types are at the addresses.
            (Some(fold), Some(merge)) => Some(unsafe {
                (
                    std::mem::transmute::<*const (), FoldFn>(fold),
                    std::mem::transmute::<*const (), MergeFn>(merge),
                )
            }),
            _ => return None,
        };
        // SAFETY: as above.
        (vertex_words > 0).then(|| unsafe {
            ForeignFunctions {
                before: before.map(|before| std::mem::transmute::<*const (), BeforeFn>(before)),
                begin: std::mem::transmute::<*const (), BeginFn>(begin),
                signal: std::mem::transmute::<*const (), SignalFn>(signal),
                fold,
                apply: std::mem::transmute::<*const (), ApplyFn>(apply),
                shared_words,
                vertex_words,
            }
        })
    }

    /// True if the program folds edges itself.
    #[must_use]
    pub fn folds(&self) -> bool {
        self.fold.is_some()
    }

    /// Calls `before`; returns whether there is one more pass.
    ///
    /// # Errors
    /// The function failed.
    pub fn before(&self, shared: &mut [u64]) -> Result<bool, ForeignFailure> {
        assert!(shared.len() >= self.shared_words);
        let Some(before) = self.before else {
            return Ok(true);
        };
        // SAFETY: the record has the words that the function accesses, as `at` demands of it.
        let returned = unsafe { before(shared.as_mut_ptr()) };
        check(returned).map(|()| returned != 0)
    }

    /// Calls `begin` for these records of vertices.
    ///
    /// # Errors
    /// The function failed.
    #[inline(always)]
    pub fn begin(&self, shared: &[u64], vertices: &mut [u64]) -> Result<(), ForeignFailure> {
        let count = self.count(shared, vertices);
        // SAFETY: the records have the words that the function accesses, as `at` demands of it.
        check(unsafe { (self.begin)(shared.as_ptr(), count as u64, vertices.as_mut_ptr()) })
    }

    /// Calls `signal` for these records of vertices.
    ///
    /// Returns the bits of the vertices that have sent a message.
    ///
    /// # Errors
    /// The function failed.
    ///
    /// # Panics
    /// There are other numbers of messages and vertices.
    #[inline(always)]
    pub fn signal(
        &self,
        shared: &[u64],
        vertices: &mut [u64],
        messages: &mut [u64],
    ) -> Result<u64, ForeignFailure> {
        let count = self.count(shared, vertices);
        assert!(messages.len() == count);
        let (vertices, messages) = (vertices.as_mut_ptr(), messages.as_mut_ptr());
        let mut sent = 0;
        // SAFETY: the records have the words that the function accesses, as `at` demands of it; each vertex has a message.
        check(unsafe {
            let sent = &raw mut sent;
            (self.signal)(shared.as_ptr(), count as u64, vertices, messages, sent)
        })?;
        Ok(sent & !0 >> (CALL_VERTICES_MAX - count))
    }

    /// Calls `fold` for edges, with their weights or none; nothing happens without such a function.
    ///
    /// # Errors
    /// The function failed.
    ///
    /// # Panics
    /// The lists differ in length.
    #[inline(always)]
    pub fn fold(
        &self,
        shared: &[u64],
        (messages, weights): (&[u64], Option<&[f64]>),
        receivers: &[u32],
        accumulators: &mut [u64],
    ) -> Result<(), ForeignFailure> {
        let count = messages.len();
        assert!(shared.len() >= self.shared_words && receivers.len() == count);
        assert!(weights.is_none_or(|weights| weights.len() == count));
        let most = receivers.iter().fold(0, |most, of| (*of).max(most));
        assert!(count == 0 || (most as usize) < accumulators.len());
        let weights = weights.map_or(ptr::null(), <[f64]>::as_ptr);
        let Some((fold, _)) = self.fold else {
            return Ok(());
        };
        // SAFETY: the lists have `count` words each, and receivers are places in `accumulators`: the function accesses no more, as
        // `at` demands of it. A program without weights gets none.
        check(unsafe {
            fold(
                shared.as_ptr(),
                count as u64,
                messages.as_ptr(),
                weights,
                receivers.as_ptr(),
                accumulators.as_mut_ptr(),
            )
        })
    }

    /// Calls `merge`; nothing happens without such a function.
    ///
    /// # Errors
    /// The function failed.
    pub fn merge(
        &self,
        shared: &[u64],
        accumulator: &mut u64,
        later: u64,
    ) -> Result<(), ForeignFailure> {
        assert!(shared.len() >= self.shared_words);
        let Some((_, merge)) = self.fold else {
            return Ok(());
        };
        // SAFETY: the record has the words that the function accesses, as `at` demands of it; accumulators are one word.
        check(unsafe { merge(shared.as_ptr(), accumulator, &raw const later) })
    }

    /// Calls `apply` for these records of vertices.
    ///
    /// # Errors
    /// The function failed.
    ///
    /// # Panics
    /// There are other numbers of accumulators and vertices.
    #[inline(always)]
    pub fn apply(
        &self,
        shared: &[u64],
        vertices: &mut [u64],
        accumulators: &[u64],
    ) -> Result<(), ForeignFailure> {
        let count = self.count(shared, vertices);
        assert!(accumulators.len() == count);
        let (vertices, accumulators) = (vertices.as_mut_ptr(), accumulators.as_ptr());
        // SAFETY: the records have the words that the function accesses, as `at` demands of it; each vertex has an accumulator.
        check(unsafe { (self.apply)(shared.as_ptr(), count as u64, vertices, accumulators) })
    }

    /// Returns the number of vertices.
    #[inline(always)]
    fn count(&self, shared: &[u64], vertices: &[u64]) -> usize {
        let count = vertices.len() / self.vertex_words;
        assert!(shared.len() >= self.shared_words && (1..=CALL_VERTICES_MAX).contains(&count));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::{ForeignAddresses, ForeignFailure, ForeignFunctions};

    extern "C" fn begin(shared: *const u64, count: u64, vertices: *mut u64) -> i32 {
        for i in 0..count as usize {
            // SAFETY: the test gives one word of each.
            unsafe { *vertices.add(i) += *shared + 1 }
        }
        // SAFETY: as above.
        if unsafe { *shared } == 8 { -1 } else { 0 }
    }
    extern "C" fn signal(
        _: *const u64,
        count: u64,
        of: *mut u64,
        messages: *mut u64,
        sent: *mut u64,
    ) -> i32 {
        for i in 0..count as usize {
            // SAFETY: the test gives one word of each, and one for the bits.
            unsafe {
                *messages.add(i) = *of.add(i) * 2;
                *sent |= u64::from(*of.add(i) > 0) << i;
            }
        }
        0
    }
    extern "C" fn fold(
        _: *const u64,
        count: u64,
        messages: *const u64,
        weights: *const f64,
        receivers: *const u32,
        accumulators: *mut u64,
    ) -> i32 {
        for i in 0..count as usize {
            // SAFETY: the lists have `count` words, and receivers are places.
            unsafe {
                let weight = if weights.is_null() {
                    1.0
                } else {
                    *weights.add(i)
                };
                *accumulators.add(*receivers.add(i) as usize) += *messages.add(i) * weight as u64;
            }
        }
        0
    }
    extern "C" fn merge(_: *const u64, accumulator: *mut u64, later: *const u64) -> i32 {
        // SAFETY: each is one word.
        unsafe { *accumulator += *later }
        0
    }
    extern "C" fn apply(_: *const u64, count: u64, vertices: *mut u64, of: *const u64) -> i32 {
        // SAFETY: each vertex has one word.
        unsafe { vertices.copy_from(of, count as usize) }
        0
    }

    fn addresses() -> ForeignAddresses {
        ForeignAddresses {
            before: 0,
            begin: begin as *const () as usize,
            signal: signal as *const () as usize,
            fold: fold as *const () as usize,
            merge: merge as *const () as usize,
            apply: apply as *const () as usize,
        }
    }

    #[test]
    fn functions_get_their_words() {
        // SAFETY: the functions of this test have these types.
        let functions = unsafe { ForeignFunctions::at(&addresses(), 1, 1) }.unwrap();
        let (mut vertices, mut messages) = ([0; 64], [0; 64]);
        let sent = functions.signal(&[7], &mut vertices[..2], &mut messages[..2]);
        assert_eq!(sent, Ok(0));
        functions.begin(&[7], &mut vertices[1..]).unwrap();
        let sent = functions.signal(&[7], &mut vertices, &mut messages);
        assert_eq!(sent, Ok(!1));
        assert_eq!(messages[..3], [0, 16, 16]);
        let mut sums = [0, 0];
        let three = (&[1, 2, 3][..], None);
        functions.fold(&[7], three, &[1, 0, 1], &mut sums).unwrap();
        let one = (&[5][..], Some(&[2.0][..]));
        functions.fold(&[7], one, &[0], &mut sums).unwrap();
        assert_eq!(sums, [12, 4]);
        functions.merge(&[7], &mut sums[0], 3).unwrap();
        functions.apply(&[7], &mut vertices[..2], &sums).unwrap();
        assert_eq!(vertices[..3], [15, 4, 8]);
        assert_eq!(functions.before(&mut [0]), Ok(true));
        assert!(functions.folds());
    }

    #[test]
    fn failure_is_told() {
        // SAFETY: the functions of this test have these types.
        let functions = unsafe { ForeignFunctions::at(&addresses(), 1, 1) }.unwrap();
        assert_eq!(functions.begin(&[8], &mut [0]), Err(ForeignFailure));
    }

    #[test]
    fn missing_functions_are_refused() {
        let without = [
            ForeignAddresses {
                apply: 0,
                ..addresses()
            },
            ForeignAddresses {
                merge: 0,
                ..addresses()
            },
        ];
        for without in without {
            // SAFETY: the functions of this test have these types.
            assert!(unsafe { ForeignFunctions::at(&without, 1, 1) }.is_none());
        }
    }

    #[test]
    #[should_panic]
    fn too_many_vertices_are_refused() {
        // SAFETY: the functions of this test have these types.
        let functions = unsafe { ForeignFunctions::at(&addresses(), 1, 1) }.unwrap();
        let _ = functions.begin(&[7], &mut [0; 65]);
    }

    #[test]
    #[should_panic]
    fn a_receiver_outside_is_refused() {
        // SAFETY: the functions of this test have these types.
        let functions = unsafe { ForeignFunctions::at(&addresses(), 1, 1) }.unwrap();
        let _ = functions.fold(&[7], (&[1], None), &[2], &mut [0, 0]);
    }
}
