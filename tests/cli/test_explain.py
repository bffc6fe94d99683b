"""`millstream explain`: each form of the plan as text, and the query graph as a picture."""

from __future__ import annotations

from itertools import pairwise

import pytest

from millstream.graph.graph import Graph
from millstream.graph.picture import _arriving, _place, kind_of, layout, png
from millstream.pipeline import Pipeline
from tests.cli.kit import QUERY, SINK, STREAM, Command

LOGICAL = """\
insert into Out (auction, n, best, window_start, window_end)
  project auction, count(*) as n, max(price) as best, window_start, window_end
    aggregate count(*), max(price) by auction, window 1 min tumbling on ts
      project auction, price, ts
        scan Bid (auction BIGINT, price DOUBLE, ts TIMESTAMP), ts out of order by at most 30 s
"""

MANY = """\
CREATE STREAM A (k BIGINT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts ORDERED WITH (path = 'a.csv');
CREATE STREAM B (k BIGINT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts
  PUNCTUATE ON (ts) WHEN v < 0 ETS EVERY 1 SECOND SKEW 5 MS WITH (path = 'b.csv');
CREATE TABLE T (k BIGINT, name STRING) WITH (path = 'missing.csv');
CREATE SINK Out WITH (connector = 'console');
CREATE SINK Two WITH (connector = 'console');
INSERT INTO Out SELECT A.k, A.ts, T.name FROM A [RANGE 5 SECONDS], B [RANGE 3 SECONDS], T WHERE A.k = B.k AND A.k = T.k AND A.v < B.v;
INSERT INTO Two SELECT k, avg(v * 2) AS a FROM A UNION ALL B [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k;
"""


def test_logical(command: Command) -> None:
    command.pipeline(STREAM + SINK + QUERY, bids=None)  # nothing is read
    done = command("explain", "pipeline.sql")
    assert (done.code, done.out, done.err) == (0, LOGICAL, "")


def test_logical_speaks_of_bands_and_windows_in_human_lengths(command: Command) -> None:
    command.pipeline(MANY)
    out = command("explain", "pipeline.sql").out
    assert "ts_1 within 3 s before and 5 s after ts" in out
    assert "window 1 min every 10 s on ts" in out
    assert "avg(v * 2)" in out
    assert "inner join with a table on k = k_2" in out
    assert "__" not in out


def test_graph(command: Command) -> None:
    command.pipeline(MANY)
    done = command("explain", "pipeline.sql", "--form", "graph")
    assert done.code == 0, done.err
    for part in (
        "#0 source A\n     time: ts in order; enabling timestamps: on demand\n",
        "time: ts in any order, punctuated; enabling timestamps: every 1 s, skew 5 ms\n     punctuations: on (ts) when v < 0\n",
        "stateful; punctuations: linear purge, value purge\n     keys: port 0: by k; port 1: by k_1\n",
        "union",
        "punctuations: linear propagate, value propagate",
        "buffers (",
        "arcs with time-stamp memory (TSM) (5): #0 -> #4 port 0 past #1, #0 -> #8 port 0 past #1,\n     #2 -> #4 port 1 past #3, ",
        "forks (2): #1 to #4 and #8, #2 to #3 and #7\n",
    ):
        assert part in done.out, done.out


def test_spark(command: Command) -> None:
    command.pipeline(MANY)
    done = command("explain", "pipeline.sql", "--form", "spark")
    assert done.code == 0, done.err
    assert done.out.startswith("ingest: in the tasks that read the sources\n  #0 source A\n")
    assert "stage 0: stateful, a transformWithState keyed by bucket\n  shuffle #" in done.out
    assert " by k\n" in done.out


def test_explain_statements_are_explained_where_there_is_no_insert(command: Command) -> None:
    command.pipeline(STREAM + "EXPLAIN SELECT auction FROM Bid WHERE price > 3;", bids=None)
    done = command("explain", "pipeline.sql")
    assert done.code == 0
    assert "filter price > 3" in done.out


def test_nothing_to_explain(command: Command) -> None:
    command.pipeline(STREAM, bids=None)
    done = command("explain", "pipeline.sql")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("pipeline.sql: there is no query to explain")


