"""One Spark session for all tests of the host; the toy program travels to the workers by value."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def spark(spark: object) -> object:
    """The session of all tests, whose workers get the toy program with the query."""
    import toy
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(toy)
    return spark
