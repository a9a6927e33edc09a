"""The form for a new request: D1 to D4. What it offers, what it files, and that it files once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from portal.pages.html import environment
from portal.writes.writer import outcome_unknown
from tests.support.page_reader import HTML, Found, page, read, send
from tests.support.portal import Site
from tests.support.world import gpr_path, project, slice_

NEW = "/requests/new"


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    made = Site(tmp_path / "site")
    made.file(
        "vision/train", nodes=4, duration="6h", clusters=["east"], idleTimeout="30m", displayName="Llama"
    )
    made.settle()
    made.pass_time(5)
    yield made
    made.close()


def offers(found: Found) -> dict[str, list[str]]:
    """Rows of the pools by where they are."""
    return {row[1].split(",")[0].split()[-1]: row for row in found.rows if "/" in row[1]}


def ways(found: Found) -> dict[str, str]:
    return {one.text.split()[0]: next(one.all("pre")).inner[0].said for one in found.root.all("figure")}


def filed(site: Site) -> list[str]:
    return [line.rpartition("|")[2] for line in site.log() if "Create vision/" in line]


def test_every_pool_says_its_start_its_price_and_the_total(site: Site) -> None:
    """D3: the quotes of the API, with the cost of whole nodes for the whole duration."""
    found = page(site.client("bo-owner"), f"{NEW}?nodes=2&duration=90m&gpus=8")
    rows = offers(found)
    assert rows.keys() == {"east/h100", "west/h100"}
    assert rows["west/h100"][2] == "2"
    assert rows["east/h100"][5:] == ["2.50", "60.00 USD 16 GPUs"]  # 16 GPUs x 1.5 h x 2.50
    assert rows["west/h100"][5:] == ["—", "— 16 GPUs"]  # without a price there is no cost, and not 0
    ask = {"sliceName": "vision", "numberOfGPUNodes": 2, "exitDuration": "90m", "numberOfGPUs": 8}
    told = site.client("bo-owner").post("/api/v1/gpr/waittime", json=ask).json()["data"]["items"]
    starts = [row[3].split(" in ")[0].removesuffix(" now") for row in rows.values()]
    assert [
        f"Nov {int(one['estimatedStartTime'][8:10])}, {one['estimatedStartTime'][11:16]}" for one in told
    ] == starts


def test_it_says_whom_it_delays_before_it_is_filed(site: Site) -> None:
    """By name for one's own workspace; of others only how many (browser check 13)."""
    site.file("vision/waits", nodes=4, duration="1h", clusters=["east"])
    site.file("nlp/waits-too", nodes=4, duration="1h", clusters=["east"], priority=90)
    site.settle()
    wish = f"{NEW}?nodes=4&duration=3h&cluster=east"
    urgent = page(site.client("bo-owner"), f"{wish}&priority=200").text
    assert "It delays 2 requests: vision/waits by 3h" in urgent
    assert "waits-too" not in urgent
    assert "It delays no other request." in page(site.client("bo-owner"), f"{wish}&priority=1").text


def test_the_file_that_is_shown_is_the_file_that_is_committed(site: Site) -> None:
    """To the byte: name, id and text follow from the form's key."""
    client = site.client("bo-owner")
    found = page(client, f"{NEW}?nodes=1&duration=2h&name=Try+it&idle=30m&preemptible=no&pick=west+H100-80GB")
    comment, _, text = ways(found)["YAML"].partition("\n")
    answer = send(client, found, NEW, pick="west H100-80GB")
    assert answer.status_code == 303
    where = answer.headers["Location"].removeprefix("/requests/").partition("?")[0]
    assert comment == f"# {gpr_path(where)}"
    assert site.main(gpr_path(where)) == text.rstrip()
    assert "- west" in text
    assert page(client, f"/requests/{where}").status == 200


def test_the_command_and_the_program_say_the_same(site: Site) -> None:
    found = page(
        site.client("bo-owner"), f"{NEW}?nodes=2&duration=2h&file=mine&priority=150&idle=30m&requeue=no"
    )
    command = ways(found)["CLI"]
    assert command.splitlines()[0] == "egs gpr create vision/mine --nodes 2 --duration 0d2h0m --priority 150"
    assert command.splitlines()[1] == "egs gpr edit vision/mine requeueOnFailure=false idleTimeout=0d0h30m"
    program = ways(found)["Python"]
    assert compile(program, "program", "exec")
    assert "node_count=2" in program
    assert "exit_duration='2h'" in program


def test_a_picked_offer_decides_cluster_and_shape(site: Site) -> None:
    """D4: the form's own cluster gives way."""
    client = site.client("bo-owner")
    found = page(client, f"{NEW}?nodes=1&duration=2h&file=picked&cluster=east")
    send(client, found, NEW, pick="west H100-80GB")
    text = site.main(gpr_path("vision/picked")) or ""
    assert "- west" in text
    assert "gpuShape: H100-80GB" in text


