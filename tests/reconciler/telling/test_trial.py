"""`egs-reconciler notify` says what came back, and nothing of the address (H12)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from reconciler.main import app
from schemas.errors import UserError
from tests.support.receivers import webhook


def test_a_test_message_arrives(tmp_path: Path) -> None:
    with webhook() as hook:
        (tmp_path / "slice.vision.chat").write_text(hook.url())
        done = CliRunner().invoke(app, ["notify", "--routes", str(tmp_path), "--secret", "slice.vision.chat"])
    assert (done.exit_code, done.output) == (
        0, "slice.vision.chat address 1: Delivered: its service accepted the message\n",
    )  # fmt: skip
    assert hook.calls[0].body["title"] == "EGS: a test"


def test_what_does_not_arrive_is_told_address_by_address(tmp_path: Path) -> None:
    with webhook() as hook:
        hook.status = 404
        (tmp_path / "project.ops").write_text(f"{hook.url()}\nnothing://secret-word\n")
        done = CliRunner().invoke(
            app, ["notify", "--secret", "project.ops"], env={"EGS_ROUTES": str(tmp_path)}
        )
    assert done.exit_code == 1
    assert [line.split()[3] for line in done.output.splitlines()] == ["ServiceRefused:", "AddressUnusable:"]
    assert "secret-" not in done.output


@pytest.mark.parametrize("name", ["project.none", "../project.ops", "/etc/passwd"])
def test_what_is_no_secret_is_refused(tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["notify", "--routes", str(tmp_path), "--secret", name])
    assert isinstance(done.exception, UserError)
    assert done.exception.reason == ("SecretMissing" if name == "project.none" else "WrongUse")