def test_picture(command: Command) -> None:
    command.pipeline(MANY)
    done = command("explain", "pipeline.sql", "--picture", "graph.png")
    assert done.code == 0, done.err
    assert (command.directory / "graph.png").read_bytes().startswith(b"\x89PNG")
    done = command("explain", "pipeline.sql", "--picture", "nowhere/graph.png")
    assert done.code == 1
    assert done.err.startswith("nowhere/graph.png: No such file or directory")
    done = command("explain", "pipeline.sql", "--picture", "graph.svg")
    assert done.code == 2 and "a picture is a PNG, and `graph.svg` does not end in .png" in done.err


def test_the_picture_is_of_the_graph_that_runs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Graph] = []
    monkeypatch.setattr("millstream.graph.picture.png", lambda graph, title, breaks: drawn.append(graph) or b"")
    command.pipeline(MANY)
    for order in ("out-of-order", "in-order"):
        done = command("explain", "pipeline.sql", "--form", "graph", "--picture", "graph.png", "--set", f"execution.order={order}")
        assert done.code == 0, done.err
    assert ["waiting" in map(kind_of, graph.vertices) for graph in drawn] == [False, True]


def test_graph_shows_what_is_declared_of_values(command: Command) -> None:
    declared = "UNIQUE (price, auction) CLUSTERED BY (auction) CHECK (auction > 0) PUNCTUATE ON (auction <= price) WHEN price = 0"
    text = "CREATE STREAM Bid (auction BIGINT, price BIGINT) " + declared + " WITH (connector = 'file', path = 'bids.csv');"
    command.pipeline(text + SINK + "INSERT INTO Out SELECT auction FROM Bid;", bids=None)
    done = command("explain", "pipeline.sql", "--form", "graph")
    assert done.code == 0, done.err
    said = "on (auction <= price) when price = 0; unique (price, auction); clustered by (auction); check (auction > 0)"
    assert f"punctuations: {said}" in " ".join(done.out.split())


def graph_of(text: str) -> Graph:
    pipeline = Pipeline()
    pipeline.add_text(text)
    return pipeline.sketched()


IN_ORDER = "SET execution.order = 'in-order';\n"


@pytest.mark.parametrize("text", [STREAM + SINK + QUERY, MANY, IN_ORDER + MANY], ids=["one", "many", "in order"])
def test_no_two_boxes_of_a_picture_touch(text: str) -> None:
    layers, _ = layout(graph_of(text))
    width, height = _place(layers)
    for layer in layers:
        for above, below in pairwise(layer):
            assert above.y + above.height / 2 < below.y - below.height / 2 + 1e-9
        for cell in layer:
            assert cell.x - cell.width / 2 >= -1e-9 and cell.x + cell.width / 2 <= width + 1e-9
            assert cell.y - cell.height / 2 >= -1e-9 and cell.y + cell.height / 2 <= height + 1e-9
    for left, right in pairwise(layers):
        assert max(c.x + c.width / 2 for c in left) < min(c.x - c.width / 2 for c in right)


@pytest.mark.parametrize("text", [STREAM + SINK + QUERY, MANY, IN_ORDER + MANY], ids=["one", "many", "in order"])
def test_arcs_reach_a_box_side_by_side(text: str) -> None:
    layers, lines = layout(graph_of(text))
    _place(layers)
    for cell in (cell for layer in layers for cell in layer if cell.vertex is not None):
        places = sorted(_arriving(line, lines) for line in lines if line.cells[-1] is cell)
        assert all(abs(place) < cell.height / 2 for place in places)
        assert all(above + 0.05 < below for above, below in pairwise(places))


def test_boxes_that_wait_for_order() -> None:
    graph = graph_of(IN_ORDER + MANY)
    layers, _ = layout(graph)
    heads = {cell.vertex.number: cell.lines[0] for layer in layers for cell in layer if cell.vertex is not None}
    waiting = [v for v in graph.vertices if kind_of(v) == "waiting"]
    assert [heads[v.number].split(" ", 1)[1] for v in waiting] == ["sort", "in-order inner join", "sort", "in-order union"]


