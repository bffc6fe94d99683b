"""Two runs never write to one directory at the same time, unless both append."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import SinkProblem
from millstream.session import Session


def test_what_one_run_writes_to_no_other_may_write_to_at_the_same_time(tmp_path: Path) -> None:
    """Both would find the directory empty, and every answer would be there twice."""
    (tmp_path / "in.csv").write_text("a\n1\n")
    text = f"CREATE STREAM S (a BIGINT) WITH (path = '{tmp_path}/in.csv');"
    text += f"CREATE SINK Out WITH (path = '{tmp_path}/out', format = 'csv'%s);"

    def session(mode: str = "") -> Session:
        made = Session("local")
        made.sql(text % mode + "INSERT INTO Out SELECT a FROM S;")
        return made

    first = session().prepare()
    for mode in ("", ", mode = 'overwrite'", ", mode = 'append'"):
        with pytest.raises(SinkProblem, match=f"sink Out: another run is writing to {tmp_path}/out"):
            session(mode).prepare()
    first.close()
    session().run()
    with pytest.raises(SinkProblem, match="exists and is not empty"):
        session().prepare()
    appending = [session(", mode = 'append'").prepare() for _ in range(2)]
    with pytest.raises(SinkProblem, match="another run is writing"):
        session(", mode = 'overwrite'").prepare()
    for launch in appending:
        launch.close()
    session(", mode = 'overwrite'").run()


def test_two_sinks_of_one_run_are_told_apart_by_name(tmp_path: Path) -> None:
    """Also when a change brings the second one: no other run is at work."""
    (tmp_path / "in.csv").write_text("a\n1\n")
    session = Session("local")
    session.sql(f"CREATE STREAM S (a BIGINT) WITH (path = '{tmp_path}/in.csv');")
    session.sql(f"CREATE SINK Out WITH (path = '{tmp_path}/out'); INSERT INTO Out SELECT a FROM S;")
    launch = session.prepare()
    text = (
        f"CREATE SINK More WITH (path = '{tmp_path}/out', mode = 'append'); INSERT INTO More SELECT a FROM S;"
    )
    with pytest.raises(
        SinkProblem,
        match=f"the sinks Out and More both write to {tmp_path}/out; give sink More a path of its own",
    ):
        launch.change(text)
    launch.change(text.replace("/out'", "/more'"))
    launch.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]
