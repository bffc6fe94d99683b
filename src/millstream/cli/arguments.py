"""What `run` and `explain` have in common: a file, and names with values."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.errors import NameProblem, SyntaxProblem, TypeProblem, warn

if TYPE_CHECKING:
    from millstream.settings import Setting, Settings

File = Annotated[Path, typer.Argument(metavar="FILE.sql", exists=True, dir_okay=False, help="The pipeline file.", show_default=False)]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Fill ${NAME} in the file, or choose a setting. Repeatable.", show_default=False),
]


def read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SyntaxProblem(f"{file}: this is no text in UTF-8") from None
    except OSError as error:
        raise SyntaxProblem(f"{file}: {error.strerror}") from None


def variables(values: list[str] | None, option: str = "--set") -> dict[str, str]:
    found = {}
    for value in values or []:
        name, sign, text = value.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"`{value}` is not {'KEY' if option == '--conf' else 'NAME'}=VALUE", param_hint=option)
        found[name.strip()] = text
    return found


def warn_of_unused(given: Mapping[str, str], text: str, file: Path, *, more: bool = False) -> None:
    """Warn of each value that fills nothing in the text and is no setting.

    With `more` to come, as changes do, only of one whose name is much like one that is there.
    """
    from millstream.language import variables_of
    from millstream.settings import SETTINGS

    used = variables_of(text)
    for name in given:
        if name in used or name.lower() in SETTINGS or "." in name:
            continue
        near = get_close_matches(name.lower(), [each.lower() for each in (*used, *SETTINGS)], n=1)
        if near or not more:
            known = [each for each in (*used, *SETTINGS) if each in used or each.lower() in near]
            warn(str(NameProblem.unknown("variable", name, known, within=str(file))))


def choose(settings: Settings, given: Mapping[str, str], text: str) -> None:
    """Those of the values that name settings; they win over SET in the file."""
    from millstream.settings import SETTINGS

    for name, value in given.items():
        setting = SETTINGS.get(name.lower())
        if setting is not None:
            settings.set(name, _typed(setting, value))
        elif "." in name and f"${{{name}}}" not in text:
            raise NameProblem.unknown("setting", name, SETTINGS)


def _typed(setting: Setting, value: str) -> str | int | bool:
    if setting.kind is int:
        try:
            return int(value)
        except ValueError:
            raise TypeProblem(f"{setting.name} takes a whole number of at least 0, not `{value}`") from None
    if setting.kind is bool:
        if value.lower() not in ("true", "false"):
            raise TypeProblem(f"{setting.name} takes true or false, not `{value}`")
        return value.lower() == "true"
    return value
