"""Paths as users write them: local ones, with or without `file://`; other schemes are refused by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from millstream.errors import MillstreamError

_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):/", re.IGNORECASE)
_OTHER = re.compile(r"\s*file:(?!/([^/]|$)|///)", re.IGNORECASE)
_LOCAL = re.compile(r"\s*file:(//|(?=/))", re.IGNORECASE)


def scheme_of(path: str) -> str | None:
    """The scheme of a place on another system, such as `s3`; None for a local path."""
    found = _SCHEME.match(path)
    return None if found is None or found[1].lower() == "file" else found[1]


def local_path(path: str) -> str:
    """The absolute path, without `file://`."""
    return os.path.abspath(os.path.expanduser(_LOCAL.sub("", path, count=1)))


def need_local(path: str, wrong: Callable[[str, str], MillstreamError]) -> str:
    """The absolute path; `wrong(message, hint)` makes the error of a path with another scheme."""
    if (scheme := scheme_of(path)) is not None:
        raise wrong(
            f"'{path}' is not local: the scheme `{scheme}` is not supported",
            "give a path that is local or mounted",
        )
    if _OTHER.match(path):  # what follows the slashes would be a host
        raise wrong(f"'{path}' is no absolute path", "write file:///..., or the path without `file:`")
    return local_path(path)
