"""The API does what its OpenAPI document says, whatever it is sent (K1).

schemathesis makes requests of the document alone, sensible ones and others, and looks at every answer: none is a fault
of the server, none has a status, a header or a body that is not documented. A few of each path in every run, in the
same order; many more in the nightly one. Streams, which never end, are looked at by tests/portal/test_watch.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.portal import KEYS, Site, openapi_document
from tests.support.profile import examples
from tests.support.world import gpr

EXAMPLES = examples(8)
"""Requests to each path with each key."""
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
DOCUMENT: dict[str, Any] = openapi_document()
OPERATIONS = [
    pytest.param(path, method, id=f"{method} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
]
STREAM = "text/event-stream"


def is_stream(path: str, method: str) -> bool:
    """Whether its answer never ends."""
    return STREAM in DOCUMENT["paths"][path][method]["responses"].get("200", {}).get("content", {})


BINDING = """apiVersion: egs.dev/v1alpha1
kind: GPRTemplateBinding
metadata: {name: vision}
spec: {clusters: [{cluster: east, templates: [small], default: small}]}
"""
ASKED = [each for each in OPERATIONS if not is_stream(*map(str, each.values))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With requests that run, wait and are over, so that answers have something in them."""
    files = {f"slices/vision/gprs/{name}.yaml": gpr("vision", name) for name in ("one", "two")}
    files["bindings/vision.yaml"] = BINDING
    found = Site(tmp_path_factory.mktemp("site"), files)
    found.file("vision/over", duration="1h")
    found.settle()
    found.commit({"slices/vision/gprs/over.yaml": None})
    for minutes in (2, 30):
        found.clock.set(found.now + timedelta(minutes=minutes))
        found.settle()
    yield found
    found.close()


@pytest.fixture(scope="module")
def document(site: Site) -> Any:
    """What schemathesis makes of the document."""
    return schemathesis.openapi.from_asgi("/openapi.json", site.portal.app)


KNOWN: dict[str, tuple[Any, ...]] = {
    "gprId": ("vision/one", "vision/two", "vision/over"),
    "sliceName": ("vision",),
    "workspaceName": ("vision", "nlp"),
    "bindingName": ("vision",),
    "gprTemplateName": ("small",),
    "clusterName": ("east",),
    "cluster": ("east",),
    "clusters": (["east"],),
    "gpr": ("vision/one", "one"),
    "name": ("vision", "vision/one", "small", "east", "one", "h100-1"),
    "phase": ("Queued",),
    "id": ("1",),
}
"""What is there, so that not every answer is that there is no such thing."""


def requests_of(operation: Any) -> st.SearchStrategy[Any]:
    """Sensible ones, most about what is there; and where there is something to get wrong others."""
    sensible = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    kinds = [st.builds(about_what_is_there, sensible, st.integers(0, 5)), sensible]
    if operation.body or operation.query:
        kinds.append(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    return st.one_of(*kinds)


def about_what_is_there(case: Any, which: int) -> Any:
    """The same request with names of this site."""
    for place in (case.path_parameters, case.query, case.body):
        for field in sorted(set(KNOWN) & set(place)) if isinstance(place, dict) else ():
            place[field] = KNOWN[field][which % len(KNOWN[field])]
    return case


@pytest.mark.parametrize("key", ["ada-owner", "bo-editor"])
@pytest.mark.parametrize(("path", "method"), ASKED)
def test_every_answer_is_as_documented(document: Any, path: str, method: str, key: str) -> None:
    operation = document[path][method]
    headers = {"Authorization": f"Bearer {KEYS[key]}"}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(requests_of(operation))
    def ask(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    ask()
    for strategy in operation.get_strategies_from_examples():
        settings(max_examples=1, database=None, deadline=None)(given(strategy)(ask.hypothesis.inner_test))()
