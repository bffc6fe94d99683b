"""A run that is refused leaves nothing behind, and `explain` refuses it where no data is needed to tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.kit import BIDS, QUERY, SINK, STREAM, Command

MORE = "CREATE SINK More WITH (connector = 'file', format = 'jsonl', path = 'deep/more');\n"
TO_MORE = "INSERT INTO More SELECT auction FROM Bid;\n"
TABLE = "CREATE TABLE Item (auction BIGINT, name STRING) WITH (path = 'items.csv');\n"
JOINED = "INSERT INTO More SELECT Bid.auction, Item.name FROM Bid JOIN Item ON Bid.auction = Item.auction;\n"


def tree(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


DECLARED = {
    "an unknown option of a stream": (
        STREAM.replace("format =", "formad ="),
        "no option `formad` in stream Bid; did you mean `format`?",
    ),
    "an unknown option of a sink": (
        SINK.replace("format =", "formad ="),
        "no option `formad` in sink Out; did you mean `format`?",
    ),
    "an unknown option of a table": (
        TABLE.replace("(path", "(formad = 'csv', path") + MORE + JOINED,
        "no option `formad` in table Item",
    ),
    "an unknown connector": (SINK.replace("'file'", "'kafka'"), "no connector `kafka` in sink Out"),
    "two sinks with one path": (
        MORE.replace("'deep/more'", "'out'") + TO_MORE,
        "the sinks More and Out both write to {place}/out; give sink Out a path of its own, or insert both "
        "queries into one sink",
    ),
    "two sinks that append, with one path": (
        SINK.replace("'out'", "'out', mode = 'append'")
        + MORE.replace("'deep/more'", "'out', mode = 'append'")
        + TO_MORE,
        "the sinks More and Out both write to {place}/out; ",
    ),
    "one sink within another": (
        MORE.replace("'deep/more'", "'out/more'") + TO_MORE,
        "the sinks More and Out write into one another: {place}/out/more and {place}/out; ",
    ),
    "a sink where the dead letters go": (
        "SET dead_letters.path = 'out';",
        "sink Out and the dead letters both write to {place}/out; ",
    ),
    "a sink where a stream reads": (
        SINK.replace("'out'", "'bids/out'"),
        "sink Out would write into {place}/bids/out, where stream Bid reads",
    ),
    "dead letters where a stream reads": (
        "SET dead_letters.path = 'bids/letters';",
        "the dead letters would go to {place}/bids/letters, where stream Bid reads {place}/bids; ",
    ),
    "a format that cannot hold a type": (
        SINK.replace("'jsonl'", "'text'"),
        "sink Out: format 'text' holds one column, not ",
    ),
    "a scheme": (SINK.replace("'out'", "'s3://bucket/out'"), "the scheme `s3` is not supported"),
    "an operator that is not there": (
        "SET execution.breaks = '17 -> 18';",
        "there is no buffer from #17 to #18",
    ),
}


def pipeline(text: str) -> str:
    """A whole pipeline, with what the text does not declare itself."""
    made = "".join(part for part, word in ((STREAM, "STREAM Bid"), (SINK, "SINK Out")) if word not in text)
    return made + text + QUERY


@pytest.mark.parametrize("name", DECLARED)
def test_explain_refuses_what_run_refuses(command: Command, name: str) -> None:
    text, said = DECLARED[name]
    said = said.replace("{place}", str(command.directory))
    command.pipeline(pipeline(text), bids=None)
    done = command("explain", "pipeline.sql")
    assert (done.code, done.out, len(done.lines)) == (1, "", 1) and said in done.err
    assert tree(command.directory) == ["pipeline.sql"]
    command.write("bids/1.csv", BIDS)
    command.write("items.csv", "auction,name\n1,vase\n")
    before = tree(command.directory)
    done = command("run", "pipeline.sql", "--runtime", "local", "--metrics", "metrics.jsonl")
    assert (done.code, done.out, len(done.lines)) == (1, "", 1) and said in done.err
    assert tree(command.directory) == before


def test_explain_needs_no_data(command: Command) -> None:
    """Also not where only the files tell the format."""
    text = (
        STREAM.replace("format = 'csv', ", "")
        + TABLE.replace("items.csv", "items")
        + SINK
        + MORE
        + QUERY
        + JOINED
    )
    done = command("explain", command.pipeline(text, bids=None))
    assert (done.code, done.err) == (0, "")
    assert tree(command.directory) == ["pipeline.sql"]


def test_an_explained_query_needs_no_sink(command: Command) -> None:
    done = command("explain", command.pipeline(STREAM + "EXPLAIN SELECT auction FROM Bid;", bids=None))
    assert (done.code, done.err) == (0, "")
    done = command(
        "explain",
        command.pipeline(STREAM.replace("watch", "wach") + "EXPLAIN SELECT auction FROM Bid;", bids=None),
    )
    assert done.code == 0


REFUSED = {
    "a source that is not there": (
        STREAM.replace("'bids'", "'nowhere'"),
        (),
        "there is no file or directory",
    ),
    "a second sink that is in use": (
        MORE + TO_MORE,
        ("mkdir", "deep/more/precious"),
        "exists and is not empty",
    ),
    "no directory of changes": (
        "",
        ("--control", "nowhere"),
        "there is no directory nowhere to take changes from",
    ),
    "metrics that cannot be written": (
        "",
        ("--metrics", "no/such/place"),
        "can not write the metrics to no/such/place",
    ),
    "a socket at which nobody answers": (
        STREAM.replace("'file', format = 'csv', path = 'bids'", "'socket', port = 1"),
        (),
        "can not connect to 127.0.0.1:1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_run_leaves_nothing(command: Command, name: str) -> None:
    text, arguments, said = REFUSED[name]
    command.pipeline(pipeline(text))
    if arguments[:1] == ("mkdir",):
        (command.directory / arguments[1]).mkdir(parents=True)
        arguments = ()
    if "--metrics" not in arguments:
        arguments = (*arguments, "--metrics", "metrics.jsonl")
    before = tree(command.directory)
    done = command("run", "pipeline.sql", "--runtime", "local", *arguments)
    assert done.code in (1, 3) and said in done.lines[-1]
    assert tree(command.directory) == before


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize("there", [True, False], ids=["empty", "missing"])
@pytest.mark.parametrize("name", ["Java", "a sink in use"])
def test_a_run_on_spark_that_is_refused_leaves_nothing(command: Command, name: str, there: bool) -> None:
    """No checkpoint either: not its directory, and in one that was there no lock."""
    command.pipeline(pipeline(MORE.replace("'deep/more'", "'deep/more/most'") + TO_MORE))
    if there:
        (command.directory / "kept" / "bids").mkdir(parents=True)
    if name == "a sink in use":
        (command.directory / "out" / "precious").mkdir(parents=True)
    before = tree(command.directory)
    done = command("run", "pipeline.sql", "--checkpoint", "kept/bids", "--metrics", "metrics.jsonl")
    said = "Spark needs Java" if name == "Java" else "sink Out: "
    assert done.code == 1 and said in done.lines[-1]
    assert tree(command.directory) == before


def test_a_run_that_began_keeps_what_it_made(command: Command) -> None:
    assert command.local(STREAM + SINK + QUERY, bids="auction,price,ts\n").code == 0
    assert (command.directory / "out").is_dir()
