"""Token buckets: nobody gets more than the burst and the rate allow, and whoever is refused learns how long to wait."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.http.rate_limits import Bucket, Limiter, Rate, neighbourhood, taken
from tests.support.profile import law
from tests.support.world import START

rates = st.builds(Rate, st.sampled_from([0.2, 1.0, 10.0, 50.0]), st.integers(1, 20))
pauses = st.lists(st.floats(0, 5), max_size=60)


def let_in(rate: Rate, gaps: list[float]) -> list[datetime]:
    """When requests were let through that came with these pauses, in seconds."""
    bucket, now, found = None, START, []
    for gap in gaps:
        now += timedelta(seconds=gap)
        bucket, wait_s = taken(bucket, rate, now)
        if wait_s == 0:
            found.append(now)
    return found


@law(200)
@given(rates, pauses)
def test_in_no_span_are_more_let_through_than_burst_and_rate_give(rate: Rate, gaps: list[float]):
    found = let_in(rate, gaps)
    for first, begin in enumerate(found):
        for last in range(first, len(found)):
            span_s = (found[last] - begin).total_seconds()
            assert last - first + 1 <= rate.burst + rate.per_s * span_s + 1e-6


@law(100)
@given(rates, pauses)
def test_whoever_waits_as_told_is_let_through(rate: Rate, gaps: list[float]):
    bucket: Bucket | None = None
    now = START
    for gap in gaps:
        now += timedelta(seconds=gap)
        bucket, wait_s = taken(bucket, rate, now)
        if wait_s > 0:
            now += timedelta(seconds=wait_s + 1e-5)
            bucket, again_s = taken(bucket, rate, now)
            assert again_s == 0


def test_a_clock_that_is_set_back_gives_nothing():
    bucket, _ = taken(None, Rate(1, 1), START)
    bucket, wait_s = taken(bucket, Rate(1, 1), START - timedelta(hours=1))
    assert wait_s > 0
    assert taken(bucket, Rate(1, 1), START)[1] > 0, "nor does it when it is set right again"


def test_each_has_a_bucket_of_their_own_and_is_told_whole_seconds():
    limiter = Limiter(Rate(0.2, 2))
    for _ in range(2):
        limiter.take("bo", START)
    limiter.take("cy", START)
    with pytest.raises(ApiError) as refused:
        limiter.take("bo", START)
    assert (refused.value.status, refused.value.reason) == (429, "TooManyRequests")
    assert refused.value.headers == {"Retry-After": "5"}
    limiter.take("bo", START + timedelta(seconds=5))


def test_looking_counts_nothing():
    limiter = Limiter(Rate(0.2, 1))
    for _ in range(3):
        limiter.check("bo", START)
    limiter.take("bo", START)
    with pytest.raises(ApiError):
        limiter.check("bo", START)


def test_what_costs_more_takes_more_and_at_most_a_full_bucket():
    limiter = Limiter(Rate(1, 20))
    for _ in range(2):
        limiter.take("bo", START, 10)
    with pytest.raises(ApiError) as refused:
        limiter.take("bo", START, 10)
    assert refused.value.headers == {"Retry-After": "10"}
    small = Limiter(Rate(0.1, 1))
    small.take("bo", START, 10)
    small.take("bo", START + timedelta(seconds=10), 10)


def test_of_too_many_the_quietest_are_forgotten():
    limiter = Limiter(Rate(0.001, 1), remembered=3)
    for who in ("a", "b", "c"):
        limiter.take(who, START)
    with pytest.raises(ApiError):
        limiter.take("a", START)  # who goes on asking is remembered
    limiter.take("d", START)
    with pytest.raises(ApiError):
        limiter.take("a", START)
    limiter.take("b", START)


@pytest.mark.parametrize(
    ("address", "want"),
    [
        pytest.param("192.0.2.7", "192.0.2.7", id="an address of IPv4 is one"),
        pytest.param("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", id="of IPv6 the network counts"),
        pytest.param("::ffff:192.0.2.7", "192.0.2.7", id="IPv4 in the clothes of IPv6 is IPv4"),
        pytest.param("testclient", "testclient", id="what is no address is as it is"),
    ],
)
def test_what_counts_as_one_address(address: str, want: str):
    assert neighbourhood(address) == want
