//! A check whether files of a directory lie in memory, where no budget counts them.

use std::path::Path;

/// The types of tmpfs and ramfs in `statfs`.
pub(crate) const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Returns true if the files of `directory` are memory (tmpfs, ramfs); false if the call fails.
pub fn is_in_memory(directory: &Path) -> bool {
    let facts = rustix::fs::statfs(directory);
    // The number has 32 bits, in a field whose width and sign depend on the machine.
    facts.is_ok_and(|facts| IN_MEMORY.contains(&(facts.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_file_systems_are_recognised() {
        assert!(!is_in_memory(Path::new("/proc")));
        assert!(!is_in_memory(Path::new("/no/such/directory")));
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        if mounts
            .lines()
            .any(|line| line.starts_with("tmpfs /dev/shm "))
        {
            assert!(is_in_memory(Path::new("/dev/shm")));
        }
    }
}
