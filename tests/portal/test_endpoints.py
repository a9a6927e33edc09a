"""`/endpoints`: how many replicas a version needs, for KEDA; weights as a change, and through the SDK (J2, J3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import yaml

from portal.writes.write_request import Landed
from reconciler.model.observation import Load, Past
from schemas.errors import Fault
from tests.support.endpoints import document, version
from tests.support.portal import KEYS, Site
from tests.support.sdk import FACES

ENDPOINT = "slices/vision/endpoints/chat.yaml"
API = "/api/v1/endpoints/vision/chat"
SCALING = {"by": "keda", "requestsPerReplica": 16}
SPEC: dict[str, Any] = {
    "gpr": "serves",
    "versions": [version("v1", replicas={"min": 1, "max": 4}), version("v2")],
    "scaling": SCALING,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    east = yaml.safe_load(made.main("clusters/east.yaml") or "")
    east["spec"]["metrics"] = {"prometheus": {"url": "https://prometheus.example.com"}}
    made.commit({"clusters/east.yaml": yaml.safe_dump(east), ENDPOINT: document("chat", "vision", **SPEC)})
    made.settle()
    yield made
    made.close()


def counted(site: Site, monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[Load]:
    """What the Prometheus is asked, once it answers so."""
    asked: list[Load] = []

    def load(question: Load, _: datetime) -> float | None:
        asked.append(question)
        if isinstance(answer, Exception):
            raise answer
        found: float | None = answer
        return found

    parts = site.portal.parts
    monkeypatch.setattr(
        site.portal.app.state, "parts", replace(parts, sources=replace(parts.sources, load=load))
    )
    return asked


def test_a_version_needs_replicas_for_its_requests(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """KEDA reads `replicas` at the top of the answer."""
    with site.client("bo-viewer") as client:
        counted(site, monkeypatch, 41.0)
        waits = client.get(f"{API}/replicas", params={"version": "v1"})
        assert (waits.status_code, waits.json()) == (200, {"replicas": 1, "load": None}), (
            "it has no nodes yet"
        )
        site.file("vision/serves", nodes=1, duration="4h", clusters=["east"], gpusPerNode=8)
        site.settle()
        site.pass_time(10)
        asked = counted(site, monkeypatch, 41.0)
        serves = client.get(f"{API}/replicas", params={"version": "v1"})
        assert serves.json() == {"replicas": 3, "load": 41.0}
        assert (asked[0].cluster, asked[0].namespace, asked[0].pods) == ("east", "vision", "chat-v1")
        assert client.get(f"{API}/replicas").status_code == 422, "there are two versions"
        for silent in (Fault("it does not answer", "MetricsUnreachable"), None):
            counted(site, monkeypatch, silent)
            assert client.get(f"{API}/replicas", params={"version": "v1"}).status_code == 503


def test_advice_takes_what_it_served(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """J3: the API and the page; a Prometheus that is silent is no advice."""
    asked: list[Past] = []

    def past(question: Past, _: datetime) -> tuple[float | None, ...]:
        asked.append(question)
        if len(asked) > 2:
            raise Fault("it does not answer", "MetricsUnreachable")
        return tuple(160.0 * (hour % 24 < 8) for hour in range(240))

    parts = site.portal.parts
    monkeypatch.setattr(
        site.portal.app.state, "parts", replace(parts, sources=replace(parts.sources, past=past))
    )
    page = "/workspaces/vision/advice?endpoint=chat"
    with site.client("bo-viewer") as client:
        found = client.get("/api/v1/advice/vision", params={"endpoint": "chat"}).json()["data"]
        assert (found["endpoint"], found["historyHours"]) == ("chat", 240)
        assert (asked[0].cluster, asked[0].namespace, asked[0].endpoint) == ("east", "vision", "chat")
        client.headers.update({"Accept": "text/html"})
        assert '<option value="chat" selected>Endpoint chat</option>' in client.get(page).text
        assert client.get(page).status_code == 503
        assert client.get("/api/v1/advice/vision", params={"endpoint": "chat"}).status_code == 503
        assert client.get("/api/v1/advice/vision", params={"endpoint": "no"}).status_code == 404
        assert client.get("/api/v1/advice/nlp", params={"endpoint": "chat"}).status_code == 404


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as address:
        yield address


@pytest.mark.parametrize("face", sorted(FACES))
def test_weights_are_changed_through_the_sdk(site: Site, url: str, face: str) -> None:
    do = FACES[face]
    session = do("authenticate", url, KEYS["bo-editor"])
    site.commit({ENDPOINT: document("chat", "vision", **SPEC)})
    site.settle()
    done = do("promote_endpoint", "vision/chat", "v2", session, weight=30)
    assert (done.weights, done.change.way) == ({"v1": 70, "v2": 30}, "pushed")
    assert yaml.safe_load(site.main(ENDPOINT) or "")["spec"]["weights"] == {"v1": 70, "v2": 30}
    site.settle()
    site.refresh()
    (found,) = do("list_inference_endpoint", "vision", session).endpoints
    assert (found.endpoint_name, [each.wanted for each in found.versions]) == ("chat", [70, 30])
    assert [each.wanted for each in do("endpoint", "vision/chat", session).versions] == [70, 30]
    assert do("describe_inference_endpoint", "vision", "chat", "east", session).endpoint_name == "chat"


def test_a_repeated_promotion_answers_what_the_first_wrote(site: Site) -> None:
    """J2: also when other weights have been written since."""
    key, body = {"Idempotency-Key": "promoted"}, {"version": "v2", "weight": 20}
    with site.client("bo-editor") as client:
        first = client.post(f"{API}/promote", json=body, headers=key)
        assert first.json()["data"]["weights"] == {"v1": 80, "v2": 20}, first.text
        assert client.post(f"{API}/promote", json={**body, "weight": 50}).status_code == 200
        assert client.post(f"{API}/promote", json=body, headers=key).json() == first.json()
        reused = client.post(f"{API}/promote", json={**body, "weight": 60}, headers=key)
    assert reused.json()["error"]["errorKey"] == "IdempotencyKeyReused"


def test_weights_that_are_not_written_yet_are_not_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def accepted(*_: object) -> Landed:
        return Landed("accepted", id="later")

    monkeypatch.setattr(site.portal.parts.writer, "submit", accepted)
    with site.client("bo-editor") as client:
        found = client.post(f"{API}/promote", json={"version": "v2", "weight": 20}).json()["data"]
    assert (found["weights"], found["change"]["way"]) == (None, "accepted")


def new(name: str, **more: Any) -> dict[str, Any]:
    spec = {"versions": [version()], "weights": {"v1": 100}}
    return {"name": name, "sliceName": "vision", "gprId": "vision/mine", "spec": spec, **more}


@pytest.fixture(scope="module")
def mine(site: Site) -> None:
    """A request of vision and one of nlp wait."""
    for key in ("vision/mine", "nlp/theirs"):
        site.file(key, nodes=1, duration="4h", notBefore="2027-06-01T00:00:00Z", gpusPerNode=8)
    site.settle()
    site.refresh()


@pytest.mark.usefixtures("mine")
def test_an_endpoint_is_filed_once_per_key(site: Site) -> None:
    path, key = "slices/vision/endpoints/new.yaml", {"Idempotency-Key": "served"}
    with site.client("bo-editor") as client:
        tried = client.post("/api/v1/endpoints", json=new("new", dryRun=True)).json()["data"]
        assert (site.main(path), yaml.safe_load(tried["text"])["spec"]["gpr"]) == (None, "mine")
        first = client.post("/api/v1/endpoints", json=new("new"), headers=key)
        assert first.status_code == 200, first.text
        assert client.post("/api/v1/endpoints", json=new("new"), headers=key).json() == first.json()
        again = client.post("/api/v1/endpoints", json=new("new"))
    found = yaml.safe_load(site.main(path) or "")["spec"]
    assert found == {"slice": "vision", "gpr": "mine", **new("new")["spec"]}
    assert again.json()["error"]["errorKey"] == "EndpointAlreadyExists"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param(new("a", gprId="vision/none"), 404, "no request", id="no such request"),
        pytest.param(new("a", gprId="nlp/theirs"), 404, "no request", id="another workspace's request"),
        pytest.param({**new("a"), "sliceName": "nlp"}, 404, "workspace nlp", id="another workspace"),
        pytest.param(new("Bad"), 422, "not a valid name", id="no name"),
        pytest.param(new("a", spec={}), 422, "versions", id="no versions"),
        pytest.param(new("a", spec={"gpr": "other"}), 422, "leave gpr out", id="a request beside its own"),
        pytest.param(new("a", spec={"versions": [[[]]]}), 422, "versions", id="no version"),
        pytest.param(
            new("a", spec={"versions": [version(gpusPerReplica=16)], "weights": {"v1": 100}}),
            422,
            "needs 16 GPUs",
            id="more GPUs than a node has",
        ),
    ],
)
@pytest.mark.usefixtures("mine")
def test_what_is_refused_is_not_written(site: Site, body: dict[str, Any], status: int, says: str) -> None:
    before = site.log()
    with site.client("bo-editor") as client:
        answer = client.post("/api/v1/endpoints", json=body)
    assert (answer.status_code, says in answer.text) == (status, True), answer.text
    assert site.log() == before


@pytest.mark.parametrize("face", sorted(FACES))
@pytest.mark.usefixtures("mine")
def test_an_endpoint_is_filed_through_the_sdk(site: Site, url: str, face: str) -> None:
    do, name = FACES[face], f"vision/by-{face.replace('.', '-')}"
    session = do("authenticate", url, KEYS["bo-editor"])
    tried = do("create_endpoint", name, "vision/mine", new("x")["spec"], session, dry_run=True)
    assert ("kind: Endpoint" in tried.text, tried.change) == (True, None)
    assert do("create_endpoint", name, "vision/mine", new("x")["spec"], session).change.way == "pushed"
    assert site.main(f"slices/{name.replace('/', '/endpoints/')}.yaml") is not None
