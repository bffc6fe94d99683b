"""Mistakes in expressions are reported with the operator, the types, the place and the way out."""

from __future__ import annotations

import pytest

from millstream.errors import MillstreamError, NameProblem, PlanProblem, TypeProblem, UnsupportedProblem
from tests.expressions.kit import compiled


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("i = s", TypeProblem, ["= does not take BIGINT with STRING", "CAST(... AS BIGINT)"]),
        ("t = s", TypeProblem, ["CAST(... AS TIMESTAMP)"]),
        ("i + s", TypeProblem, ["+ does not take BIGINT with STRING", "CAST"]),
        ("i = 'one'", TypeProblem, ["'one'", "BIGINT"]),
        ("t > 'soon'", TypeProblem, ["'soon'", "TIMESTAMP"]),
        ("b + 1", TypeProblem, ["BOOLEAN", "CAST(... AS INT)"]),
        ("b = 1", TypeProblem, ["BOOLEAN with INT"]),
        ("t + t", TypeProblem, ["INTERVAL 1 MINUTE"]),
        ("x div 2", TypeProblem, ["DIV", "floor(a / b)"]),
        ("upper(i)", TypeProblem, ["upper takes a STRING, not BIGINT", "CAST(... AS STRING)"]),
        ("i and b", TypeProblem, ["AND takes a BOOLEAN, not BIGINT"]),
        ("cast(t as boolean)", TypeProblem, ["CAST does not take TIMESTAMP to BOOLEAN"]),
        ("pmod(i)", TypeProblem, ["pmod takes 2 arguments, not 1"]),
        ("t - d > 5", TypeProblem, ["INTERVAL with INT"]),
        ("interval 1 month > interval 1 day", TypeProblem, ["INTERVAL"]),
        ("interval 3 fortnights", TypeProblem, ["FORTNIGHT", "MINUTE"]),
        ("t + interval 9999999999 days", TypeProblem, ["longer than time itself", "a smaller number"]),
        ("t + interval -106751992 days", TypeProblem, ["longer than time itself"]),
        ("t + interval 200000000 years", TypeProblem, ["longer than time itself"]),
        ("t + interval 1e300 days", TypeProblem, ["longer than time itself"]),
        ("t + interval 'NaN' days", TypeProblem, ["longer than time itself"]),
        ("t + interval '1 month 99999999999 hours'", TypeProblem, ["longer than time itself"]),
        ("t + interval '1-99999999999' year to month", TypeProblem, ["longer than time itself"]),
        ("day()", TypeProblem, ["a function lacks an argument"]),
        ("sha2(m, 0)", TypeProblem, ["sha2 takes a STRING, not DECIMAL(10,2)"]),
        ("s rlike '('", TypeProblem, ["RLIKE", "'('"]),
        ("uper(s)", NameProblem, ["no function `uper`", "did you mean `upper`?"]),
        ("mm", NameProblem, ["no column `mm`", "`m`"]),
        ("sum(i)", PlanProblem, ["sum", "GROUP BY"]),
        ("row_number() over ()", UnsupportedProblem, ["OVER"]),
        ("(select 1)", UnsupportedProblem, ["subqueries", "JOIN"]),
        ("i in (select 1)", UnsupportedProblem, ["SEMI JOIN"]),
        ("current_timestamp()", UnsupportedProblem, ["TIMESTAMP INTERNAL"]),
        ("array(1, 2)", UnsupportedProblem, ["array"]),
    ],
)
def test_message(text: str, kind: type[MillstreamError], parts: list[str]) -> None:
    with pytest.raises(kind) as caught:
        compiled(text)
    for part in parts:
        assert part in str(caught.value)


def test_the_place_is_that_of_the_innermost_mistake() -> None:
    with pytest.raises(TypeProblem) as caught:
        compiled("i > 0\n and upper(i) = 'A'")
    assert caught.value.place is not None and caught.value.place.line == 2
