"""Messages: what is written, words that the message must contain, and the place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """A text that is refused. The place is where `at` begins: the line of the text, and the column in it."""

    text: str
    words: tuple[str, ...]
    at: str


def query(text: str, *words: str, at: str) -> Message:
    return Message(f"INSERT INTO Out\n{text};", words, at)


def stream(columns: str, *words: str, at: str, clauses: str = "TIMESTAMP LATENT") -> Message:
    return Message(f"CREATE STREAM New ({columns})\n{clauses} WITH (path = 'new.csv');", words, at)


BRACKETS = [
    query(
        "SELECT count(*) FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY 1",
        "FROM A [RANGE 10 MINUTES]",
        at="TUMBLE",
    ),
    query(
        "SELECT count(*) FROM TUMBLE(A, ts, INTERVAL '90 seconds')", "FROM A [RANGE 90 SECONDS]", at="TUMBLE"
    ),
    query(
        "SELECT 1 FROM TABLE(HOP(TABLE A, DESCRIPTOR(o), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))",
        "FROM A [RANGE 10 MINUTES SLIDE 5 MINUTES]",
        "WA o",
        at="HOP",
    ),
    query(
        "SELECT k, count(*) FROM A GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR)",
        "FROM A [RANGE 1 HOUR]",
        "leave",
        at="TUMBLE",
    ),
    query(
        "SELECT count(*) FROM A GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
        "FROM A [RANGE 10 SECONDS SLIDE 5 SECONDS]",
        at="HOP",
    ),
    query(
        "SELECT count(*) FROM A GROUP BY window(ts, '10 seconds')",
        "FROM A [RANGE 10 SECONDS]",
        "window_start",
        at="window(",
    ),
    query(
        "SELECT window(ts, '10 minutes', '5 minutes') AS w, count(*) FROM A GROUP BY w",
        "FROM A [RANGE 10 MINUTES SLIDE 5 MINUTES]",
        at="window(",
    ),
    query(
        "SELECT count(*) FROM A GROUP BY time_bucket(INTERVAL '15 minutes', ts)",
        "FROM A [RANGE 15 MINUTES]",
        at="time_b",
    ),
    query("SELECT count(*) FROM A GROUP BY window(ts, '1 month')", "FROM A [RANGE <duration>]", at="window("),
    query("SELECT count(*) FROM [RANGE 10 SECONDS] A", "write A [RANGE 10 SECONDS]", at="["),
    query("SELECT count(*) FROM A [10 SECONDS RANGE]", "write A [RANGE 10 SECONDS]", at="["),
    query(
        "SELECT count(*) FROM A [10 SECONDS SLIDE 2 SECONDS]",
        "write A [RANGE 10 SECONDS SLIDE 2 SECONDS]",
        at="[",
    ),
    query("SELECT count(*) FROM A [100 ROWS]", "write A [ROWS 100]", at="["),
    query(
        "SELECT count(*) FROM A [RANGE INTERVAL '10' SECOND]",
        "without INTERVAL",
        "write 10 SECONDS",
        at="INTERVAL",
    ),
]

NOT_YET = [
    query(
        "SELECT count(*) FROM A GROUP BY session_window(ts, '5 minutes')",
        "session_window",
        "not supported yet",
        at="session_",
    ),
    query(
        "SELECT * FROM TABLE(SESSION(TABLE A, DESCRIPTOR(ts), INTERVAL '5' MINUTES))",
        "SESSION",
        "not supported yet",
        at="SESS",
    ),
    query(
        "SELECT * FROM SEQ(A AS a, B AS b) MODE RECENT WITHIN 1 HOUR", "SEQ", "not supported yet", at="SEQ"
    ),
    query(
        "SELECT * FROM A MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts PATTERN (x y) DEFINE x AS u > 1)",
        "MATCH_RECOGNIZE",
        "not supported yet",
        at="MATCH_",
    ),
    query(
        "SELECT k FROM A QUALIFY row_number() OVER (ORDER BY ts) = 1",
        "QUALIFY",
        "not supported yet",
        at="row_number",
    ),
    query(
        "SELECT A.k FROM A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts",
        "ASOF JOIN",
        "not supported yet",
        at="B ON",
    ),
    Message(
        "CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 2;",
        ("CREATE FUNCTION", "not supported yet"),
        "CREATE",
    ),
    Message("CREATE TEMPORARY FUNCTION twice AS 'a.B';", ("CREATE FUNCTION", "not supported yet"), "CREATE"),
]

TIME = [
    query("SELECT PROCTIME() AS p FROM A", "TIMESTAMP INTERNAL AS ts", at="PROCTIME"),
    stream("k INT, p AS PROCTIME()", "TIMESTAMP INTERNAL AS p", at="PROCTIME"),
    stream(
        "k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
        "TIMESTAMP BY ts SLACK 5 SECONDS",
        at="WATERMARK",
    ),
    stream(
        "k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts",
        "TIMESTAMP BY ts SLACK",
        "TIMESTAMP BY ts ORDERED",
        at="WATERMARK",
    ),
    stream(
        "k INT, ts TIMESTAMP",
        "TIMESTAMP BY ts SLACK 90 SECONDS",
        at="WATERMARK",
        clauses="WATERMARK ts DELAY OF INTERVAL 90 SECONDS",
    ),
    stream("ts TIMESTAMP", "`5` has no unit of time", "SECONDS", at="5", clauses="TIMESTAMP BY ts SLACK 5"),
    stream(
        "ts TIMESTAMP", "write 5 SECONDS", at="INTERVAL", clauses="TIMESTAMP BY ts SLACK INTERVAL '5' SECOND"
    ),
    query(
        "SELECT DATE_FORMAT(ts, 'yyyy-MM-dd') AS day, count(*) FROM A GROUP BY day",
        "CAST(ts AS DATE)",
        "progress",
        at="DATE_FORMAT",
    ),
    query(
        "SELECT count(*) FROM A GROUP BY hour(ts)", "CAST(ts AS DATE)", "date_trunc('HOUR', ts)", at="hour"
    ),
]

INTO = [
    Message("INSERT INTO\nNames SELECT k FROM A;", ("`Names` is a table", "CREATE SINK"), "Names"),
    Message("INSERT INTO\nA SELECT k FROM B;", ("`A` is a stream", "CREATE SINK"), "A"),
    Message("INSERT INTO\nOit SELECT k FROM B;", ("no sink `Oit`", "did you mean `Out`?"), "Oit"),
    Message(
        "CREATE TABLE Printed (k INT) WITH ('connector' = 'print');",
        ("connector `print`", "CREATE SINK"),
        "CREATE",
    ),
]

QUERIES = [
    query("SELECT k FROM A WHERE k IN (SELECT k FROM A)", "SEMI JOIN A AS other ON A.k = other.k", at="k IN"),
    query("SELECT A.k FROM A WHERE k IN (SELECT k FROM B)", "LEFT SEMI JOIN B ON A.k = B.k", at="k IN"),
    query(
        "SELECT A.k FROM A WHERE k NOT IN (SELECT b.k FROM B AS b WHERE b.v > 1)",
        "LEFT ANTI JOIN B AS b ON A.k = b.k AND b.v > 1",
        at="k NOT",
    ),
    query(
        "SELECT A.k FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.k = A.k)",
        "LEFT SEMI JOIN B ON B.k = A.k",
        at="EXISTS",
    ),
    query(
        "SELECT A.k FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k)",
        "LEFT ANTI JOIN B ON B.k = A.k",
        at="EXISTS",
    ),
    query(
        "SELECT k FROM A [RANGE 1 MINUTE] LIMIT 5",
        "LIMIT has no meaning on an endless stream",
        "limit = 5",
        "max(...)",
        at="5;",
    ),
    Message(
        "WITH X AS (SELECT k FROM A)\nINSERT INTO Out SELECT k FROM X;",
        ("WITH", "CREATE VIEW X AS SELECT"),
        "WITH",
    ),
    query("WITH X AS (SELECT k FROM A) SELECT k FROM X", "WITH", "CREATE VIEW X AS SELECT", at="X AS"),
    query(
        "SELECT count(*) FROM (SELECT k FROM A) [RANGE 1 MINUTE WA ts]",
        "no column `ts` in the sub-query",
        "add `ts` to the select list",
        "leave WA out",
        at="ts]",
    ),
    query(
        "SELECT count(*) FROM V [RANGE 1 MINUTE WA ts]",
        "no column `ts` in V",
        "add `ts` to the select list of `V`",
        at="ts]",
    ),
    query("SELECT count(*) FROM A [RANGE 1 MINUTE WA time]", "no column `time` in A", "`ts`", at="time"),
    query(
        "SELECT k, count(*) AS n FROM V GROUP BY k",
        "would never close",
        "add `ts` to the select list of `V`",
        at="k;",
    ),
    query(
        "SELECT ts, count(*) AS n FROM V GROUP BY ts",
        "no column `ts` in V",
        "add `ts` to the select list of `V`",
        at="ts, count",
    ),
]

FUNCTIONS = [
    query("SELECT max_by(k, u) FROM A [RANGE 1 MINUTE]", "aggregate `max_by` is not supported", at="max_by"),
    query(
        "SELECT array_agg(k) FROM A [RANGE 1 MINUTE]",
        "aggregate `array_agg` is not supported",
        at="array_agg",
    ),
    query(
        "SELECT collect_list(k) FROM A [RANGE 1 MINUTE]",
        "aggregate `collect_list` is not supported",
        at="collect",
    ),
    query(
        "SELECT percentile_approx(u, 0.5) FROM A [RANGE 1 MINUTE]",
        "aggregate `percentile_approx` is not",
        at="percentile",
    ),
    query("SELECT base64(n) FROM A", "the function base64 is not supported", at="base64"),
    query(
        "SELECT get_json_object(n, '$.a') FROM A",
        "the function get_json_object is not supported",
        at="get_json",
    ),
]

ELSEWHERE = [
    query("SELECT ts AT TIME ZONE 'CET' AS t FROM A", "in UTC", "ts + INTERVAL 2 HOURS", at="ts AT"),
    query("SELECT from_utc_timestamp(ts, 'CET') AS t FROM A", "ts + INTERVAL 2 HOURS", at="from_"),
    query("SELECT k FROM A WHERE n SIMILAR TO 'a|b'", "RLIKE", at="n SIMILAR"),
    query("SELECT k // 2 AS half FROM A", "`//`", "a DIV b", at="//"),
    query("SELECT k << 2 AS more FROM A", "k * 2", at="k <<"),
    query("SELECT k FROM A WHERE (k, u) IN ((1, 2))", "one by one", at="k, u"),
    query("SELECT extract(epoch FROM ts) AS e FROM A", "unix_seconds(ts)", at="ts)"),
    query("SELECT explode(split(n, ',')) AS x FROM A", "function explode", "unfold lists", at="explode"),
    query("SELECT x FROM A, UNNEST(n) AS t(x)", "UNNEST", "lists are unfolded", at="n) AS"),
    query("SELECT x FROM A LATERAL VIEW explode(n) t AS x", "LATERAL VIEW", "unfold lists", at="explode"),
    query(
        "SELECT A.k FROM A JOIN Names FOR SYSTEM_TIME AS OF A.ts ON A.k = Names.k",
        "SYSTEM_TIME AS OF are not supported",
        "read once",
        at="A.ts",
    ),
    query("SELECT k FROM A WHERE ts - o <= 5", "<= does not take", "INTERVAL 5 SECONDS", at="ts -"),
    query("SELECT k, ts FROM A ORDER BY 3", "ORDER BY 3: the answer has 2 columns", at="3;"),
    query("SELECT k, ts FROM A ORDER BY date_trunc('DAY', ts)", "add it to the select list", at="date_"),
    Message("CREATE STREAM IF NOT EXISTS X (k INT);", ("CREATE OR REPLACE STREAM",), "IF"),
    Message("CREATE VIEW IF NOT EXISTS X AS SELECT k FROM A;", ("CREATE OR REPLACE VIEW",), "IF"),
    Message("CREATE STREAM X AS SELECT k FROM A;", ("CREATE VIEW X AS SELECT",), "AS"),
    Message("CREATE TABLE X AS SELECT k FROM A;", ("CREATE VIEW X AS SELECT",), "AS"),
    Message("CREATE SINK X (k INT) WITH (connector = 'memory');", ("columns of its query",), "(k"),
]

TYPES = [
    stream("k INT NOT NULL", "may be null", "NOT NULL out", at="NOT"),
    stream("k INT PRIMARY KEY, v INT", "behind the columns", "UNIQUE (k)", at="PRIMARY"),
    stream("k INT, PRIMARY KEY (k) NOT ENFORCED", "behind the columns", "UNIQUE (...)", at="PRIMARY"),
    stream("t TIME", "`TIME`", "write STRING", at="TIME)"),
    stream("t UUID", "`UUID`", "write STRING", at="UUID"),
    stream("t VARCHAR(3)", "`VARCHAR(3)`", "write STRING", at="VARCHAR"),
    stream("t CHAR(3)", "`CHAR(3)`", "write STRING", at="CHAR"),
    stream("t STRING(3)", "`STRING(3)`", "write STRING", at="STRING"),
    stream("t TIMESTAMP_NTZ", "`TIMESTAMP_NTZ`", "write TIMESTAMP:", at="TIMESTAMP_NTZ"),
    stream("t TIMESTAMP WITHOUT TIME ZONE", "`TIMESTAMP_NTZ`", "write TIMESTAMP:", at="TIMESTAMP"),
    stream("t TIMESTAMP(3)", "`TIMESTAMP(3)`", "write TIMESTAMP,", at="TIMESTAMP(3)"),
    stream("t TIMESTAMP_LTZ(3)", "`TIMESTAMP_LTZ(3)`", "write TIMESTAMP,", at="TIMESTAMP_LTZ"),
    query("SELECT CAST(n AS UUID) FROM A", "the type UUID is not supported", "write STRING", at="n AS"),
    query(
        "SELECT CAST(ts AS TIMESTAMP_NTZ) FROM A",
        "TIMESTAMP_NTZ is not supported",
        "write TIMESTAMP:",
        at="ts AS",
    ),
    query("SELECT CAST(done AS DATE) FROM A", "BOOLEAN casts to DOUBLE, INT, STRING", at="done AS"),
    query("SELECT sum(done) FROM A [RANGE 1 MINUTE]", "no aggregate sum(BOOLEAN)", at="sum"),
    query("SELECT sum(d) FROM A [RANGE 1 MINUTE]", "no aggregate sum(DATE)", at="sum"),
]

RESERVED = [
    Message("CREATE STREAM __New (k INT) WITH (path = 'new.csv');", ("`__New` is reserved",), "__New"),
    Message("CREATE STREAM New (__k INT) WITH (path = 'new.csv');", ("`__k` is reserved",), "__k"),
    Message(
        "CREATE STREAM New (k INT) TIMESTAMP INTERNAL AS __t WITH (path = 'x.csv');",
        ("`__t` is reserved",),
        "__t",
    ),
    Message("CREATE TABLE __New (k INT) WITH (path = 'new.csv');", ("`__New` is reserved",), "__New"),
    Message("CREATE VIEW __New AS SELECT k FROM A;", ("`__New` is reserved",), "__New"),
    Message("CREATE SINK __New WITH (connector = 'console');", ("`__New` is reserved",), "__New"),
]

ENGINE = [
    query("SELECT DISTINCT k FROM A [RANGE 10 SECONDS WA o]", "windows over `o`", "never close", at="["),
    query("SELECT count(*) FROM (SELECT k FROM A [RANGE 1 MINUTE WA o])", "windows over `o`", at="[RANGE"),
    query("SELECT count(*) [RANGE 9 DAYS] FROM P LEFT JOIN Q USING (k)", "later time of a join", at="[RANGE"),
    query("SELECT k FROM A [RANGE 1 MINUTE] GROUP BY k HAVING max(u)", "BOOLEAN, `MAX(u)` is INT", at="max"),
    query("SELECT CASE WHEN k > 1 THEN 'a' ELSE 2 END FROM A", "write an INT", at="k > 1"),
]

MESSAGES = [*BRACKETS, *NOT_YET, *TIME, *INTO, *QUERIES, *FUNCTIONS, *ELSEWHERE, *TYPES, *RESERVED, *ENGINE]
