//! Memory and processors that this process may use.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the default memory of a run in bytes: half of what this process could get.
///
/// That is half of the least of the machine's memory and the limits of the process's cgroups (version 1
/// or 2). A container and the rest of the machine keep the other half. 1 GiB if neither can be read. The first call of a process
/// reads the limits; later calls return the same.
pub fn default_memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(|| memory_total().map_or(1 << 30, |total| total / 2))
}

/// Returns the bytes of memory of the machine or of the tightest cgroup around this process.
///
/// `None` if neither can be read.
pub fn memory_total() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| of_meminfo(&text));
    machine.into_iter().chain(memory_limit()).min()
}

/// Bytes of memory that the tightest cgroup around this process may take; none where no cgroup says.
pub fn memory_limit() -> Option<u64> {
    let text = |path: &Path| std::fs::read_to_string(path).ok();
    let groups = text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter();
    let limits = limits.filter_map(|path| text(&path)?.trim().parse().ok());
    limits.min()
}

/// Returns the default threads of a run: the processors this process may use.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn of_meminfo(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files that hold the memory limits of the process's cgroup and of every one above it.
///
/// `groups` is /proc/self/cgroup: `0::/a/b` under version 2, `9:memory:/a/b` under version 1. A limit of "max" is not a number
/// and is left out by the caller; version 1 has a huge number instead.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let fields = line.split_once(':').and_then(|of| of.1.split_once(':'));
        let ((root, name), group) = match fields {
            Some(("", group)) => (("/sys/fs/cgroup", "memory.max"), group),
            Some((controllers, group)) if controllers.split(',').any(|of| of == "memory") => {
                (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), group)
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        let groups = group.ancestors();
        files.extend(groups.map(|group| Path::new(root).join(group).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_meminfo_is_in_bytes() {
        let text = "MemTotal:       24675020 kB\nMemFree:         100 kB\n";
        assert_eq!(of_meminfo(text), Some(24_675_020 * 1024));
        assert_eq!(of_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(of_meminfo("MemTotal: many kB\n"), None);
    }

    #[test]
    fn cgroup_limits_of_all_levels_are_read() {
        let files =
            limit_files("12:cpu,cpuacct:/x\n9:memory:/docker/abc\n0::/user.slice\nbroken\n");
        let files: Vec<_> = files.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }

    #[test]
    fn machine_has_memory_and_a_processor() {
        assert!(default_memory() > 0);
        assert!(default_threads() > 0);
    }
}
