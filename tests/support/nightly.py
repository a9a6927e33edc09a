"""How many worlds a law is tried on: a few in every run, ten thousand in the nightly one (`EGS_TEST_NIGHTLY=1`)."""

from __future__ import annotations

import os

from hypothesis import settings

NIGHTLY = 10_000


def law(examples: int) -> settings:
    """Settings of a property that is a law of the domain; `examples` in every run."""
    return settings(max_examples=NIGHTLY if os.environ.get("EGS_TEST_NIGHTLY") else examples, deadline=None)
