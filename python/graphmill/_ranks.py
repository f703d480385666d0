"""This process as a rank of an MPI job: `mpirun python job.py`."""

from __future__ import annotations

import atexit
import sys
from types import TracebackType

from graphmill import _graphmill


def rank() -> int:
    """The number of this process among the ranks of an MPI job, from 0; 0 outside a job."""
    return _graphmill.ranks()[0]


def ranks() -> int:
    """How many ranks the MPI job has; 1 outside a job."""
    return _graphmill.ranks()[1]


def install() -> None:
    """Leaves the job when Python ends; after an error that nothing catches, the calls of the other ranks fail."""
    hook = sys.excepthook

    def failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        atexit.unregister(_graphmill.leave_ranks)
        _graphmill.fail_ranks(f"{kind.__name__}: {error}")
        hook(kind, error, trace)

    sys.excepthook = failed
    atexit.register(_graphmill.leave_ranks)
