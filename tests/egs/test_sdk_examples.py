"""The examples in docstrings run as they stand, against a server with a fleet and a waiting request. A7, K1."""

from __future__ import annotations

import doctest
import inspect
from datetime import timedelta

import pytest

import egs
from tests.support.portal import KEYS, Site

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TOMORROW = "2026-11-22T08:00:00Z"
WITH = [
    name
    for name in egs.__all__
    if ">>> " in (inspect.getdoc(getattr(egs, name)) or "") and (inspect.isfunction(getattr(egs, name)))
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.settle()
    with made.server() as url:
        yield made, url
    made.close()


@pytest.mark.parametrize("name", WITH)
def test_it_runs_as_it_stands(name, site):
    here, url = site
    auth = egs.authenticate(url, KEYS["ada-owner"])
    request_id = egs.request_gpu(
        "waits",
        "vision",
        "",
        1,
        8,
        80,
        "",
        "H100-80GB",
        "6h",
        101,
        not_before=TOMORROW,
        authenticated_session=auth,
    )
    here.settle()
    known = {
        "egs": egs,
        "auth": auth,
        "request_id": request_id,
        "since": here.view.status,
        "commit": here.view.main,
        "endpoint": url,
        "api_key": KEYS["ada-owner"],
    }
    (example,) = doctest.DocTestFinder(recurse=False).find(
        getattr(egs, name), name, globs=known, module=False
    )
    told: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=told.append)
    egs.update_global_session(None)
    assert "".join(told) == ""


def test_most_functions_have_one():
    functions = [name for name in egs.__all__ if inspect.isfunction(getattr(egs, name))]
    assert len(WITH) >= 0.65 * len(functions)
