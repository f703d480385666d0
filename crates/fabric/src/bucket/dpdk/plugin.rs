//! The DPDK of this machine, behind the few functions of `plugin.c`, loaded at run time.
//!
//! Invariants:
//!
//! - DPDK accesses the memory of packets until `finish`, so the plugin owns it until then.
//! - A packet that was received is accessed through one slice, and then given back.
//! - `&mut self` keeps calls to one thread at a time.

#![expect(
    unsafe_code,
    reason = "calls a library, and lends it memory that it keeps hold of"
)]

use std::error::Error;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use graphmill_raw::AlignedBuffer;

use crate::error::FabricError;
use crate::plugin::{DPDK_PLUGIN, PluginKind, text};

/// Frames of one call at most, as in `plugin.c`.
pub(crate) const FRAMES: usize = 64;
/// Bytes from one packet to the next: a frame of 2,048 bytes at most, and room in front of it.
const STRIDE: u16 = 2304;

/// A MAC address.
pub(crate) type Address = [u8; 6];

type StartDpdk = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut c_char, c_int) -> c_int;
type MakePool = unsafe extern "C" fn(*mut c_void, u64, u16, *mut c_char, c_int) -> c_int;
type AttachDevice =
    unsafe extern "C" fn(*const c_char, *mut u16, *mut u8, *mut c_char, c_int) -> c_int;
type SendFrames =
    unsafe extern "C" fn(u16, *const u8, u16, *const *const c_void, u32, c_int) -> c_int;
type ReceiveFrames = unsafe extern "C" fn(
    u16,
    *mut *mut c_void,
    *mut u16,
    *mut *mut c_void,
    *mut u32,
    c_int,
) -> c_int;

/// The functions of the plugin, with DPDK started.
#[derive(Debug)]
pub(crate) struct DpdkPlugin {
    attach: AttachDevice,
    is_up: unsafe extern "C" fn(u16) -> c_int,
    send: SendFrames,
    receive: ReceiveFrames,
    free: unsafe extern "C" fn(*mut *mut c_void, c_int),
    finish: unsafe extern "C" fn(*const u16, c_int),
    ports: Vec<u16>,
    _memory: AlignedBuffer,
}

impl DpdkPlugin {
    /// Loads the plugin and starts DPDK with its arguments; allowed once in a process.
    ///
    /// Packets are in `memory`.
    ///
    /// # Errors
    /// The plugin does not exist or has another version, or DPDK does not start.
    pub(crate) fn start(
        path: &Path,
        arguments: &[String],
        memory: AlignedBuffer,
    ) -> Result<Self, FabricError> {
        Self::load(path, arguments, memory).map_err(|error| PluginKind::error(path, &*error))
    }

    fn load(
        path: &Path,
        arguments: &[String],
        mut memory: AlignedBuffer,
    ) -> Result<Self, Box<dyn Error>> {
        let library = DPDK_PLUGIN.load(path)?;
        let words = arguments.iter().map(|word| CString::new(word.as_str()));
        // DPDK keeps its arguments.
        let words = words.map(|word| Ok(word?.into_raw()));
        let mut words = words.collect::<Result<Vec<*mut c_char>, Box<dyn Error>>>()?;
        let count = words.len() as c_int;
        let bytes = memory.len() as u64;
        // SAFETY: the symbols have these types in `plugin.c` of this version. The words are C strings that are never freed, and each text is
        // written to a buffer of `room` bytes. The memory stays where it is, and the plugin owns it until `finish`.
        unsafe {
            let start = library.get::<StartDpdk>(b"graphmill_dpdk_start")?;
            let pool = library.get::<MakePool>(b"graphmill_dpdk_pool")?;
            checked(|to, room| start(count, words.as_mut_ptr(), to, room))?;
            let start = memory.as_mut_ptr().cast();
            checked(|to, room| pool(start, bytes, STRIDE, to, room))?;
            Ok(DpdkPlugin {
                attach: *library.get(b"graphmill_dpdk_attach")?,
                is_up: *library.get(b"graphmill_dpdk_is_up")?,
                send: *library.get(b"graphmill_dpdk_send")?,
                receive: *library.get(b"graphmill_dpdk_receive")?,
                free: *library.get(b"graphmill_dpdk_free")?,
                finish: *library.get(b"graphmill_dpdk_finish")?,
                ports: Vec::new(),
                _memory: memory,
            })
        }
    }