def test_a_link_fills_the_form(site: Site) -> None:
    """The calendar links here with a dragged range."""
    query = f"shape=H100-80GB&nodes=2&duration=3h&cluster=west&notBefore={quote('2026-11-22T09:00:00+01:00')}"
    fields = page(site.client("bo-owner"), f"{NEW}?{query}").forms[NEW]
    want = {
        "shape": "H100-80GB",
        "nodes": "2",
        "duration": "3h",
        "cluster": "west",
        "notBefore": "2026-11-22T08:00",
    }
    assert fields.items() >= want.items()


def test_a_request_is_filed_again_from_its_page(site: Site) -> None:
    fields = page(site.client("bo-owner"), f"{NEW}?from=vision/train").forms[NEW]
    want = {"name": "Llama", "nodes": "4", "duration": "6h", "cluster": "east", "idle": "30m", "file": ""}
    assert fields.items() >= want.items()
    other = page(site.client("cy-editor"), f"{NEW}?from=vision/train")
    assert "Llama" not in other.html  # B10: what they may not see fills nothing


def test_a_template_fills_what_is_empty(site: Site) -> None:
    client = site.client("bo-owner")
    found = page(client, f"{NEW}?template=small&nodes=&duration=")
    assert set(offers(found)) == {"east/h100", "west/h100"}
    send(client, found, NEW, file="byform")
    assert "template: small" in (site.main(gpr_path("vision/byform")) or "")


# -- once ------------------------------------------------------------------------------------------------------------


def test_a_form_that_is_sent_twice_files_once(site: Site) -> None:
    """Browser check 6: the second answer is the first."""
    client = site.client("bo-owner")
    found = page(client, NEW)
    answers = [send(client, found, NEW, name="twice") for _ in range(3)]
    assert {answer.headers["Location"] for answer in answers} == {answers[0].headers["Location"]}
    assert len(filed(site)) == 1


def test_going_back_and_changing_the_form_asks_first(site: Site) -> None:
    """The same key with another request: nothing is filed until the reader says so once more."""
    client = site.client("bo-owner")
    found = page(client, NEW)
    send(client, found, NEW, name="first")
    told = read(send(client, found, NEW, name="second", nodes="2"))
    assert told.status == 409
    assert "was filed with this form already" in told.text
    assert told.forms[NEW]["name"] == "second"
    assert len(filed(site)) == 1
    assert send(client, told, NEW).status_code == 303
    assert len(filed(site)) == 2