def test_kinds_of_boxes() -> None:
    graph = graph_of(STREAM + SINK + QUERY)
    assert [kind_of(v) for v in graph.vertices] == ["source", "stateless", "stateful", "stateless", "sink"]
    assert png(graph).startswith(b"\x89PNG")


def test_the_graph_shows_how_execution_is_set(command: Command) -> None:
    command.pipeline(MANY)
    plain = command("explain", "pipeline.sql", "--form", "graph").out
    first = next(line for line in plain.splitlines() if line.startswith("buffers")).split("): ")[1].split(",")[0].replace("#", "")
    chosen = {"strategies": "Out: breadth-first", "breaks": first, "promises": "arcs", "limit": "3"}
    given = [word for name, value in chosen.items() for word in ("--set", f"execution.{name}={value}")]
    done = command("explain", "pipeline.sql", "--form", "graph", "--picture", "graph.png", *given)
    assert done.code == 0 and "drawn into graph.png" in done.err
    (line,) = [line for line in done.out.splitlines() if line.startswith("execution:")]
    assert "breadth-first for Out" in line and "3 tuples at a time" in line and "TSM arcs" in line and "break points #" in line
    assert "BFS: Encore, Forward, Backtrack" in done.out and "BFS: " not in plain
    for name, value in (("breaks", "1 -> 99"), ("strategies", "Nowhere: depth-first")):
        done = command("explain", "pipeline.sql", "--form", "graph", "--set", f"execution.{name}={value}")
        assert done.code == 1 and done.err.count("\n") == 1, done.err


STREAM_OF = """CREATE STREAM {name} (k BIGINT, closed BOOLEAN, ts TIMESTAMP) TIMESTAMP BY ts ORDERED PUNCTUATE ON (k) WHEN closed
  WITH (connector = 'generator', pattern = '{pattern}', every = '10 milliseconds', tuples = 1000);
"""


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ("", ["keeps: tuples of A for 15 s, or until B has closed their k; tuples of B for 5 s, or until A has closed their k",
              "expected after 15 s: 800 tuples, 2,000 without punctuations"]),
        ("SET join.algorithm = 'window';", ["keeps: tuples of A for 15 s; tuples of B for 5 s", "expected after 15 s: 2,000 tuples"]),
        ("SET join.algorithm = 'punctuated';", ["keeps: tuples of A until B has closed their k; tuples of B until A has closed their k"]),
    ],
)  # fmt: skip
def test_what_a_join_keeps(command: Command, settings: str, wanted: list[str]) -> None:
    """By equation 1 of paper 002: 1 - 15 / (15 + 10) of the tuples are left when 15 of 25 values are closed."""
    streams = "".join(STREAM_OF.format(name=name, pattern="punct-asc-100-40") for name in "AB")
    query = "INSERT INTO Out SELECT A.k, A.ts FROM A [RANGE 15 SECONDS] AS A, B [RANGE 5 SECONDS] AS B WHERE A.k = B.k"
    command.pipeline(f"{settings} {streams} CREATE SINK Out WITH (connector = 'console'); {query}")
    lines = [line.strip() for line in command("explain", "pipeline.sql", "--form", "graph").out.splitlines()]
    assert [line for line in lines if line.startswith(("keeps:", "expected"))] == wanted


def test_what_a_join_of_joins_keeps(command: Command) -> None:
    """A join tells what its own inputs have finished."""
    streams = "".join(STREAM_OF.format(name=name, pattern="punct-asc-100-40") for name in "ABC")
    query = "INSERT INTO Out SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
    command.pipeline(f"{streams} CREATE SINK Out WITH (connector = 'console'); {query}")
    lines = [line.strip() for line in command("explain", "pipeline.sql", "--form", "graph").out.splitlines()]
    assert [line for line in lines if line.startswith("keeps:")] == [
        "keeps: tuples of A until B has closed their k; tuples of B until A has closed their k",
        "keeps: tuples of the left input until C has closed their k; tuples of C until the left input has closed their k",
    ]
