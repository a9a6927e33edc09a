"""The webhook's certificate is always good, and never changes together with who vouches for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from reconciler.clusters.kubernetes.admission.webhook_certificates import (
    SECRET,
    Certificate,
    authorities,
    current,
    shared,
)

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
NAMES = ["egs-admission.egs-system.svc", "127.0.0.1"]
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def first() -> Certificate:
    """Made at NOW."""
    return current(None, NAMES, NOW)


def verifies(found: Certificate, by: Certificate) -> bool:
    """Whether who knows the authorities of `by` believes what `found` shows."""
    shown = x509.load_pem_x509_certificate(found.chain)
    known = x509.load_pem_x509_certificates(by.authorities)
    for authority in known:
        try:
            shown.verify_directly_issued_by(authority)
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


@pytest.mark.parametrize(
    ("after", "shown_anew", "authority_anew"),
    [
        pytest.param(DAY, False, False, id="a day later all stays"),
        pytest.param(59 * DAY, False, False, id="it stays while a month is left of it"),
        pytest.param(61 * DAY, True, False, id="then it is renewed by the same authority"),
        pytest.param(400 * DAY, True, False, id="also long after it ended"),
        pytest.param(
            3600 * DAY, True, True, id="an authority that would end before its certificate is no more used"
        ),
    ],
)
def test_renewal(first: Certificate, after: timedelta, shown_anew: bool, authority_anew: bool) -> None:
    then = current(first, NAMES, NOW + after)
    assert (then.chain != first.chain, then.authorities != first.authorities) == (shown_anew, authority_anew)
    assert verifies(then, then)


def test_api_servers_know_a_new_authority_before_anything_is_signed_by_it(first: Certificate) -> None:
    """Through ten years, looked at every five days by a server that has what was there five days before."""
    kept, changes = first, 0
    for day in range(5, 3650, 5):
        then = current(kept, NAMES, NOW + day * DAY)
        assert verifies(then, kept), day
        changes += then.authorities != kept.authorities
        kept = then
    assert changes == 1


@pytest.mark.parametrize(
    "spoiled",
    [
        pytest.param({"chain": b""}, id="no certificate"),
        pytest.param(
            {"authorities": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
            id="no authority",
        ),
        pytest.param({"key": b"something"}, id="no key"),
        pytest.param({"authority_key": b""}, id="no key of the authority"),
    ],
)
def test_what_cannot_be_used_is_made_anew(first: Certificate, spoiled: dict[str, bytes]) -> None:
    then = current(replace(first, **spoiled), NAMES, NOW)
    assert verifies(then, then)


def test_other_names_get_another_certificate_of_the_same_authority(first: Certificate) -> None:
    then = current(first, ["elsewhere.example.com"], NOW)
    assert then.chain != first.chain
    assert then.authorities == first.authorities


def test_nothing_secret_is_printed(first: Certificate) -> None:
    assert "PRIVATE" not in f"{first!r} {first}"


def test_all_replicas_show_the_same(kube) -> None:
    """Whoever comes first makes it; the others, and the controller, read it."""
    kube.api.create("/api/v1/namespaces", {"metadata": {"name": "egs-system"}})
    assert authorities(kube.api, "egs-system") is None
    one, other = (shared(kube.api, "egs-system", NAMES, NOW) for _ in range(2))
    assert one == other
    assert authorities(kube.api, "egs-system") == one.authorities
    renewed = shared(kube.api, "egs-system", NAMES, NOW + 70 * DAY)
    assert renewed.chain != one.chain
    kube.api.merge(f"/api/v1/namespaces/egs-system/secrets/{SECRET}", {"data": {"tls.key": None}})
    assert shared(kube.api, "egs-system", NAMES, NOW).key
