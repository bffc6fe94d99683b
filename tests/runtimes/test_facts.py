"""What a checkpoint must agree with tells which setting is another one."""

from __future__ import annotations

import pytest

from millstream.pipeline import Pipeline
from millstream.runtime.facts import Facts

SQL = (
    "".join(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts WITH (connector = 'list');" for name in "ABC")
    + """CREATE SINK Out WITH (connector = 'memory'); INSERT INTO Out
SELECT A.k FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND], C [RANGE 1 SECOND] WHERE A.k = B.k AND B.k = C.k;"""
)


def facts(setting: str = "") -> Facts:
    pipeline = Pipeline()
    pipeline.add_text(setting + SQL)
    return Facts.of(pipeline.sketched())


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("SET join.feedback = false;", "join.feedback at operator"),
        ("SET join.index = 'none';", "join.index at operator"),
        ("SET join.tree = 'right-deep';", "operator #"),
    ],
)
def test_a_setting_that_changes_the_state_is_named(setting: str, said: str) -> None:
    assert said in facts(setting).difference(facts().lines)
    assert facts(setting).fingerprint != facts().fingerprint


def test_one_that_does_not_is_not() -> None:
    assert facts("SET feedback.trial = 0;") == facts()
