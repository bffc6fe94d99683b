"""One Spark session for every test of the run that needs one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    from millstream.runtime.spark.session import get_session

    session = get_session("local[2]")
    yield session
    session.stop()