def test_an_unknown_outcome_asks_and_never_files_twice(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 OutcomeUnknown: look for it, or send the same form again."""
    client, writer = site.client("bo-owner"), site.portal.writer
    found, submit = page(client, NEW), writer.submit

    async def lost(write: Any) -> Any:
        landed = await submit(write)
        raise outcome_unknown(landed.id)

    monkeypatch.setattr(writer, "submit", lost)
    told = read(send(client, found, NEW, name=" spaces stay "))
    assert told.status == 503
    assert "It may be there already" in told.text
    assert "It is on main" in page(client, told.links["Look for it"]).text
    monkeypatch.undo()
    again = send(client, told, NEW)
    assert again.status_code == 303
    assert len(filed(site)) == 1


def test_a_refusal_keeps_the_input(site: Site) -> None:
    client = site.client("bo-owner")
    found = page(client, NEW)
    refused = read(send(client, found, NEW, name="mine", file="train", duration="2h"))
    assert refused.status == 409
    assert 'title="GprAlreadyExists"' in refused.html
    assert refused.forms[NEW].items() >= {"name": "mine", "file": "train", "duration": "2h"}.items()
    assert send(client, refused, NEW, file="another").status_code == 303


def test_a_project_that_wants_pull_requests_shows_where_it_waits(site: Site) -> None:
    site.commit({"project.yaml": project(changes="pull-request")})
    client = site.client("bo-owner")
    told = read(send(client, page(client, NEW), NEW, file="asked"))
    assert told.status == 202
    assert "requests/create-vision-asked" in told.text
    assert "ada@example.com" in told.text
    assert site.main(gpr_path("vision/asked")) is None


# -- what does not fit, and who may not ------------------------------------------------------------------------------


def test_what_fits_nowhere_says_why_and_who_can_change_that(site: Site) -> None:
    found = page(site.client("bo-owner"), f"{NEW}?nodes=9&duration=2h")
    assert "Nothing fits." in found.text
    assert "east/h100 has up to 4 nodes" in found.text
    assert "set by admins: ada@example.com" in found.text


def test_a_limit_of_the_workspace_is_named(site: Site) -> None:
    site.commit(
        {"slices/vision/slice.yaml": slice_("vision", ("east", "west"), limits={"maxDuration": "4h"})}
    )
    found = page(site.client("bo-owner"), f"{NEW}?nodes=1&duration=6h")
    assert "Nothing fits." in found.text
    assert "duration is 6h but the workspace allows" in found.text
    assert "set by admins: ada@example.com" in found.text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        pytest.param("nodes=two&duration=2h", "Nodes: this must be a whole number", id="no number"),
        pytest.param("nodes=1&duration=soon", "is not a duration", id="no duration"),
        pytest.param("nodes=1&duration=2h&cluster=mars", "does not span mars", id="no cluster"),
        pytest.param("nodes=1&duration=2h&slice=nlp", "there is no workspace nlp", id="another's workspace"),
        pytest.param("nodes=&duration=", "Say how many nodes", id="not filled yet"),
    ],
)
def test_what_cannot_be_quoted_says_why(site: Site, query: str, says: str) -> None:
    found = page(site.client("bo-owner"), f"{NEW}?{query}")
    assert says.lower() in found.text.lower()
    assert "Request GPUs" in found.text


def test_who_has_no_workspace_is_told_to_ask_for_one(site: Site) -> None:
    for who in ("eve-editor", "bo-viewer"):
        found = page(site.client(who), NEW)
        assert "You are a member of no workspace" in found.text
        assert NEW not in found.forms


def test_who_may_only_look_files_nothing(site: Site) -> None:
    found = page(site.client("bo-owner"), NEW)
    answer = send(site.client("bo-viewer"), found, NEW, name="x")
    assert answer.status_code == 403
    assert filed(site) == []


def test_the_key_of_a_form_is_in_its_address(site: Site) -> None:
    """Going back finds the same form, and a script that asks again shows the file of this form."""
    client = site.client("bo-owner")
    answer = client.get(f"{NEW}?nodes=2", headers=HTML, follow_redirects=False)
    assert answer.status_code == 303
    here = answer.headers["Location"]
    key = here.partition("key=")[2]
    assert here.startswith(f"{NEW}?nodes=2&key=")
    assert page(client, here).forms[NEW]["key"] == key
    part = client.get(f"{NEW}?nodes=1&duration=2h&key={key}", headers={**HTML, "HX-Request": "true"}).text
    assert f'name="key" value="{key}"' in part


def test_whole_nodes_do_not_unfold_the_rest(site: Site) -> None:
    """A link with the GPUs of a whole node keeps the quotes in view."""
    client = site.client("bo-owner")
    whole = client.get(f"{NEW}?nodes=1&gpus=8&shape=H100-80GB&duration=1h", headers=HTML).text
    part = client.get(f"{NEW}?nodes=1&gpus=4&shape=H100-80GB&duration=1h", headers=HTML).text
    assert '<details class="more">' in whole
    assert '<details open class="more">' in part


def test_a_form_that_was_sent_says_what_it_filed(site: Site) -> None:
    """Browser check 6: who goes back sees it, and can file another one like it."""
    client = site.client("bo-owner")
    here = client.get(f"{NEW}?nodes=2", headers=HTML, follow_redirects=False).headers["Location"]
    found = page(client, here)
    where = send(client, found, NEW, file="mine").headers["Location"]
    assert where.startswith("/requests/vision/mine?did=file")
    again = page(client, here)
    assert "You filed vision/mine with this form" in again.text
    other = page(client, again.links["File another one like it"])
    assert "You filed" not in other.text
    assert other.forms[NEW]["key"] != found.forms[NEW]["key"]
    assert other.forms[NEW]["nodes"] == "2"


def late(slice_: str, change: str, minutes: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(slice=slice_, name="x", change=change, minutes=minutes)


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        pytest.param({}, "It delays no other request.", id="none"),
        pytest.param(
            {"moved": [late("a", "earlier")]}, "It delays no other request.", id="one starts earlier"
        ),
        pytest.param(
            {"moved": [late("a", "later", 60), late("b", "refused")]},
            "It delays 2 requests: a/x by 1h, b/x, which has no start then. A lower priority may delay none.",
            id="one has no start any more",
        ),
        pytest.param(
            {"moved": [late("a", "later", 60)] * 4, "more_moved": 9},
            "It delays at least 4 requests: a/x by 1h, a/x by 1h, a/x by 1h and others. "
            "A lower priority may delay none.",
            id="more than are listed",
        ),
        pytest.param(
            {"hidden": SimpleNamespace(later=1, without_start=1, preempted=1)},
            "It delays 2 requests. It takes the nodes of 1 running request. A lower priority may delay none.",
            id="others' requests",
        ),
        pytest.param(
            {"preempted": ["a/x"]},
            "It takes the nodes of 1 running request. A lower priority may delay none.",
            id="one is preempted",
        ),
    ],
)
def test_all_that_a_request_costs_others_is_said(effect: dict[str, Any], told: str) -> None:
    """C9: a delay, a start lost and nodes taken, named or not."""
    nothing = {"moved": [], "more_moved": 0, "preempted": [], "hidden": None}
    macro = environment().get_template("user/delays.html").module.delays  # type: ignore[attr-defined]
    text = re.sub(r"<[^>]*>", "", macro(SimpleNamespace(**nothing | effect)))
    assert " ".join(text.split()) == told
