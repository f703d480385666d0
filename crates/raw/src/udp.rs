//! Options of UDP sockets that the standard library does not have.

#![expect(unsafe_code, reason = "the options have no safe call")]

use std::ffi::c_int;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Makes the kernel cut long buffers into datagrams of `bytes` bytes (`UDP_SEGMENT`); 0 ends that.
///
/// # Errors
/// The kernel cannot do so.
pub fn cut_sent_datagrams(socket: &UdpSocket, bytes: u16) -> io::Result<()> {
    set(socket, libc::UDP_SEGMENT, bytes.into())
}

/// Makes the kernel join datagrams of one length that come from one socket (`UDP_GRO`).
///
/// # Errors
/// The kernel cannot do so.
pub fn join_received_datagrams(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::UDP_GRO, 1)
}

fn set(socket: &UdpSocket, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open while `socket` is borrowed, and the kernel reads one `c_int` at the pointer during the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
