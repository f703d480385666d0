"""Limits of memory for programs that are measured."""
import contextlib
import os
import pathlib


@contextlib.contextmanager
def limited(limit):
    """What goes before a command that gets so much memory and no more, page cache included. Needs root, or systemd and its leave."""
    if limit is None:
        yield []
    elif os.path.isdir("/run/systemd/system"):
        yield ["systemd-run", "--scope", "--quiet", "-p", f"MemoryMax={limit}", "-p", "MemorySwapMax=0"]
    else:
        root, file = pathlib.Path("/sys/fs/cgroup"), "memory.max"
        if (root / "cgroup.controllers").exists():
            (root / "cgroup.subtree_control").write_text("+memory")
        else:
            root, file = root / "memory", "memory.limit_in_bytes"
        group = root / f"graphmill-bench-{os.getpid()}"
        group.mkdir()
        try:
            (group / file).write_text(str(limit))
            if (group / "memory.swap.max").exists():
                (group / "memory.swap.max").write_text("0")
            yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        finally:
            group.rmdir()


@contextlib.contextmanager
def throttled(folder, rate):
    """Yields the words to put before a command, so that it reads and writes at most RATE bytes a second on the disk of FOLDER. Needs root and cgroups.

    Raises OSError where they are missing."""
    number = os.stat(folder).st_dev
    # A partition has the limits of its disk.
    disk = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    disk = ((disk.parent if (disk / "partition").exists() else disk) / "dev").read_text().strip()
    root, name = pathlib.Path("/sys/fs/cgroup"), f"graphmill-rate-{os.getpid()}"
    if (root / "cgroup.controllers").exists():
        (root / "cgroup.subtree_control").write_text("+io")
        group, limits = root / name, {"io.max": f"{disk} rbps={rate} wbps={rate}"}
    else:
        group = root / "blkio" / name
        limits = {f"blkio.throttle.{way}_bps_device": f"{disk} {rate}" for way in ("read", "write")}
    group.mkdir()
    try:
        for file, text in limits.items():
            (group / file).write_text(text)
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()
