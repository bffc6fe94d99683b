"""One Spark session for all tests of the host; the toy program travels to the workers by value."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    import toy
    from pyspark import cloudpickle

    from millstream.runtime.spark.session import get_session

    cloudpickle.register_pickle_by_value(toy)
    session = get_session("local[2]")
    yield session
    session.stop()
