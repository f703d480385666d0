//! The identity of this machine among those that share a directory, and which leftovers there it may delete.
//!
//! A process locks its directory as long as it lives. The system releases the lock when the process ends. So a dead process is found
//! without its process id.
//!
//! On some file systems locks do not reach other machines, even of the same name. They do reach all containers of one kernel, whatever
//! their names. So the name of a leftover contains the random id that the machine's kernel drew at boot.
//!
//! On a local file system the name also contains a second id, which survives a reboot. So the machine also recognizes what it left before a
//! reboot.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::disk::port::{DirLock, Disk, LockMode, Owner};

/// Number of attempts to lock a directory that another process may hold briefly.
pub const HOLD_ATTEMPTS: u32 = 16;
/// Time between two of the [`HOLD_ATTEMPTS`].
pub const HOLD_PAUSE: Duration = Duration::from_millis(10);

/// Digits of the part that survives a reboot; all zeros if it is unknown.
const LASTING: usize = 8;
const NONE: &str = "00000000";

/// Returns the id of this machine, as a part of the name of a file in `folder`.
pub fn host_id(disk: &dyn Disk, folder: &Path) -> String {
    static IDS: OnceLock<[String; 2]> = OnceLock::new();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let files = ["/etc/machine-id", "/proc/sys/kernel/random/boot_id"];
    let [lasting, boot] = IDS.get_or_init(|| files.map(read));
    // Another machine may have the same lasting id, and compare it where the file system is local.
    let lasting = if disk.is_local(folder) { lasting } else { "" };
    id_of(lasting, boot)
}

fn id_of(lasting: &str, boot: &str) -> String {
    let is_drawn = |digit: char| digit.is_ascii_hexdigit();
    let lasting = match lasting.trim() {
        drawn if drawn.len() >= LASTING && drawn.chars().all(is_drawn) => {
            format!("{:08x}", crc32fast::hash(drawn.as_bytes()))
        }
        _ => NONE.to_string(),
    };
    lasting + &boot.replace(|c: char| !c.is_ascii_alphanumeric(), "")
}

/// Returns true if `id` is of this machine: locks in `folder` then tell if a process lives.
pub fn is_this_host(id: &str, disk: &dyn Disk, folder: &Path) -> bool {
    is_same(id, &host_id(disk, folder))
}

/// Returns true if both ids are of one boot, or of two boots of a machine that both ids name.
fn is_same(id: &str, ours: &str) -> bool {
    let [lasting, own] = [id, ours].map(|id| id.get(..LASTING));
    let is_known = lasting != Some(NONE) && lasting == own;
    ours.len() > LASTING && id.len() == ours.len() && (id == ours || is_known)
}

/// Locks the unlocked directories in `folder` that satisfy `is_wanted`; returns each with its lock.
///
/// The lock lasts until it is dropped. Directories that cannot be opened are left out.
pub fn unlocked_dirs<'d>(
    disk: &'d dyn Disk,
    folder: &Path,
    is_wanted: impl Fn(&Path) -> bool + 'd,
) -> impl Iterator<Item = (PathBuf, DirLock)> + 'd {
    let there = disk.list(folder).unwrap_or_default().into_iter();
    there.filter_map(move |path| {
        let hold = is_wanted(&path).then(|| disk.hold(&path, LockMode::Alone, Owner::Own));
        Some((path, hold?.ok()??))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_id_survives_a_reboot() {
        let (one, other) = ("6d2f0a7c91d34c0b8a4f", "0123456789abcdef0123");
        let ours = id_of(one, "1111-2222\n");
        assert!(ours.ends_with("11112222") && ours.len() == 16);
        assert!(is_same(&ours, &ours) && is_same(&id_of(one, "3333-4444\n"), &ours));
        assert!(!is_same(&id_of(other, "3333-4444\n"), &ours));
        let unknown = id_of("uninitialized\n", "1111-2222\n");
        assert!(unknown.starts_with(NONE) && unknown.len() == 16);
        assert!(is_same(&unknown, &unknown) && !is_same(&unknown, &ours));
        assert!(!is_same(&id_of("", "3333-4444\n"), &unknown));
        // Without an id from the kernel, no leftover is of this machine.
        assert!(!is_same(NONE, NONE) && !is_same("", ""));
    }
}
