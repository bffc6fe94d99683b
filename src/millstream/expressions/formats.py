"""Times read and written by a format: to_timestamp(s, 'dd/MM/yyyy'), date_format(ts, 'HH:mm')."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pyarrow as pa

from millstream.core.types import TIMESTAMP
from millstream.errors import UnsupportedProblem
from millstream.expressions.coercion import moment, text
from millstream.expressions.node import Node, RowFailure, call, rowwise

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def python_format(layout: str) -> str:
    """The parser hands over half-translated formats: finish the fraction, the zone and the quotes."""
    done = re.sub(r"(%-?[a-zA-Z])strict", r"\1", layout)
    done = re.sub(r"(?<!%)S{1,9}", "%f", done)
    done = re.sub(r"(?<!%)(XXX|xxx|XX|xx|X|Z|VV)", "%z", done)
    done = re.sub(r"'([^']*)'", r"\1", done)
    left = re.sub(r"%-?[a-zA-Z]", "", done)
    if re.search(r"\b[yMdHhmsEuDFwW]{2,}\b", left):
        raise UnsupportedProblem(
            f"the time format has a part that is not supported: {left.strip()}", hint="use yyyy MM dd HH mm ss SSS XXX, and quotes for text"
        )
    return done


def read_times(node: Node, layout: str, what: str) -> Node:
    """Strings as timestamps; without a zone they are UTC."""
    form = python_format(layout).replace("%-", "%")

    def read(value: str) -> datetime:
        try:
            found = datetime.strptime(value.strip(), form)
        except ValueError:
            raise RowFailure(f"{what}: '{value}' does not follow the format") from None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    return call(rowwise(read, TIMESTAMP), TIMESTAMP, [text(node, what)], fallible=True)


def write_times(node: Node, layout: str, what: str) -> Node:
    """Timestamps as strings; years outside 1 to 9999 fail."""
    form = python_format(layout)
    digits = len(match[0]) if (match := re.search(r"(?<!%)S{1,9}", re.sub(r"(%-?[a-zA-Z])strict", r"\1", layout))) else 6

    def write(value: datetime) -> str:
        fraction = f"{value.microsecond:06d}"[:digits].ljust(digits, "0")
        year = form.replace("%f", fraction).replace("%Y", f"{value.year:04d}")
        return value.strftime(year)

    return call(rowwise(write, pa.string()), pa.string(), [moment(node, what)], fallible=True)
