"""What opens a cluster may be missing; then a sentence says what to install."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.clusters.kubernetes.api import connection
from reconciler.clusters.kubernetes.tenancy.member_tokens import Door, connected
from schemas.errors import UserError


@pytest.mark.parametrize(
    "opened",
    [
        lambda: connection.in_cluster("east"),
        lambda: connection.from_text("east", ""),
        lambda: connected(Door(Path("config"), "", None), "east"),
    ],
    ids=["inside", "by a kubeconfig", "by one's own kubeconfig"],
)
def test_without_the_client_of_kubernetes_it_is_named(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[[], Any]
) -> None:
    monkeypatch.setattr(connection, "find_spec", lambda name: None if name == "kubernetes" else object())
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(UserError, match=r"install egs-gitops\[kubernetes\]") as caught:
        opened()
    assert caught.value.reason == "KubernetesClientMissing"
