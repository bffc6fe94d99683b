"""The `millstream` command: Ctrl-C ends it without a word as long as it has nothing in hand."""

from __future__ import annotations

# Part of the interpreter. The module `signal` imports so much that an interrupt may come meanwhile.
import _signal  # type: ignore[import-not-found]


def main() -> None:
    """Run the command. An interrupt during its imports shows no traceback; later a command handles it."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from millstream.cli import main as command

    command()


if __name__ == "__main__":
    main()
