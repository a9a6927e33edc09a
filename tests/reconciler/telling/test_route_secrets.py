"""The operator's folder of addresses: read anew, whole or not at all, and never shown (H12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.telling.route_secrets import MOST_ADDRESSES, MOST_BYTES, Secrets
from schemas.errors import UserError

URL = "json://user:secret-word@hooks.example.com/secret-path"


def test_an_address_a_line_and_each_once(tmp_path: Path) -> None:
    (tmp_path / "project.ops").write_text(f"# the team's\n{URL}\n\n  {URL}\nmailto://x.example.com\n")
    found = Secrets(tmp_path).read("project.ops")
    assert [a.url for a in found] == [URL, "mailto://x.example.com"]


def test_a_file_that_changed_counts_at_once(tmp_path: Path) -> None:
    secrets, file = Secrets(tmp_path), tmp_path / "project.ops"
    file.write_text("json://one")
    assert secrets.read("project.ops")[0].url == "json://one"
    file.write_text("json://two")
    assert secrets.read("project.ops")[0].url == "json://two"
    file.unlink()
    with pytest.raises(UserError, match=r"project\.ops"):
        secrets.read("project.ops")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param(b"", id="an empty one"),
        pytest.param(b"# only a comment\n", id="comments alone"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param("\n".join(f"{URL}{i}" for i in range(MOST_ADDRESSES + 1)).encode(), id="too many"),
        pytest.param(f"{URL}{'x' * MOST_BYTES}".encode(), id="too long"),
    ],
)
def test_what_cannot_be_used_is_refused_without_a_word_of_it(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "slice.a.chat").write_bytes(content)
    with pytest.raises(UserError, match=r"slice\.a\.chat") as refused:
        Secrets(tmp_path).read("slice.a.chat")
    assert refused.value.reason == "SecretMissing"
    assert refused.value.__cause__ is None
    assert "secret-" not in str(refused.value)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "project.ops").mkdir()
    with pytest.raises(UserError):
        Secrets(tmp_path).read("project.ops")


def test_an_address_has_no_repr(tmp_path: Path) -> None:
    (tmp_path / "project.ops").write_text(URL)
    assert "secret-" not in repr(Secrets(tmp_path).read("project.ops"))
