"""Settings that all tests share: how many random examples are tried, and whether they repeat."""

import os

from hypothesis import HealthCheck, settings

# A random test must give the same verdict twice where nobody watches: under CI the examples are derived from
# the test itself. Elsewhere they are new in each run, and those that failed are kept in .hypothesis and tried first.
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# No deadline: the first call of a compiled kernel, or of Spark, takes seconds.
settings.register_profile("fast", deadline=None, max_examples=50, derandomize=IN_CI, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
