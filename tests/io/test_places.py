"""Paths on other systems are refused by their scheme, before anything is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import millstream as ms
from millstream.errors import SinkProblem
from millstream.io.places import local_path, need_local, scheme_of

STREAM = "CREATE STREAM A (k INT, ts TIMESTAMP) TIMESTAMP BY ts WITH (path = '{source}', format = 'jsonl');\n"
TABLE = "CREATE TABLE T (k INT, name STRING) WITH (path = '{table}', format = 'jsonl');\n"
SINK = "CREATE SINK Out WITH (path = '{sink}');\n"
QUERY = "INSERT INTO Out SELECT A.k, T.name FROM A JOIN T ON A.k = T.k;\n"
LETTERS = "SET dead_letters.path = '{letters}';\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"k": 1, "ts": "2026-01-01 12:00:00"}\n')
    (tmp_path / "t.jsonl").write_text('{"k": 1, "name": "one"}\n')
    return tmp_path


def text(**paths: str) -> str:
    found = {"source": "a.jsonl", "table": "t.jsonl", "sink": "out", "letters": "letters", **paths}
    made = STREAM + TABLE + SINK + LETTERS + QUERY
    for name, path in found.items():
        made = made.replace(f"{{{name}}}", path)
    return made


ROLES = [("source", "stream A"), ("table", "table T"), ("sink", "sink Out"), ("letters", "dead_letters.path")]
ADDRESSES = [
    "s3://bucket/x",
    "S3A://bucket/x",
    "hdfs://host:9000/x",
    "gs://b/x.csv",
    "https://host/x",
    " s3:/x",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(("role", "owner"), ROLES)
def test_a_scheme_is_refused_by_name(place: Path, address: str, role: str, owner: str) -> None:
    before = sorted(os.listdir(place))
    session = ms.Session("local")
    with pytest.raises(ms.MillstreamError) as refused:
        session.sql(text(**{role: address}))
        session.run()
    scheme = address.strip().partition(":")[0]
    assert f"the scheme `{scheme}` is not supported; give a path that is local or mounted" in str(
        refused.value
    )
    assert owner in str(refused.value)
    assert sorted(os.listdir(place)) == before


@pytest.mark.parametrize("spelling", ["file://{}", "file:{}", "FILE://{}", "{}"])
def test_every_spelling_of_a_local_path(place: Path, spelling: str) -> None:
    session = ms.Session("local")
    names = {"source": "a.jsonl", "table": "t.jsonl", "sink": "out", "letters": "letters"}
    session.sql(text(**{role: spelling.format(place / name) for role, name in names.items()}))
    assert session.run().written == {"Out": 1}
    assert sorted(os.listdir(place)) == ["a.jsonl", "out", "t.jsonl"]


def test_names_that_look_like_schemes_are_names() -> None:
    assert [scheme_of(path) for path in ("12:00/x", "a b:/x", "x", "/s3:/x", "file:///x", "C:x")] == [
        None
    ] * 6
    assert local_path("file:///x//y") == "/x/y"


def wrong(said: str, hint: str) -> SinkProblem:
    return SinkProblem(said, hint=hint)


@pytest.mark.parametrize("path", ["file://host/x", "file://x", "file:x", "FILE:", "file://"])
def test_a_file_url_without_an_absolute_path_is_refused(path: str) -> None:
    """Else a directory of this name would be made in the working directory."""
    with pytest.raises(SinkProblem, match=r"is no absolute path; write file:///\.\.\., or the path without"):
        need_local(path, wrong)


def test_absolute_file_urls_and_names_below_a_directory_are_local() -> None:
    assert need_local("file:/x", wrong) == need_local("file:///x", wrong) == need_local("file:/", wrong) + "x"
    assert need_local("./file:x", wrong) == os.path.abspath("file:x")
