"""One pull request from its branch to its merge, on a live Gitea or Forgejo when `EGS_TEST_FORGE` names one.

`EGS_TEST_FORGE` is the address of a repository with a main branch, `EGS_TEST_FORGE_TOKEN_FILE` a file with the token
of an account that may write to it. The same runs on the tests' own forge, so that it stays true where there is none.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from reconciler.forges.forge_port import Forge
from reconciler.forges.open_forge import open_forge
from reconciler.forges.review_evidence import approving, forge_vouchers
from reconciler.settings import ForgeAddress
from tests.support import forge as fake
from tests.support import repos

LIVE = os.environ.get("EGS_TEST_FORGE", "")
MARKER = "<!-- egs-check -->"


@dataclass
class On:
    """A repository on a forge, and our driver on it."""

    address: ForgeAddress
    ours: Forge

    def post(self, path: str, body: dict[str, object]) -> None:
        """What people do there, by its API."""
        assert self.address.token is not None
        headers = {"Authorization": f"Bearer {self.address.token.read_text().strip()}"}
        url = f"{self.address.api}/repos/{self.address.repository}{path}"
        httpx.post(url, json=body, headers=headers, trust_env=bool(LIVE), timeout=60).raise_for_status()


@pytest.fixture
def on(tmp_path: Path) -> Iterator[On]:
    if LIVE:
        parts = urlsplit(LIVE)
        token = Path(os.environ["EGS_TEST_FORGE_TOKEN_FILE"])
        api = f"{parts.scheme}://{parts.netloc}/api/v1"
        address = ForgeAddress("gitea", api, parts.path.strip("/").removesuffix(".git"), token)
        yield On(address, open_forge(address))
        return
    there = fake.Forge(repos.bare(tmp_path / "fleet.git", {"README.md": "x\n"}), "gitea")
    with fake.served(there, tmp_path) as address:
        yield On(address, open_forge(address))


def test_a_pull_request_from_its_branch_to_its_merge(on: On) -> None:
    mark = secrets.token_hex(4)
    branch, path = f"egs-{mark}", f"slices/vision/gprs/try-{mark}.yaml"
    content = base64.b64encode(f"# {mark}\n".encode()).decode()
    body: dict[str, object] = {"branch": "main", "new_branch": branch, "content": content, "message": "Ask"}
    on.post(f"/contents/{path}", body)

    opened = on.ours.open_pull(branch, "main", f"Try {mark}", "Please.")
    assert on.ours.open_pull(branch, "main", f"Try {mark}", "Please.").number == opened.number
    assert opened.number in {pull.number for pull in on.ours.open_pulls()}

    pull = on.ours.pull(opened.number)
    assert (pull.state, pull.base_branch, pull.title) == ("open", "main", f"Try {mark}")
    assert pull.last_pusher == pull.author
    assert set(on.ours.changed_paths(pull.number)) == {path}
    blob = on.ours.blob_at(pull.head, path)
    assert blob is not None
    assert on.ours.blob_at(pull.head, "no/such.yaml") is None
    assert on.ours.committers(pull.number)
    assert list(on.ours.reviews(pull.number)) == []

    for text in ("first", "first", "second"):
        on.ours.put_comment(pull.number, MARKER, f"{MARKER}\n{text}")
        on.ours.put_status(pull.head, "success", "egs/check", text, "")

    on.post(f"/pulls/{pull.number}/merge", {"Do": "squash"})
    merged = on.ours.pull(pull.number)
    assert (merged.state, merged.merged_by) == ("merged", pull.author)
    assert [p.number for p in on.ours.pulls_of(merged.merge_commit)] == [pull.number]
    assert on.ours.blob_at(merged.merge_commit, path) == blob
    (voucher,) = forge_vouchers(on.ours, merged.merge_commit, path, blob)
    assert voucher.account == pull.author.id
    assert approving(on.ours, merged.merge_commit, path, blob) == ()
    assert all("main" in sentence for sentence in on.ours.protection("main"))
