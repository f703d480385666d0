"""The command `graphmill`, and `python -m graphmill`."""

import signal
import sys

from graphmill import _graphmill


def main() -> int:
    """Runs the command line of this process; returns the exit code."""
    # The command has handlers of its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _graphmill.main(["graphmill", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
