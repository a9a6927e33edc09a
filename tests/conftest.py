"""One Hypothesis profile for everybody: the same examples in every run, so that a red build is a red change.

`EGS_TEST_RANDOM=1` draws new ones, for nightly runs and for hunting.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "egs",
    deadline=None,  # a loaded machine is no failure
    derandomize=not os.environ.get("EGS_TEST_RANDOM"),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("egs")
