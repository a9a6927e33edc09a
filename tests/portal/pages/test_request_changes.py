"""The forms of a request's page: D16, D17, D18. Each does what the API does, once; a refusal keeps what was typed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.http.errors import ApiError
from portal.writes.writer import outcome_unknown
from tests.support.page_reader import page, read, send
from tests.support.portal import Site
from tests.support.world import gpr, gpr_path, project


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    made.file("vision/train", nodes=2, duration="6h")
    made.settle()
    made.file("vision/next", nodes=1, duration="3h", model={"name": "llama", "framework": "torch"})
    made.pass_time(5)
    yield made
    made.close()


def file_of(site: Site, name: str) -> str:
    return site.main(gpr_path(f"vision/{name}")) or ""


def subjects(site: Site) -> list[str]:
    return [line.rpartition("|")[2] for line in site.log() if "portal@egs.dev" in line]


def test_an_edit_changes_what_was_changed_and_nothing_else(site: Site) -> None:
    """D17: other fields of the file stay as they are, also those that the form does not show."""
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/next")
    answer = send(client, found, "/requests/vision/next/edit", priority="150", duration="4h", model="llama-3")
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith("/requests/vision/next?did=edit&way=pushed&commit=")
    text = file_of(site, "next")
    assert "priority: 150" in text
    assert "duration: 0d4h0m" in text
    assert "framework: torch" in text
    assert "preemptible" not in text
    assert subjects(site) == ["Edit vision/next: exitDuration, model, priority"]
    told = page(client, "/requests/vision/next").text
    assert (
        "Changed on main, not in force yet: Reserve for 3h → 4h; Priority 101 → 150; Model llama → llama-3."
        in told
    )


def test_an_emptied_field_is_left_to_the_default(site: Site) -> None:
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/next")
    send(client, found, "/requests/vision/next/edit", idle="30m", maxWait="2h", prefer="price")
    assert "idleTimeout: 0d0h30m" in file_of(site, "next")
    found = page(client, "/requests/vision/next")
    assert found.forms["/requests/vision/next/edit"]["idle"] == "30m"
    send(client, found, "/requests/vision/next/edit", idle="", maxWait="")
    assert "idleTimeout" not in file_of(site, "next")
    assert "maxWait" not in file_of(site, "next")


def test_an_edit_of_an_older_version_is_refused_with_the_difference(site: Site) -> None:
    """Browser check 7: what was typed stays, and saving again is a decision."""
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/next")
    site.commit(
        {gpr_path("vision/next"): gpr("vision", "next", nodes=3, duration="5h")}, "Cy <cy@example.com>"
    )
    refused = read(send(client, found, "/requests/vision/next/edit", priority="180", duration="2h"))
    assert refused.status == 409
    assert "changed since you opened the form" in refused.text
    assert ["GPU nodes", "3", "1"] in refused.rows
    assert ["Reserve for", "5h", "2h"] in refused.rows
    assert ["Priority", "101", "180"] in refused.rows
    typed = refused.forms["/requests/vision/next/edit"]
    assert (typed["priority"], typed["duration"], typed["nodes"]) == ("180", "2h", "1")
    assert "nodes: 3" in file_of(site, "next")
    send(client, refused, "/requests/vision/next/edit", nodes="3")
    assert "priority: 180" in file_of(site, "next")
    assert "nodes: 3" in file_of(site, "next")


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        pytest.param({"priority": "0"}, 422, "priority: this must be at least 1", id="out of bounds"),
        pytest.param({"nodes": "two"}, 422, "nodes: this must be a whole number", id="no number"),
        pytest.param({"duration": "soon"}, 422, "is not a duration; write for example", id="no duration"),
        pytest.param({}, 409, "nothing to change", id="nothing changed"),
    ],
)
def test_a_refused_edit_keeps_what_was_typed(
    site: Site, changed: dict[str, str], status: int, says: str
) -> None:
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/next")
    refused = read(send(client, found, "/requests/vision/next/edit", **changed))
    assert refused.status == status
    assert says in refused.text
    assert refused.forms["/requests/vision/next/edit"].items() >= changed.items()
    assert subjects(site) == []


def test_a_running_request_can_be_extended_stopped_and_released(site: Site) -> None:
    """D18: and its page says what its file asks for until the controller has done it."""
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/train")
    assert "2 nodes go back now" in found.text
    send(client, found, "/requests/vision/train/extend", extend="30m")
    assert "extend: 0d0h30m" in file_of(site, "train")
    site.settle()
    found = page(client, "/requests/vision/train")
    assert "Extension refused since" in found.text  # it would delay vision/next
    answer = send(client, found, "/requests/vision/train/release")
    assert answer.status_code == 303
    told = page(client, "/requests/vision/train")
    assert "Its file asks for its end" in told.text
    assert "/requests/vision/train/release" not in told.forms
    site.pass_time(10)
    assert "Completed Over" in page(client, "/requests/vision/train").text


def test_a_stopped_request_is_started_again(site: Site) -> None:
    client = site.client("bo-owner")
    send(client, page(client, "/requests/vision/train"), "/requests/vision/train/stop")
    site.pass_time(10)
    found = page(client, "/requests/vision/train")
    assert "Time left" in found.text
    send(client, found, "/requests/vision/train/start")
    assert "stopped: true" not in file_of(site, "train")


def test_a_form_that_is_sent_twice_changes_something_once(site: Site) -> None:
    """Browser check 6: a double click, or a page that is reloaded."""
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/next")
    for _ in range(2):
        answer = send(client, found, "/requests/vision/next/edit", priority="150")
        assert answer.status_code == 303
    for _ in range(2):
        assert send(client, found, "/requests/vision/next/cancel").status_code == 303
    assert subjects(site) == ["Cancel vision/next", "Edit vision/next: priority"]


def test_a_lost_file_is_restored(site: Site) -> None:
    client = site.client("bo-owner")
    site.commit({gpr_path("vision/train"): None})
    site.settle()
    found = page(client, "/requests/vision/train")
    assert "File missing since" in found.text
    send(client, found, "/requests/vision/train/restore")
    assert "nodes: 2" in file_of(site, "train")


@pytest.mark.parametrize("who", ["bo-viewer", "cy-editor"])
def test_nobody_else_changes_it(site: Site, who: str) -> None:
    """B10: who only looks is refused in words; who does not see it learns nothing."""
    found = page(site.client("bo-owner"), "/requests/vision/next")
    answer = send(site.client(who), found, "/requests/vision/next/cancel")
    assert answer.status_code == (403 if who == "bo-viewer" else 404)
    assert subjects(site) == []


def test_there_is_no_other_action(site: Site) -> None:
    answer = site.client("bo-owner").post("/requests/vision/next/explode", data={"key": "x"})
    assert answer.status_code == 404


# -- what became of it -----------------------------------------------------------------------------------------------


def test_a_proposed_change_names_its_branch_and_who_merges(site: Site) -> None:
    """A project that wants pull requests: nothing has changed until it is merged, and the page says so."""
    site.commit({"project.yaml": project(changes="pull-request")})
    client = site.client("bo-owner")
    found = page(client, "/requests/vision/next")
    answer = send(client, found, "/requests/vision/next/edit", priority="150")
    told = page(client, answer.headers["Location"])
    assert "Your edit is filed. The change waits on the branch" in told.text
    assert "requests/edit-vision-next-priority" in told.text
    assert "ada@example.com" in told.text
    assert "priority" not in file_of(site, "next")


def test_an_unknown_outcome_is_asked_about_and_never_done_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server did not answer: the change is on main all the same, and the same form again finds it."""
    client, writer = site.client("bo-owner"), site.portal.writer
    found = page(client, "/requests/vision/next")
    submit = writer.submit

    async def lost(write: object) -> object:
        landed = await submit(write)  # type: ignore[arg-type]
        raise outcome_unknown(landed.id)

    monkeypatch.setattr(writer, "submit", lost)
    told = read(send(client, found, "/requests/vision/next/edit", priority="150"))
    assert told.status == 503
    assert "did not answer whether the change arrived" in told.text
    there = page(client, told.links["Look for it"])
    assert "It is on main" in there.text
    monkeypatch.undo()
    again = send(client, told, "/requests/vision/next/edit")
    assert again.status_code == 303
    assert subjects(site) == ["Edit vision/next: priority"]


def test_a_change_that_nobody_knows_says_so(site: Site) -> None:
    found = page(site.client("bo-owner"), "/writes/" + "0" * 32, 404)
    assert "No change of yours with this id is on main now" in found.text


def test_a_refusal_is_an_api_error() -> None:
    """The pages rely on the id in it."""
    error = outcome_unknown("7" * 32)
    assert isinstance(error, ApiError)
    assert error.data == {"id": "7" * 32}