    /// Attaches a device; returns its number among all devices, and its address.
    pub(crate) fn attach(&mut self, device: &str) -> Result<(usize, Address), Box<dyn Error>> {
        let device = CString::new(device)?;
        let (mut port, mut address) = (0, Address::default());
        // SAFETY: the string, the number and the six bytes live as long as the call.
        checked(|to, room| unsafe {
            (self.attach)(device.as_ptr(), &mut port, address.as_mut_ptr(), to, room)
        })?;
        self.ports.push(port);
        Ok((self.ports.len() - 1, address))
    }

    /// True if a device can send to its peer.
    pub(crate) fn is_up(&mut self, device: usize) -> bool {
        // SAFETY: the function takes the number of an attached device.
        unsafe { (self.is_up)(self.ports[device]) != 0 }
    }

    /// Sends buckets of one length; returns how many the device took, or `None` if they are too long.
    pub(crate) fn send(
        &mut self,
        device: usize,
        [to, from]: [Address; 2],
        lane: u16,
        buckets: &[&[u8]],
    ) -> Option<usize> {
        let bytes = buckets.first().map_or(0, |bucket| bucket.len());
        let mut starts = [ptr::null(); FRAMES];
        let mut count = 0;
        for (start, bucket) in starts.iter_mut().zip(buckets) {
            if bucket.len() != bytes {
                return None;
            }
            *start = bucket.as_ptr().cast();
            count += 1;
        }
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&to);
        addresses[6..].copy_from_slice(&from);
        // SAFETY: the device is attached; the first `count` starts are of slices of `bytes` bytes, which the call copies.
        let sent = unsafe {
            (self.send)(
                self.ports[device],
                addresses.as_ptr(),
                lane,
                starts.as_ptr(),
                bytes as u32,
                count,
            )
        };
        usize::try_from(sent).ok()
    }

    /// Calls `visit` with the lane and the bucket of each frame that has come; returns their number.
    pub(crate) fn receive(
        &mut self,
        device: usize,
        visit: &mut dyn FnMut(u16, &mut [u8]),
    ) -> usize {
        let mut packets = [ptr::null_mut(); FRAMES];
        let (mut lanes, mut lengths) = ([0; FRAMES], [0; FRAMES]);
        let mut starts = [ptr::null_mut(); FRAMES];
        // SAFETY: the arrays have room for the requested number of packets.
        let count = unsafe {
            (self.receive)(
                self.ports[device],
                packets.as_mut_ptr(),
                lanes.as_mut_ptr(),
                starts.as_mut_ptr(),
                lengths.as_mut_ptr(),
                FRAMES as c_int,
            )
        };
        let count = usize::try_from(count).map_or(0, |count| count.min(FRAMES));
        for ((start, bytes), lane) in starts.iter().zip(lengths).zip(lanes).take(count) {
            if bytes > 0 {
                // SAFETY: the packet has `bytes` bytes there, and is this thread's until it is given back below.
                let bucket =
                    unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes as usize) };
                visit(lane, bucket);
            }
        }
        // SAFETY: the packets are of the call above, and no slice of them is left.
        unsafe { (self.free)(packets.as_mut_ptr(), count as c_int) };
        count
    }
}

impl Drop for DpdkPlugin {
    fn drop(&mut self) {
        // SAFETY: the devices are attached, and nothing is called after this.
        unsafe { (self.finish)(self.ports.as_ptr(), self.ports.len() as c_int) };
    }
}

/// Calls a function that writes the reason of a failure.
fn checked(call: impl FnOnce(*mut c_char, c_int) -> c_int) -> Result<(), Box<dyn Error>> {
    let mut result = 0;
    let what = text(|to, room| result = call(to, room));
    match result {
        0 => Ok(()),
        _ => Err(what.into()),
    }
}
