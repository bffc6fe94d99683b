"""A secret option reaches no file of a checkpoint and no message, and may be another one in the next life."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import millstream as ms
from millstream import io
from millstream.io.contract import Source
from millstream.io.options import Options, Secret
from millstream.language import settled
from millstream.pipeline import Pipeline
from millstream.runtime.control import Control
from millstream.runtime.facts import Facts
from millstream.runtime.status import Status

FIRST, SECOND = "hunter2-tiger", "correct-horse"

opened: list[Secret | None] = []


def locked(name: str, schema: pa.Schema, options: Options) -> Source:
    """Files behind a password."""
    opened.append(options.secret("password"))
    options.text("user")
    return io.SOURCES["file"].open(name, schema, options)


@pytest.fixture(autouse=True)
def connector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(io.SOURCES, "locked", io.Connector(locked, frozenset({"password"})))
    monkeypatch.setenv("USER_NAME", "ann")
    monkeypatch.setenv("PW", FIRST)
    opened.clear()


def stream(place: str, name: str = "S", password: str = "'${PW}'") -> str:
    options = f"connector = 'locked', path = '{place}/in', format = 'csv', watch = true"
    options += f", user = '${{USER_NAME}}', password = {password}"
    return (
        f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts ORDERED ETS NONE WITH ({options});\n"
    )


def query(place: str, sink: str, of: str = "S") -> str:
    return f"CREATE SINK {sink} WITH (path = '{place}/{sink}');\nINSERT INTO {sink} SELECT k FROM {of};\n"


def secrets(options: object) -> frozenset[str]:
    return frozenset({"password"})


def test_all_but_secrets_is_filled_in() -> None:
    text = stream("x") + "SET dead_letters.path = '${USER_NAME}-${PW}';"
    filled, names = settled(text, {"PW": FIRST}, None, secrets)
    assert names == ("PW",)
    assert "user = 'ann', password = '${PW}'" in filled and f"'ann-{FIRST}'" in filled


def test_a_secret_that_is_written_out_is_refused_where_it_is_to_be_kept() -> None:
    with pytest.raises(ms.MillstreamError) as refused:
        settled(stream("x", password=f"'{FIRST}'"), {}, "c.sql", secrets)
    said = "the option `password` is secret and written out; write password = '${NAME}' and set NAME in"
    assert said in str(refused.value) and FIRST not in str(refused.value)


def test_facts_leave_secrets_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def facts() -> Facts:
        pipeline = Pipeline()
        pipeline.add_text(stream("x") + query("x", "Out"))
        return Facts.of(pipeline.sketched())

    before = facts()
    assert "user = ann" in before.lines["the source of stream S"] and FIRST not in json.dumps(
        dict(before.lines)
    )
    monkeypatch.setenv("PW", SECOND)
    assert facts() == before
    monkeypatch.setenv("USER_NAME", "bob")
    assert "user = ann" in facts().difference(before.lines)


@pytest.mark.parametrize("wrong", ["${PW}", "'${PW}' '${PW}'", "'a' ${PW}"])
def test_a_message_shows_the_variable_and_not_its_value(wrong: str) -> None:
    with pytest.raises(ms.MillstreamError) as refused:
        Pipeline().add_text(stream("x", password=wrong))
    assert "${PW}" in str(refused.value)
    assert not any(part in str(refused.value) for part in FIRST.split("-"))


def test_a_secret_in_a_text_is_hidden() -> None:
    assert f"{Secret(FIRST)} {Secret(FIRST)!r} {[Secret(FIRST)]}".count(FIRST) == 0


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_secret_is_nowhere_in_what_a_run_on_spark_leaves(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor is that of a stream that a change has brought, or one that a wrong change writes out."""
    from millstream.cli.metrics import Metrics

    (tmp_path / "in").mkdir()
    (tmp_path / "control").mkdir()
    (tmp_path / "in" / "0.csv").write_text("k,ts\n1,2026-01-01 12:00:00\nx,2026-01-01 12:00:00\n")
    place = str(tmp_path)
    (tmp_path / "control" / "1.sql").write_text(stream(place, "T", "'${PW}'") + query(place, "more", "T"))
    (tmp_path / "control" / "2.sql").write_text(stream(place, "U", f"'{FIRST}'") + query(place, "wrong", "U"))
    said: list[str] = []

    def rows(sink: str) -> int:
        return sum(len(file.read_text().splitlines()) for file in (tmp_path / sink).glob("part-*"))

    def live(password: str, done: Callable[[], bool]) -> None:
        session = ms.Session("spark", "local[2]")
        monkeypatch.setenv("PW", password)
        session.sql(stream(place) + query(place, "out") + f"SET dead_letters.path = '{place}/letters';")
        control, stop = Control(str(tmp_path / "control"), {}, said.append), threading.Event()
        record = Metrics(tmp_path / "metrics.jsonl")

        def told(status: Status) -> None:
            record.update(status)
            if done():
                stop.set()

        record.close(
            session.run(checkpoint=f"{place}/checkpoint", stop=stop, control=control, on_status=told)
        )

    live(FIRST, lambda: rows("more") == 1 and any("2.sql" in line for line in said))
    outcome = tmp_path / "control" / "1.sql.ok"
    outcome.unlink()  # as if a crash had come between
    (tmp_path / "in" / "1.csv").write_text("k,ts\n2,2026-01-01 12:00:01\n")
    live(SECOND, lambda: rows("more") == 2)
    assert [secret and secret.value for secret in opened] == [FIRST, FIRST, SECOND, SECOND]
    assert outcome.exists() and "secret and written out" in (tmp_path / "control" / "2.sql.err").read_text()
    assert rows("out") == 2 and rows("letters") == 0
    assert any(line.startswith(f"nothing was changed by {place}/control/2.sql") for line in said)
    out, err = capfd.readouterr()
    left = [*said, out, err]
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".sql"]
    assert {"millstream.json", "changes.jsonl", "metrics.jsonl"} <= {file.name for file in files}
    left += [file.read_bytes().decode("latin-1") for file in files]
    assert not [text for text in left if FIRST in text or SECOND in text]
    assert any("ann" in text for text in left)
