"""Variables, durations and the way back to the original text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import SyntaxProblem
from millstream.language import parse
from millstream.language.durations import microseconds, spell
from millstream.language.text import fill


def test_variables_come_before_the_environment(monkeypatch):
    monkeypatch.setenv("outside", "env")
    monkeypatch.setenv("both", "env")
    assert fill("${outside} ${ both }", {"both": "set"}).filled == "env set"


def test_comments_keep_their_variables():
    text = "-- ${a}\n/* ${b} /* ${c} */ ${d} */ SET x = '-- ${e}';"
    assert fill(text, {"e": "value"}).filled == text.replace("${e}", "value")


def test_a_value_in_quotes_stays_one_string():
    (option,) = parse("SET x = '${v}'", variables={"v": "it's a \\ and a '; SET y = 1"})
    assert option.value == "it's a \\ and a '; SET y = 1"


def test_a_value_may_be_a_number_or_several_lines():
    a, b = parse("SET x = ${v};\nSET y = '${w}'; ", variables={"v": "7", "w": "1\n2\n3"})
    assert (a.value, b.value, b.place.line, b.place.column) == (7, "1\n2\n3", 2, 1)


def test_places_behind_variables():
    text = fill("ab ${v} cd\n${w} ef", {"v": "x" * 50, "w": ""})
    assert [
        (p.line, p.column) for p in map(text.place, (0, text.filled.index("x") + 9, text.filled.index("cd"), text.filled.index("ef")))
    ] == [
        (1, 1),
        (1, 4),
        (1, 9),
        (2, 6),
    ]


@given(st.text(alphabet="ab'\"`-/*;$\\\n {}r", max_size=30))
def test_text_without_variables_is_left_alone(text):
    try:
        filled = fill(text)
    except SyntaxProblem:
        return
    except Exception as error:
        assert "no value for" in str(error)
        return
    if "${" not in text:
        assert filled.filled == text
        assert [filled.place(i).line for i in range(len(text))] == [text[:i].count("\n") + 1 for i in range(len(text))]


@pytest.mark.parametrize(
    ("number", "unit", "length"),
    [
        ("5", "MINUTES", 300_000_000),
        ("1", "min", 60_000_000),
        ("500", "MILLISECONDS", 500_000),
        ("1", "ms", 1_000),
        ("3", "MICROSECONDS", 3),
        ("2", "SEC", 2_000_000),
        ("1.5", "second", 1_500_000),
        ("12", "HOURS", 43_200_000_000),
        ("1", "day", 86_400_000_000),
        ("2", "WEEKS", 1_209_600_000_000),
    ],
)
def test_durations(number, unit, length):
    assert microseconds(number, unit) == length


@given(st.integers(0, 2**61))
def test_durations_print_exactly(length):
    number, unit = spell(length).split()
    assert microseconds(number, unit) == length
