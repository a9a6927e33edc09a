"""API keys by the API: who makes which, what the repository knows of them, how they end (B7, K2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.identity.callers import Grant, caller_of
from portal.identity.sessions import Session, issue
from portal.vendor.key_models import KeyWish, end_of, spec_of
from reconciler.model.evidence import Actor
from schemas.documents.apikey import digest_of
from schemas.reading.yaml_text import dump
from tests.support.portal import HEAD, KEYS, Site
from tests.support.profile import law
from tests.support.world import START, project

PATH = "/api/v1/api-key"
DAY = {"validity": "2026-12-31"}


@pytest.fixture
def site(tmp_path):
    found = Site(tmp_path)
    yield found
    found.close()


def refused(answer, status, key):
    """It is refused so."""
    body = answer.json()
    assert (answer.status_code, body["error"]["errorKey"]) == (status, key), body
    return body["message"]


def as_key(site, text):
    """Asks with that key."""
    client = site.client(None)
    client.headers["Authorization"] = f"Bearer {text}"
    return client


def test_a_key_opens_what_it_says_and_the_repository_knows_its_digest_alone(site):
    with site.client("ada-owner") as ada:
        body = {
            "name": "pipeline",
            "role": "Editor",
            "workspaceName": "vision",
            "username": "bo@example.com",
            **DAY,
        }
        made = ada.post(PATH, json=body).json()["data"]
        text = made["apiKey"]
        assert text.startswith("egs_")
        assert made["expiresAt"] == "2027-01-01T00:00:00Z"  # that day is its last
        file = site.main("keys/pipeline.yaml")
        assert digest_of(text) in file
        assert text not in file
        assert "email: bo@example.com" in file
        (shown,) = (k for k in ada.get(f"{PATH}/list").json()["data"]["apiKeys"] if k["name"] == "pipeline")
        assert (shown["validity"], shown["state"], shown["workspaceName"]) == (
            "2026-12-31",
            "Active",
            "vision",
        )
        assert text not in ada.get(f"{PATH}/list").text
        assert digest_of(text) not in ada.get(f"{PATH}/list").text
    with as_key(site, text) as pipeline:
        assert [
            w["name"] for w in pipeline.get("/api/v1/slice-workspace/list").json()["data"]["workspaces"]
        ] == ["vision"]


def test_a_key_that_is_revoked_opens_nothing_and_stays_on_record(site):
    with site.client("bo-owner") as bo:
        text = bo.post(PATH, json={"name": "k", "role": "Viewer", "workspaceName": "vision", **DAY}).json()[
            "data"
        ]["apiKey"]
        assert bo.request("DELETE", PATH, json={"apiKey": text}).json()["data"]["name"] == "k"
        assert site.main("keys/k.yaml").endswith("revoked: true")
        (shown,) = (each for each in bo.get(f"{PATH}/list").json()["data"]["apiKeys"] if each["name"] == "k")
        assert shown["state"] == "Revoked"
        again = bo.post(PATH, json={"name": "k", "role": "Viewer", "workspaceName": "vision", **DAY})
        refused(again, 409, "ApiKeyAlreadyExists")
        assert bo.request("DELETE", PATH, json={"name": "k"}).status_code == 200  # it is so already
    with as_key(site, text) as late:
        assert late.get(f"{PATH}/list").status_code == 401


@pytest.mark.parametrize(
    ("key", "body", "status", "sentence"),
    [
        pytest.param(
            "ada-owner", {"role": "Owner", "name": "My Key"}, 422, "my-key would be valid", id="no name"
        ),
        pytest.param(
            "ada-owner", {"role": "Owner", "validity": "2026-11-20"}, 422, "is in the past", id="yesterday"
        ),
        pytest.param(
            "ada-owner", {"role": "Owner", "validity": "2036-12-31"}, 422, "ten years", id="for ever"
        ),
        pytest.param(
            "ada-owner", {"role": "Owner", "validity": "tomorrow"}, 422, "like 2026-12-31", id="no day"
        ),
        pytest.param("ada-owner", {"role": "King"}, 422, "role: ", id="no role"),
        pytest.param(
            "bo-owner",
            {"role": "Owner", "username": "ada@example.com"},
            403,
            "only admins",
            id="in another's name",
        ),
        pytest.param(
            "bo-owner",
            {"role": "Viewer", "workspaceName": "nlp"},
            422,
            "choose from vision",
            id="another's slice",
        ),
        pytest.param(
            "bo-editor",
            {"role": "Viewer", "workspaceName": "vision"},
            403,
            "role Owner",
            id="by an Editor's key",
        ),
        pytest.param(
            "bo-viewer",
            {"role": "Viewer", "workspaceName": "vision"},
            403,
            "role Owner",
            id="by a Viewer's key",
        ),
        pytest.param(
            "ada-vision", {"role": "Owner"}, 403, "the whole project", id="for more than its own scope"
        ),
        pytest.param("eve-editor", {"role": "Owner"}, 403, "role Owner", id="by nobody's member"),
    ],
)
def test_keys_that_are_not_made(site, key, body, status, sentence):
    with site.client(key) as client:
        answer = client.post(PATH, json={"name": "k", **DAY, **body})
    assert sentence in refused(answer, status, "Forbidden" if status == 403 else "BadParameters")
    assert site.main("keys/k.yaml") is None


def test_a_key_for_a_slice_makes_keys_for_that_slice_alone(site):
    with site.client("ada-vision") as ada:
        assert (
            ada.post(PATH, json={"name": "k", "role": "Editor", "workspaceName": "vision", **DAY}).status_code
            == 200
        )


def test_no_key_outlives_the_one_that_made_it(site):
    manifest = site.main("keys/bo-owner.yaml") + "\n  notAfter: 2026-12-01T00:00:00Z\n"
    site.commit({"keys/bo-owner.yaml": manifest})
    caller = caller_of(
        Actor("bo@example.com", member_of=frozenset({"vision"})),
        "bo",
        [Grant("Owner")],
        ["vision"],
        key="bo-owner",
        expires=START + timedelta(hours=1),  # of the session; the key can open another
    )
    body = {"name": "k", "role": "Viewer", "workspace_name": "vision"}
    with pytest.raises(ApiError, match="cannot make a key that expires later"):
        spec_of(KeyWish(**body, validity="2026-12-01"), caller, site.view, START)
    assert spec_of(KeyWish(**body, validity="2026-11-30"), caller, site.view, START).not_after


def test_who_ends_which_key(site):
    """The person whose it is, and admins; with a key only by one of role Owner: a stolen one locks nobody out."""
    with site.client("bo-editor") as bo:
        refused(bo.request("DELETE", PATH, json={"name": "bo-viewer"}), 403, "Forbidden")
        refused(bo.request("DELETE", PATH, json={"name": "ada-owner"}), 404, "NotFound")
        refused(
            bo.request("DELETE", PATH, json={"name": "bo-owner"}), 404, "NotFound"
        )  # it has a wider scope
        said = refused(bo.request("DELETE", PATH, json={"apiKey": KEYS["ada-owner"]}), 404, "NotFound")
        assert KEYS["ada-owner"] not in said
        refused(bo.request("DELETE", PATH, json={}), 422, "BadParameters")
    with site.client("bo-owner") as bo:
        assert bo.request("DELETE", PATH, json={"name": "bo-editor"}).status_code == 200
    with site.client("ada-owner") as ada:
        assert ada.request("DELETE", PATH, json={"name": "bo-viewer"}).status_code == 200


def test_who_sees_which_keys(site):
    def names(key, **params):
        with site.client(key) as client:
            return [
                each["name"] for each in client.get(f"{PATH}/list", params=params).json()["data"]["apiKeys"]
            ]

    assert names("ada-owner") == sorted(KEYS)
    assert names("ada-owner", workspaceName="vision") == ["ada-vision", "bo-editor", "bo-viewer"]
    assert names("bo-owner") == ["bo-editor", "bo-expired", "bo-owner", "bo-revoked", "bo-viewer"]
    assert names("bo-editor") == ["bo-editor", "bo-viewer"]
    with site.client("cy-editor") as cy:
        refused(cy.get(f"{PATH}/list", params={"workspaceName": "vision"}), 404, "NotFound")


GRANTS = st.builds(
    Grant,
    role=st.sampled_from(["Owner", "Editor", "Viewer"]),
    slices=st.none() | st.sets(st.sampled_from(["vision", "nlp"]), min_size=1).map(frozenset),
)


@law(200)
@given(
    st.lists(GRANTS, max_size=3),
    st.sampled_from(["Owner", "Editor", "Viewer"]),
    st.sampled_from(["", "vision", "nlp"]),
)
def test_no_key_carries_more_than_the_one_that_made_it(shared, grants, role, workspace):
    """Whatever it is made of: what the new key lets through, the old one does too."""
    person = Actor("ada@example.com", True, frozenset(), frozenset(), "ada")
    caller = caller_of(person, "ada", grants, shared.wanted.slices, key="k")
    try:
        spec = spec_of(KeyWish(name="new", role=role, workspace_name=workspace), caller, shared, START)
    except ApiError:
        return
    new = caller_of(person, "ada", [Grant(spec.role, frozenset(spec.slices) or None)], shared.wanted.slices)
    assert spec.email == "ada@example.com"
    assert new.is_admin <= caller.is_admin
    assert new.actor.member_of <= caller.actor.member_of
    assert new.actor.owns <= caller.actor.owns
    assert caller.sees is None or (new.sees is not None and new.sees <= caller.sees)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    found = Site(tmp_path_factory.mktemp("site"))
    yield found.view
    found.close()


def test_a_day_ends_in_utc_and_none_means_tomorrow():
    late = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
    assert end_of("2026-11-21", late) == datetime(2026, 11, 22, tzinfo=UTC)
    assert end_of("", late) == datetime(2026, 11, 23, tzinfo=UTC)


def test_no_text_of_a_key_is_in_a_repr():
    from portal.vendor.key_models import KeyNamed

    assert "egs_secret" not in repr(KeyNamed(api_key="egs_secret"))


def key_of(name, email, **more):
    """The manifest of a key of that person."""
    spec = {"sha256": digest_of(name), "email": email, "role": "Editor", "slices": ["vision"], **more}
    return dump({**HEAD, "kind": "ApiKey", "metadata": {"name": name}, "spec": spec})


def as_login(site, email, **more):
    """Asks as somebody who logged in."""
    client = site.client(None)
    session = Session(email, email, site.now + timedelta(hours=1), **more)
    client.headers["Authorization"] = f"Bearer {issue(site.portal.parts.logins.signer, session)}"
    return client


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(
            {"role": role, "workspaceName": where, "username": who}, "is an admin", id=f"{role} of {who}"
        )
        for role, where in (("Owner", ""), ("Owner", "vision"), ("Editor", "vision"), ("Viewer", "vision"))
        for who in ("al@example.com", "AL@example.com")
    ]
    + [
        pytest.param(
            {"role": "Owner", "username": "robot@example.com"},
            "up to the role Editor",
            id="an owner's of a robot",
        )
    ],
)
def test_no_admin_acts_in_anothers_name(site, body, sentence):
    """With such a key one admin would be the two whom a large request needs."""
    admins = [{"email": "ada@example.com"}, {"email": "al@example.com"}]
    site.commit({"project.yaml": project(admins=admins), "keys/als.yaml": key_of("als", "al@example.com")})
    with site.client("ada-owner") as ada:
        assert sentence in refused(ada.post(PATH, json={"name": "k", **DAY, **body}), 403, "Forbidden")
        assert site.main("keys/k.yaml") is None
        assert (
            ada.request("DELETE", PATH, json={"name": "als"}).status_code == 200
        )  # to end one is anybody's help


def test_a_stranger_makes_no_keys(site):
    """Whoever the identity provider lets in writes nothing to main before somebody adds them."""
    with as_login(site, "eve@example.com") as eve:
        said = refused(eve.post(PATH, json={"name": "k", "role": "Owner", **DAY}), 403, "Forbidden")
    assert "is a member of no workspace" in said
    assert site.main("keys/k.yaml") is None


def test_nobody_has_keys_without_end(site):
    over = {"notAfter": "2026-11-01T00:00:00Z"}
    have = 3  # of KEYS that open something
    more = {f"k{i}": {} for i in range(50 - have)} | {"over": over, "gone": {"revoked": True}}
    site.commit({f"keys/{name}.yaml": key_of(name, "bo@example.com", **spec) for name, spec in more.items()})
    body = {"name": "k", "role": "Viewer", "workspaceName": "vision", **DAY}
    with site.client("bo-owner") as bo:
        said = refused(bo.post(PATH, json=body), 422, "BadParameters")
        assert said == "bo@example.com has 50 keys in force, which is the maximum; revoke one first"
        bo.request("DELETE", PATH, json={"name": "k0"})
        assert bo.post(PATH, json=body).status_code == 200
        assert bo.post(PATH, json=body | {"name": "l"}).status_code == 422


def test_a_login_by_an_id_token_makes_no_key_for_years(site):
    body = {"role": "Viewer", "workspaceName": "vision", "validity": "2027-06-30"}
    with as_login(site, "bo@example.com", is_handed=True) as bo:
        said = refused(bo.post(PATH, json={"name": "k", **body}), 403, "Forbidden")
        assert "90 days" in said
        assert bo.post(PATH, json={"name": "k", **body, **DAY}).status_code == 200
    with as_login(site, "bo@example.com") as bo:
        assert bo.post(PATH, json={"name": "l", **body}).status_code == 200


@pytest.mark.parametrize("scope", [{}, {"workspaceName": ""}], ids=["no workspace", "an empty one"])
@pytest.mark.parametrize("role", ["Editor", "Viewer"])
def test_a_key_without_a_workspace_is_for_the_whole_project(
    site: Site, role: str, scope: dict[str, str]
) -> None:
    """As `egs key create` without --slice on a repository; it carries at most its person all the same."""
    ada = site.client("ada-owner")
    assert ada.post(PATH, json={"name": "all", "role": role, **scope, **DAY}).status_code == 200
    (shown,) = (each for each in ada.get(f"{PATH}/list").json()["data"]["apiKeys"] if each["name"] == "all")
    assert not shown.get("workspaceName")
