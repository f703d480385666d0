//! The limit of open files of this process.

#![expect(unsafe_code, reason = "calls the system")]

use std::io;

/// Raises this process's soft limit of open files to the hard one.
///
/// # Errors
/// The system refuses; the limit does not change.
pub fn raise_nofile_limit() -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the system writes only the value, which lives until the call returns.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the system only reads the value, which lives until the call returns.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
