"""Settings that all tests share: how many random examples are tried, and whether they repeat."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")

# `fast` derives its examples from the tests themselves, so a test gives the same verdict on each machine. `thorough` draws
# new ones in each run. No deadline: the first call of a compiled kernel, or of Spark, takes seconds.
settings.register_profile(
    "fast", deadline=None, max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=200, derandomize=False)
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of new examples here, so that a failure can name it."""
    if not settings.default.derandomize and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))
    # A shell makes what it starts in the background ignore Ctrl-C, which some tests press.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Print with each random test that fails the command that draws its examples again."""
    outcome = yield
    report = outcome.get_result()
    seed = item.config.option.hypothesis_seed
    if (
        report.failed
        and seed is not None
        and getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    ):
        again = f"HYPOTHESIS_PROFILE={PROFILE} python -m pytest '{item.nodeid}' --hypothesis-seed={seed}"
        report.sections.append(("Random examples", f"repeat: {again}"))


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The Spark session of all tests."""
    from millstream.runtime.spark.session import get_session

    session = get_session(os.environ.get("MILLSTREAM_TEST_MASTER", "local[2]"))
    yield session
    session.stop()
