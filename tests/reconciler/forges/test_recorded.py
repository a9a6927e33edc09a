"""The drivers on answers in the shape that the forges document, with all the fields that nobody asked for.

`recorded/<forge>/index.json` names the file that answers each path; everything else is not there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reconciler.forges.forge_port import Account, Committer, Forge
from reconciler.forges.open_forge import open_forge
from reconciler.settings import ForgeAddress
from schemas.errors import Fault

RECORDED = Path(__file__).parent / "recorded"
HEAD, BASE, MERGE = (
    "6dcb09b5b57875f334f61aebed695e2e4193db5e",
    "c3d0be41ecbe669545ee3e94d31ed9a4bc91ee3c",
    "e5bd3914e2e596debea16f433f57875b5b90bcd6",
)
BLOB = "3d21ec53a331a6f037a91c368710b99387d012c1"
PATH = "slices/vision/gprs/llama.yaml"
BO, ADA, EVE = Account(1001, "bo"), Account(1002, "ada"), Account(1003, "eve")
NUMBER = {"github": 1347, "gitlab": 27, "gitea": 7}


@pytest.fixture(params=["github", "gitlab", "gitea"])
def forge(request: pytest.FixtureRequest) -> Iterator[Forge]:
    folder = RECORDED / request.param
    index = json.loads((folder / "index.json").read_text())

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

        def do_GET(self) -> None:
            name = index.get(self.path.partition("?")[0])
            body = b'{"message":"Not Found"}' if name is None else (folder / name).read_bytes()
            self.send_response(404 if name is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield open_forge(ForgeAddress(request.param, f"http://127.0.0.1:{server.server_port}", "acme/fleet"))
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_pull_request_of_a_commit(forge: Forge) -> None:
    (pull,) = forge.pulls_of(MERGE)
    assert (pull.number, pull.state, pull.base_branch) == (NUMBER[forge.kind], "merged", "main")
    assert (pull.author, pull.merged_by, pull.last_pusher) == (BO, ADA, EVE)
    assert (pull.head, pull.merge_commit, pull.title) == (HEAD, MERGE, "Two nodes for vision")
    assert pull.url.startswith("https://")
    assert list(forge.pulls_of(BASE)) == []


def test_the_words_of_reviewers(forge: Forge) -> None:
    found = {
        review.by.login: (review.decision, review.commit == HEAD, review.is_dismissed, review.by.is_person)
        for review in forge.reviews(NUMBER[forge.kind])
    }
    counted = {login for login, word in found.items() if word == ("approve", True, False, True)}
    assert (
        counted
        == {
            "github": {"ada"},  # not the workflow's, the dismissed one, nor a deleted account's
            "gitlab": {
                "ada"
            },  # not the bot's, that of an account nobody knows, nor one whose time only a person's note tells
            "gitea": {
                "cy"
            },  # not the stale one, the dismissed one, the one that was asked for, nor the action's
        }[forge.kind]
    )


def test_a_review_has_its_time_and_a_name_of_its_own(forge: Forge) -> None:
    found = forge.reviews(NUMBER[forge.kind])
    assert len({review.id for review in found}) == len(found)
    assert all(review.at > datetime(2026, 11, 20, 12, tzinfo=UTC) for review in found)


def test_who_wrote_and_committed(forge: Forge) -> None:
    found = set(forge.committers(NUMBER[forge.kind]))
    assert (
        found
        == {
            "github": {
                Committer(1001, "bo@example.com"),
                Committer(19864447, "noreply@github.com"),
                Committer(0, "unknown@example.com"),
            },
            "gitlab": {Committer(0, "bo@example.com"), Committer(0, "eve@example.com")},
            "gitea": {Committer(1001, "bo@example.com"), Committer(0, "x@example.com")},
        }[forge.kind]
    )


def test_what_it_changes_with_both_names_of_what_it_renames(forge: Forge) -> None:
    assert set(forge.changed_paths(NUMBER[forge.kind])) == {PATH, "docs/old.md", "docs/new.md"}


def test_contents_and_what_is_no_file(forge: Forge) -> None:
    assert forge.blob_at(HEAD, PATH) == BLOB
    for other in ("slices/link.yaml", "slices", "slices/none.yaml"):
        assert forge.blob_at(HEAD, other) is None


def test_who_pushed_straight_to_the_branch(forge: Forge) -> None:
    if forge.kind == "gitlab":
        with pytest.raises(Fault):
            forge.pusher_of("main", BASE)
        return
    pusher = forge.pusher_of("main", BASE)
    assert pusher == {"github": Account(0, "ghost", is_person=False), "gitea": BO}[forge.kind]


def test_a_protected_branch_lacks_nothing(forge: Forge) -> None:
    assert list(forge.protection("main")) == []
