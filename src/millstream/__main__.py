"""The `millstream` command: Ctrl-C ends it without a word as long as it has nothing in hand."""

from __future__ import annotations

import signal


def main() -> None:
    """Imports take a moment, and an interrupt in it should show no traceback; each command says for itself what comes after."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from millstream.cli import main as command

    command()


if __name__ == "__main__":
    main()
