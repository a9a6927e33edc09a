"""Where a cluster's telemetry comes from (H5): an address without secrets, names of files and never paths."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from schemas.documents.metrics import Metrics


@pytest.mark.parametrize(
    "prometheus",
    [
        {"url": "https://prometheus.example.com"},
        {"url": "http://prometheus.monitoring.svc:9090/prom", "matchers": {"cluster": "east"}},
        {"url": "https://[::1]:9090", "auth": {"file": "east", "kind": "basic"}, "ca": "east.pem"},
    ],
)
def test_what_is_accepted(prometheus) -> None:
    assert Metrics.model_validate({"prometheus": prometheus}).prometheus is not None


@pytest.mark.parametrize(
    ("prometheus", "told"),
    [
        ({"url": "https://ada:secret@prometheus.example.com"}, "leave user and password out"),
        ({"url": "prometheus:9090"}, "give an address"),
        ({"url": "file:///etc/passwd"}, "give an address"),
        ({"url": "https://prometheus.example.com?token=1"}, "leave out what follows"),
        ({"url": "https://p", "auth": {"file": "../key"}}, "pattern"),
        ({"url": "https://p", "ca": "/etc/ca.pem"}, "pattern"),
        ({"url": "https://p", "matchers": {'a"': "b"}}, "pattern"),
    ],
)
def test_what_is_refused(prometheus, told) -> None:
    with pytest.raises(ValidationError, match=told):
        Metrics.model_validate({"prometheus": prometheus})
