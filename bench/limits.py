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
