"""Wrong text: every mistake is one clear line with its place and, where there is one, the way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.errors import MillstreamError, NameProblem, SyntaxProblem, TypeProblem, UnsupportedProblem
from millstream.language import parse, parse_expression, parse_query

S = "CREATE STREAM B (a BIGINT,\n c BOOLEAN, ts TIMESTAMP)\n"
Q = "INSERT INTO Out\nSELECT a FROM A "

WRONG = [
    ("CRATE STREAM x (a INT)", SyntaxProblem, 1, 1, "CRATE", "did you mean CREATE STREAM?"),
    ("CREATE STRAEM x (a INT)", SyntaxProblem, 1, 1, "CREATE STRAEM", "did you mean CREATE STREAM?"),
    ("DROP TABLE x", SyntaxProblem, 1, 1, "DROP", "DROP QUERY <sink> ends queries, and CREATE OR REPLACE"),
    ("ALTER STREAM x ADD COLUMN a INT", SyntaxProblem, 1, 1, "ALTER", "CREATE OR REPLACE declares"),
    ("CREATE TEMPORARY VIEW x AS SELECT 1", SyntaxProblem, 1, 1, "CREATE TEMPORARY", "write CREATE VIEW"),
    ("INSERT OVERWRITE Out SELECT a FROM A", SyntaxProblem, 1, 8, "OVERWRITE", "mode = 'overwrite'"),
    ("INSERT INTO Out SELECT a FROM A GROUP BY a EMIT CHANGES", SyntaxProblem, 1, 44, "EMIT", "leave EMIT"),
    ("SHOW TABLES", SyntaxProblem, 1, 1, "SHOW", "begins with CREATE STREAM"),
    ("SELECT * FROM A", SyntaxProblem, 1, 1, "goes nowhere", "put INSERT INTO <sink> before it"),
    ("SELEC * FROM A", SyntaxProblem, 1, 1, "SELEC", "INSERT INTO <sink> SELECT"),
    ("CREATE OR REPLACE VIW v AS SELECT 1", SyntaxProblem, 1, 1, "CREATE VIW", "did you mean CREATE VIEW?"),
    ("CREATE VIEW v SELECT 1", SyntaxProblem, 1, 15, "`SELECT`", "expected AS"),
    (Q + "\nINSERT INTO Out SELECT 1", SyntaxProblem, 3, 1, "`INSERT`", "is a `;` missing before INSERT?"),
    (Q + "\nSET a = 1", SyntaxProblem, 3, 1, "`SET`", "is a `;` missing before SET?"),
    ("CREATE SINK a WITH (x = 1)\nCREATE SINK b WITH (x = 1)", SyntaxProblem, 2, 1, "`CREATE`", "is a `;` missing"),
    (S + "INSERT INTO Out SELECT 1", SyntaxProblem, 3, 1, "`INSERT`", "is a `;` missing"),
    (Q + "WHERE a = 'x;", SyntaxProblem, 2, 27, "a string is never closed", "add a closing '"),
    (Q + "/* x", SyntaxProblem, 2, 17, "a comment is never closed", "add */"),
    (Q + "WHERE `a", SyntaxProblem, 2, 23, "backticks", "add a closing `"),
    (S + "FOO BAR", SyntaxProblem, 3, 1, "`FOO`", "TIMESTAMP, PUNCTUATE ON, UNIQUE, CLUSTERED BY, CHECK, ETS or WITH"),
    ("CREATE STREAM B (a BIGNT)", TypeProblem, 1, 20, "`BIGNT`", "did you mean BIGINT?"),
    ("CREATE STREAM B (a ARRAY<INT>)", TypeProblem, 1, 20, "`ARRAY<INT>`", "the types are BOOLEAN"),
    ("CREATE STREAM B (a DECIMAL(50, 2))", TypeProblem, 1, 20, "DECIMAL(50, 2)", "p <= 38"),
    ("CREATE STREAM B (a INT, A INT)", NameProblem, 1, 25, "two columns", "rename one"),
    ("CREATE STREAM B (__seq INT)", NameProblem, 1, 18, "reserved", "engine"),
    ("CREATE STREAM B (a INT,)", SyntaxProblem, 1, 24, "`)`", "the name of the column"),
    (S + "TIMESTAMP BY tss", NameProblem, 3, 14, "no column `tss`", "did you mean `ts`?"),
    (S + "TIMESTAMP BY a", TypeProblem, 3, 14, "`a` is no TIMESTAMP", "declare `a TIMESTAMP`, in Python by"),
    (S + "TIMESTAMP INTERNAL AS a", TypeProblem, 3, 23, "`a` is no TIMESTAMP", "declare"),
    (S + "TIMESTAMP BY ts SLACK 5", SyntaxProblem, 3, 23, "`5` has no unit", "SECONDS"),
    (S + "TIMESTAMP BY ts SLACK 5 FORTNIGHTS", SyntaxProblem, 3, 25, "`FORTNIGHTS` is no unit", "SECONDS"),
    (S + "TIMESTAMP BY ts SLACK 5 SECNDS", SyntaxProblem, 3, 25, "`SECNDS`", "did you mean SECONDS?"),
    (S + "TIMESTAMP BY ts SLACK -5 SECONDS", SyntaxProblem, 3, 23, "negative", "SECONDS"),
    (S + "TIMESTAMP BY ts SLACK 0.0000001 SECONDS", SyntaxProblem, 3, 33, "whole number", "smallest step"),
    (S + "TIMESTAMP", SyntaxProblem, 3, 10, "end of the statement", "TIMESTAMP LATENT"),
    (S + "PUNCTUATE ON (a, b) WHEN c", NameProblem, 3, 18, "no column `b`", "there is"),
    (S + "PUNCTUATE ON (a) WHEN d = 1", NameProblem, 3, 23, "no column `d`", "there is"),
    (S + "PUNCTUATE ON (a)", SyntaxProblem, 3, 17, "end of the statement", "expected WHEN"),
    (S + "PUNCTUATE ON (a <= d) WHEN c", NameProblem, 3, 20, "no column `d`", "there is"),
    (S + "PUNCTUATE ON (a + 1 < 2) WHEN c", SyntaxProblem, 3, 15, "can not promise `a + 1 < 2`", "one column, on the left"),
    (S + "PUNCTUATE ON (a < 2, c) WHEN c", SyntaxProblem, 3, 20, "stands alone", "one for each"),
    (S + "TIMESTAMP BY ts PUNCTUATE ON (ts < a) WHEN c", SyntaxProblem, 3, 17, "nothing of the timestamp `ts`", "PUNCTUATE ON (ts)"),
    (S + "UNIQUE", SyntaxProblem, 3, 7, "end of the statement", "the columns of the key"),
    (S + "UNIQUE (a, b)", NameProblem, 3, 12, "no column `b` in UNIQUE", "there is"),
    (S + "UNIQUE (a, a)", SyntaxProblem, 3, 12, "`a` stands twice", "leave one out"),
    (S + "CLUSTERED (a)", SyntaxProblem, 3, 11, "`(`", "expected BY"),
    (S + "CLUSTERED BY (b)", NameProblem, 3, 15, "no column `b` in CLUSTERED BY", "there is"),
    (S + "TIMESTAMP BY ts CLUSTERED BY (ts)", SyntaxProblem, 3, 17, "nothing of the timestamp `ts`", "ORDERED or SLACK"),
    (S + "CHECK a > 1", SyntaxProblem, 3, 7, "`a`", "expected ( and a condition"),
    (S + "CHECK (a > 1 AND a < 9)", SyntaxProblem, 3, 8, "can not promise `a > 1 AND a < 9`", "one column, on the left"),
    (S + "CHECK (a NOT IN (1))", SyntaxProblem, 3, 8, "can not promise `NOT a IN (1)`", "one column, on the left"),
    (S + "CHECK (a > c)", SyntaxProblem, 3, 12, "with values, not with columns", "it takes"),
    (S + "ETS SOMETIMES", SyntaxProblem, 3, 5, "`SOMETIMES`", "ETS ON DEMAND"),
    (S + "ETS EVERY 0 SECONDS", SyntaxProblem, 3, 11, "above 0", "ETS ON DEMAND"),
    (S + "ETS NONE ETS NONE", SyntaxProblem, 3, 10, "one ETS clause", "leave one out"),
    (S + "WITH (a = 1, A = 2)", SyntaxProblem, 3, 14, "`a` is set twice", "leave one out"),
    (S + "WITH (a = x-y)", SyntaxProblem, 3, 12, "`-`", "in quotes"),
    (S + "WITH (path = data/in)", SyntaxProblem, 3, 18, "`/`", "in quotes, such as 'data/..."),
    ("SET a.b = out-of-order", SyntaxProblem, 1, 14, "`-`", "in quotes"),
    ("SET a", SyntaxProblem, 1, 6, "end of the statement", "= and a value"),
    ("EXPLAIN PRETTY SELECT 1", SyntaxProblem, 1, 9, "`PRETTY`", "LOGICAL, GRAPH, SPARK"),
    ("INSERT INTO a.b SELECT 1", SyntaxProblem, 1, 14, "one part", "backticks"),
    ("INSERT INTO Out (a) SELECT 1", SyntaxProblem, 1, 17, "columns of the query", "select list"),
    ("INSERT INTO Out VALUES (1)", SyntaxProblem, 1, 17, "a query is missing", "SELECT"),
    (Q + "[RANGE 5]", SyntaxProblem, 2, 24, "`5` has no unit", "SECONDS"),
    (Q + "[RANGE -5 MINUTES]", SyntaxProblem, 2, 24, "negative", "MINUTES"),
    (Q + "[5 MINUTES]", SyntaxProblem, 2, 17, "`5` begins no window", "RANGE, ROWS or NOW"),
    (Q + ", B [RANG 5 MINUTES]", SyntaxProblem, 2, 21, "`RANG` begins no window", "RANGE, ROWS or NOW"),
    (Q + "[RANGE 5 MINUTES SLIDE 0 MINUTES]", SyntaxProblem, 2, 34, "slide by 0", "leave SLIDE out"),
    (Q + "[ROWS 0]", SyntaxProblem, 2, 18, "0 rows", "ROWS 1"),
    (Q + "[ROWS -1]", SyntaxProblem, 2, 23, "number of rows", "ROWS 100"),
    (Q + "[ROWS 5 SLIDE 1 MINUTE]", SyntaxProblem, 2, 25, "SLIDE does not fit ROWS", "with ROWS a number"),
    (Q + "(RANGE 1 MINUTE)", SyntaxProblem, 2, 17, "a window stands in brackets", "write A [RANGE 1 MINUTE]"),
    (Q + "[NOW SLIDE 1 MINUTE]", SyntaxProblem, 2, 22, "SLIDE does not fit NOW", "does not slide"),
    (Q + "[SLIDE 1 MINUTE]", SyntaxProblem, 2, 17, "no length", "RANGE <duration>"),
    (Q + "[RANGE 1 MINUTE ROWS 5]", SyntaxProblem, 2, 33, "one too many", "one length"),
    (Q + "[RANGE 1 MINUTE", SyntaxProblem, 2, 32, "end of the statement", "`]`"),
    (Q + "[RANGE 1 MINUTE WA]", SyntaxProblem, 2, 35, "WA needs", "WA ts"),
    (Q + "[RANGE 1 MINUTE] [NOW]", SyntaxProblem, 2, 34, "one window", "brackets"),
    (Q + "[RANGE 1 MINUTE] UNION B", SyntaxProblem, 2, 17, "inside a union", "after the last stream"),
    (Q + "UNION DISTINCT B", SyntaxProblem, 2, 23, "keeps duplicates", "SELECT DISTINCT"),
    (Q + "WHERE x [RANGE 1 MINUTE] > 3", SyntaxProblem, 2, 25, "unexpected `[`", "a window stands after"),
    ("INSERT INTO Out SELECT 1 [NOW]", SyntaxProblem, 1, 26, "without FROM", "add FROM"),
    (Q + "JOIN", SyntaxProblem, 2, 21, "name of a stream or table is missing", None),
    (Q + "JOIN B ON", SyntaxProblem, 2, 26, "something is missing", None),
    (Q + ",", SyntaxProblem, 2, 18, "name of a stream or table is missing", None),
    (Q + "WHERE", SyntaxProblem, 2, 22, "something is missing", None),
    (Q + "GROUP BY", SyntaxProblem, 2, 25, "something is missing", None),
    (Q + "WHERE (a = 1", SyntaxProblem, 2, 29, "`)` is missing", None),
    (Q + "a b", SyntaxProblem, 2, 19, "unexpected `b`", None),
    ("INSERT INTO Out SELECT a, FROM A", SyntaxProblem, 1, 27, "something is missing before `FROM`", None),
    ("INSERT INTO Out SELECT FROM A", SyntaxProblem, 1, 24, "something is missing before `FROM`", None),
    ("INSERT INTO Out SELECT a + FROM A", SyntaxProblem, 1, 28, "something is missing before `FROM`", None),
    ("INSERT INTO Out SELECT ? FROM A", SyntaxProblem, 1, 24, "placeholder", "${name}"),
    (Q + "WHERE x = ${nowhere_set}", NameProblem, 2, 27, "${nowhere_set}", "--set nowhere_set=value"),
    (Q + "WHERE x = '${nowhere_set}'", NameProblem, 2, 28, "${nowhere_set}", "--set nowhere_set=value"),
    (Q + "WHERE x = ${", SyntaxProblem, 2, 27, "no name follows", "write ${name}"),
    ("INSERT INTO Out SELECT 1\nFROM SEQ(A AS c, B AS p) MODE RECENT WITHIN 1 HOUR", UnsupportedProblem, 2, 6, "SEQ patterns", "join"),
    ("INSERT INTO Out SELECT " + "(" * 3000 + "1" + ")" * 3000, SyntaxProblem, 1, 1, "nested too deeply", "CREATE VIEW"),
]


@pytest.mark.parametrize(("text", "problem", "line", "column", "message", "hint"), WRONG, ids=[w[0][-50:] for w in WRONG])
def test_wrong(text, problem, line, column, message, hint):
    with pytest.raises(MillstreamError) as caught:
        parse("-- a pipeline\nSET a = 1;\n" + text, file="p.sql")
    error = caught.value
    assert type(error) is problem
    assert (error.place.statement, error.place.line, error.place.column, error.place.file) == (2, line + 2, column, "p.sql")
    assert message in error.message and len(error.message) < 200 and "\x1b" not in str(error) and "\n" not in str(error)
    if hint is None:
        assert error.hint is None
    else:
        assert hint in error.hint
    assert error.__cause__ is None


@pytest.mark.parametrize("read", [parse_query, parse_expression])
@pytest.mark.parametrize("text", ["", ";", "a b c", "SELECT 1; SELECT 2", "'x", "CREATE SINK x"])
def test_wrong_single(read, text):
    with pytest.raises(SyntaxProblem) as caught:
        read(text)
    assert caught.value.place


ODD = ["${x}", "'", "`", "--", "/*", "*/", "\\", "é", "\x00", "1e9", "5s", "UNION", "\n"]
WORDS = [*re.findall(r"\w+|[^\w\s]", " ".join(w[0][:200] for w in WRONG)), *ODD]


def never_trips(text):
    for read in (parse, parse_query, parse_expression):
        try:
            read(text)
        except MillstreamError as error:
            assert error.place is not None and error.place.line >= 1 and error.place.column >= 1


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text):
    never_trips(text)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
def test_any_words_are_read_or_refused(text):
    never_trips(text)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([w[0] for w in WRONG[:-1]]), st.integers(0, 100), st.integers(0, 8), st.sampled_from(WORDS))
def test_any_edit_is_read_or_refused(text, start, length, word):
    never_trips(text[:start] + word + text[start + length :])


def test_the_package_is_short_files():
    import millstream.language

    for path in Path(millstream.language.__file__).parent.glob("*.py"):
        assert len(path.read_text().splitlines()) < 300, path
