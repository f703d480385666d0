"""Work that goes on beside the interpreter."""

from __future__ import annotations

import atexit
import sys
import time
import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

from graphmill import _graphmill
from graphmill._ranks import rank
from graphmill.errors import Cancelled, GraphmillWarning, in_python

T = TypeVar("T")

_STEP = 0.05  # seconds between two looks at a job, in which Python handles signals
_QUIET = 0.5  # seconds before a bar is shown


_LIVE: WeakSet[Any] = WeakSet()


def _end_all() -> None:
    """Ends jobs that the interpreter would leave behind, with their files."""
    for job in list(_LIVE):
        try:
            if not job.done():
                job.cancel(at_once=True)
                while not job.done():
                    time.sleep(_STEP / 10)
        except Exception:
            continue  # a job of the process that this one was forked from


atexit.register(_end_all)


class Progress(NamedTuple):
    """How far a job is."""

    part: str
    """The part of the work that goes on, such as `scan` or `run`."""
    done: int
    """Its units that are done."""
    total: int
    """All its units; 0 if their number is not known."""
    unit: str
    """What is counted: bytes, edges, arcs, rows or passes."""


class Job(Generic[T]):
    """Work that was started with `background=True`.

    The work continues while Python runs other code, whether or not the program waits for the result.
    """

    def __init__(self, native: _graphmill.NativeJob, finish: Callable[[Any], T], bar: bool | None) -> None:
        self._native = native
        self._finish = finish
        self._bar = _Bar() if (_is_watched() if bar is None else bar) else None
        self._outcome: T | None = None
        self._error: BaseException | None = None
        self._is_taken = False
        self._taking = Lock()
        _LIVE.add(self)

    @property
    def progress(self) -> Progress | None:
        """How far the job is; `None` before its first part."""
        progress = self._native.progress()
        return None if progress is None else Progress(*progress)

    def done(self) -> bool:
        """Whether the job has ended: with a result, an error, or because it was cancelled."""
        return self._native.wait(0)

    def cancel(self, at_once: bool = False) -> None:
        """Asks the job to end.

        A run that writes checkpoints first ends its pass and writes one, unless `at_once`. Then `result` raises
        `graphmill.errors.Cancelled`.
        """
        self._native.cancel(at_once)

    def result(self, timeout: float | None = None) -> T:
        """Waits for the job, and returns its result.

        Raises the error that the job ended with, and `TimeoutError` after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._native.wait(_STEP if end is None else max(0, min(_STEP, end - time.monotonic()))):
                self._tell()
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError(f"the job has not ended after {timeout} s")
        finally:
            self._tell()
            if self._bar is not None:
                self._bar.clear()
        with self._taking:
            if not self._is_taken:
                self._is_taken = True
                try:
                    self._outcome = self._finish(self._native.take())
                except Exception as error:
                    self._error = error
        if self._error is not None:
            raise self._error
        return self._outcome  # type: ignore[return-value]

    def _wait(self) -> T:
        """The result of work in the foreground: it ends before an error does, such as Ctrl-C."""
        try:
            return self.result()
        except BaseException as error:
            self._end()
            if isinstance(error, KeyboardInterrupt) and not self._is_taken:
                try:
                    self._native.take()
                except Cancelled as cancelled:
                    raise KeyboardInterrupt(str(cancelled)) from None
            raise

    def _end(self) -> None:
        """Asks the work to end, and waits for it; another Ctrl-C ends it at once."""
        self._native.cancel()
        try:
            while not self._native.wait(_STEP):
                pass
        except KeyboardInterrupt:
            self._native.cancel(at_once=True)
            while not self._native.wait(_STEP):
                pass

    def _tell(self) -> None:
        """Passes on what the job has said since the last call."""
        for is_warning, line in self._native.lines():
            if is_warning:
                warnings.warn(in_python(line), GraphmillWarning, stacklevel=5)
            else:
                import logging

                logging.getLogger("graphmill").info(line)
        if self._bar is not None:
            self._bar.show(self.progress)


def _is_watched() -> bool:
    """Whether somebody looks: at a terminal, or at a notebook."""
    return (sys.stderr.isatty() or "ipykernel" in sys.modules) and rank() == 0


class _Bar:
    """A line on standard error that is written again and again."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._width = 0

    def show(self, progress: Progress | None) -> None:
        if progress is None or time.monotonic() - self._began < _QUIET:
            return
        of = f" of {progress.total:,}" if progress.total else ""
        share = f" ({progress.done / progress.total:.0%})" if progress.total else ""
        self._write(f"graphmill: {progress.part}: {progress.done:,}{of} {progress.unit}{share}")

    def clear(self) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()
            self._width = 0

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
