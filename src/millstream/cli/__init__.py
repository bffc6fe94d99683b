"""The `millstream` command: one line for every mistake, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from millstream import __version__
from millstream.cli import log
from millstream.errors import MillstreamError, MillstreamWarning, is_full

PASSING = 3
"""The exit status of a fault that may pass."""

COMMANDS = {
    "run": "Run the queries of a pipeline file until its streams end.",
    "explain": "Show how the queries of a pipeline file would run.",
    "demo": "Watch a live auction with an idle source, on Spark.",
    "bench": "Run one comparison, both sides in one run, with the ratio.",
    "figures": "Regenerate the papers' figures as data and plots.",
}
"""Name and help of every command; `millstream.cli.<name>` holds a function of that name, imported when it is called."""

OWN_SIGNALS = ("run",)
"""Commands that handle signals themselves. Until they do, an interrupt ends the process.

An exception in its place would be lost where Python ignores exceptions, as in a callback of the imports.
"""


class Commands(TyperGroup):
    """Lists commands by what COMMANDS says of them and imports only the one that runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, text in COMMANDS.items():
            if importlib.util.find_spec(f"{__name__}.{name}") is not None:
                self.commands[name] = TyperCommand(name, help=text, short_help=text)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in self.commands:
            self.commands[args[0]] = _load(args[0])
            if args[0] not in OWN_SIGNALS and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        return super().resolve_command(ctx, args)


def _load(name: str) -> Any:
    module = importlib.import_module(f"{__name__}.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(getattr(module, name))
    return typer.main.get_command(single)


app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"millstream {__version__}")
        raise typer.Exit()


@app.callback()
def millstream(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")] = False,
) -> None:
    """Continuous SQL over streams that carry their own progress, in one process or on Spark."""


def main() -> None:
    """Run the command and exit with its status.

    0 when all went well, 1 for a user's error, 2 for wrong usage, 3 for a fault that may pass, 130 when
    interrupted with work in hand. An error is one line.
    """
    _show_warnings()
    log.begin(False)
    try:
        app(prog_name="millstream")
    except MillstreamError as problem:
        _leave(str(problem), PASSING if problem.passing else 1)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except ModuleNotFoundError as missing:
        _leave(
            f"the Python library `{missing.name}` is not there; install Millstream with what it depends on"
        )
    except Exception as error:
        if is_full(error):
            _leave(f"a disk is full: {error}; make room, and run again", PASSING)
        said = str(error).strip().split("\n")[0]
        _leave(f"internal error: {type(error).__name__}: {said}; run again with MILLSTREAM_DEBUG=1 to see where")


def _show_warnings() -> None:
    """Print warnings for users as one line each."""
    show = warnings.showwarning

    def shown(message: Any, category: type[Warning], *rest: Any) -> None:
        if issubclass(category, MillstreamWarning):
            log.say(f"warning: {message}")
        else:
            show(message, category, *rest)

    warnings.showwarning = shown  # type: ignore[assignment]
    warnings.simplefilter("always", MillstreamWarning)


def _leave(line: str, status: int = 1) -> None:
    if os.environ.get("MILLSTREAM_DEBUG", "") not in ("", "0"):
        traceback.print_exc()
    log.say(" ".join(line.split()))
    try:
        sys.stdout.flush()
    except OSError:  # nobody reads any more, and Python would complain about it once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
