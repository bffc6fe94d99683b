"""The Gregorian calendar on whole columns: fields of a time, truncation to a unit, months added."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.types import TIMESTAMP
from millstream.expressions import raw
from millstream.expressions.node import Kernel, RowFailure

DAY = 86_400_000_000
Ints = npt.NDArray[np.int64]


def civil(days: npt.NDArray[Any]) -> tuple[Ints, Ints, Ints]:
    """Year, month and day of days since 1970-01-01 (Howard Hinnant's civil_from_days)."""
    z = days.astype(np.int64) + 719468
    era = z // 146097
    of_era = z - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = np.where(shifted < 10, shifted + 3, shifted - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from(year: Ints, month: Ints, day: Any) -> Ints:
    """The inverse of `civil`."""
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    result: Ints = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    return result


def month_lengths(year: Ints, month: Ints) -> Ints:
    following = year * 12 + month
    return days_from(following // 12, following % 12 + 1, 1) - days_from(year, month, 1)


def moved_months(days: npt.NDArray[Any], months: Any) -> Ints:
    """The same day some months on, or the month's last day when it is shorter."""
    year, month, day = civil(days)
    total = year * 12 + (month - 1) + months
    year, month = total // 12, total % 12 + 1
    return days_from(year, month, np.minimum(day, month_lengths(year, month)))


def add_months_to_date(months: int) -> Kernel:
    return raw.on_integers(lambda v: moved_months(v, months).astype(np.int32), pa.date32())


def add_months(months: int, micros: int) -> Kernel:
    def move(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        days = values // DAY
        moved = moved_months(days, months)
        if len(moved) and max(abs(int(moved.max())), abs(int(moved.min()))) > 106_000_000:
            raise RowFailure("the timestamp is outside the calendar of microseconds")
        shifted: npt.NDArray[Any] = moved * DAY + (values - days * DAY) + micros
        return shifted

    return raw.on_integers(move, TIMESTAMP)


def truncated(days: npt.NDArray[Any], unit: str) -> Ints:
    """The first day of the week (Monday), month, quarter or year."""
    if unit == "week":
        wide = days.astype(np.int64)
        return wide - (wide + 3) % 7
    year, month, _ = civil(days)
    if unit == "quarter":
        month = (month - 1) // 3 * 3 + 1
    elif unit == "year":
        month = np.ones_like(month)
    return days_from(year, month, 1)
