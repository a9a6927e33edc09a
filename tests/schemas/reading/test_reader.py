"""From a file to a document or to all of its problems."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.documents.base import Document
from schemas.documents.gpr import GPR
from schemas.reading.reader import (
    PATHS,
    REGULAR,
    from_json,
    parse_to_json,
    read_document,
    read_with_text,
    rule_of,
)
from schemas.reading.strict_yaml import load
from schemas.reading.yaml_text import dump
from schemas.rules.problems import MOST_CHARACTERS, Problem
from schemas.rules.rule_list import BY_ID
from tests.schemas.build import APPROVAL, EAST, SLICE, SPECS, TRAIN, file_of
from tests.support.profile import law

HEAD = "apiVersion: egs.dev/v1alpha1\nkind: GPR\nmetadata:\n  name: train\nspec:\n  slice: vision\n"
GOOD = f"{HEAD}  nodes: 2\n  duration: 6h\n"


def refusals(path: str, data: bytes | str, mode: int = REGULAR) -> list[tuple[str, int, int]]:
    got = read_document(path, data if isinstance(data, bytes) else data.encode(), mode)
    assert isinstance(got, tuple)
    assert list(got) == sorted(got)
    assert all(problem.message and problem.fix and problem.file == path for problem in got)
    return [(problem.rule, problem.line, problem.column) for problem in got]


@pytest.mark.parametrize("path", SPECS)
def test_every_kind_is_read_where_it_belongs(path: str) -> None:
    found = rule_of(path)
    assert found is not None
    document = read_document(path, file_of(path))
    assert isinstance(document, found[0].model)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            f"{HEAD}  nodes: 0\n  duration: 6h\n", [("BadValue", 7, 10)], id="a value below its bound"
        ),
        pytest.param(
            f"{HEAD}  nodes: '2'\n  duration: 6h\n", [("WrongType", 7, 10)], id="text where a number belongs"
        ),
        pytest.param(
            f"{HEAD}  nodes: 2.0\n  duration: 6h\n",
            [("BadValue", 7, 10)],
            id="a fraction where a count belongs",
        ),
        pytest.param(
            f"{HEAD}  nodes: true\n  duration: 6h\n", [("WrongType", 7, 10)], id="a truth value is no number"
        ),
        pytest.param(
            f"{HEAD}  nodes: 2\n  duration: 6 hours\n", [("BadValue", 8, 13)], id="a duration in other words"
        ),
        pytest.param(
            f"{HEAD}  nodes: 2\n  duration: 0d0h0m\n", [("BadValue", 8, 13)], id="a duration of nothing"
        ),
        pytest.param(
            f"{HEAD}  nodes: 2\n  duration: 6h\n  priority: 301\n",
            [("BadValue", 9, 13)],
            id="a priority above the bands",
        ),
        pytest.param(
            f"{HEAD}  nodes: 2\n  duration: 6h\n  gpushape: any\n",
            [("UnknownField", 9, 3)],
            id="an unknown field, at its key",
        ),
        pytest.param(
            HEAD,
            [("MissingField", 6, 3), ("MissingField", 6, 3)],
            id="neither nodes nor duration nor template",
        ),
        pytest.param(f"{HEAD}  duration: 6h\n", [("MissingField", 6, 3)], id="no nodes"),
        pytest.param(
            f"{GOOD}  notBefore: 2026-02-30T00:00:00Z\n",
            [("BadValue", 9, 14)],
            id="a day that does not exist",
        ),
        pytest.param(
            f"{GOOD}  notBefore: 2026-11-21T08:00:00\n".replace("2026", "'2026", 1).replace(
                ":00:00\n", ":00:00'\n"
            ),
            [("BadValue", 9, 14)],
            id="a time without a zone",
        ),
        pytest.param(f"{GOOD}  clusters: east\n", [("WrongType", 9, 13)], id="text where a list belongs"),
        pytest.param(f"{GOOD}  clusters: [east, Ost]\n", [("BadValue", 9, 20)], id="an entry of a list"),
        pytest.param(
            f"{GOOD}  gpuShape: [H100, 7]\n", [("WrongType", 9, 20)], id="an entry of one of several forms"
        ),
        pytest.param(f"{GOOD}  sharing: half\n", [("BadValue", 9, 12)], id="a sharing that does not exist"),
        pytest.param(f"{GOOD}  network: {{rdma: 1}}\n", [("WrongType", 9, 19)], id="a field of a field"),
        pytest.param(f"{GOOD}  start: soon\n", [("BadValue", 9, 10)], id="a word that is no choice"),
        pytest.param(
            GOOD.replace("kind: GPR", "kind: Slice"),
            [("WrongKind", 2, 7)],
            id="another kind's document says only that",
        ),
        pytest.param(
            GOOD.replace("v1alpha1", "v9"), [("WrongVersion", 1, 13)], id="another version says only that"
        ),
        pytest.param(GOOD.replace("kind: GPR\n", ""), [("MissingField", 1, 1)], id="no kind"),
        pytest.param(
            GOOD.replace("apiVersion: egs.dev/v1alpha1\n", ""), [("MissingField", 1, 1)], id="no apiVersion"
        ),
        pytest.param(
            GOOD.replace("name: train", "name: other"),
            [("NameMismatch", 4, 9)],
            id="a name that is not the file's",
        ),
        pytest.param(
            GOOD.replace("slice: vision", "slice: nlp"),
            [("FolderMismatch", 6, 10)],
            id="a slice that is not the folder's",
        ),
        pytest.param("- a list\n", [("NotAMapping", 1, 1)], id="a list"),
        pytest.param("a: no\n", [("AmbiguousScalar", 1, 4)], id="what the loader refuses"),
        pytest.param(
            f"{HEAD}  nodes: 0\n  duration: 6 h\n  colour: red\n  priority: high\n",
            [("BadValue", 7, 10), ("BadValue", 8, 13), ("UnknownField", 9, 3), ("WrongType", 10, 13)],
            id="all problems of a document at once",
        ),
    ],
)
def test_what_is_refused_and_where(text: str, want: list[tuple[str, int, int]]) -> None:
    """D1: every field of a request is validated."""
    assert sorted(refusals(TRAIN, text)) == sorted(want)


@pytest.mark.parametrize(
    ("path", "changes", "rule"),
    [
        pytest.param(SLICE, {"namespaces": []}, "BadValue", id="a slice without namespaces"),
        pytest.param(SLICE, {"quota": {"gpus": -1}}, "BadValue", id="a quota below nothing"),
        pytest.param("project.yaml", {"admins": []}, "BadValue", id="a project without admins"),
        pytest.param(
            "project.yaml", {"admins": [{"email": "ada"}]}, "BadValue", id="an admin without an address"
        ),
        pytest.param(EAST, {"pools": []}, "BadValue", id="a cluster without pools"),
        pytest.param(EAST, {"mode": "on"}, "BadValue", id="a mode that does not exist"),
        pytest.param(
            EAST,
            {
                "pools": [
                    {"name": f"p{i}", "gpuShape": "A", "gpusPerNode": 1, "memoryPerGpu": 1, "nodes": 100_000}
                    for i in range(2)
                ]
            },
            "BadValue",
            id="a cluster with more nodes than can be named",
        ),
        pytest.param(
            APPROVAL,
            {"slice": "vision", "gpr": "train", "decision": "approve", "specDigest": "x"},
            "BadValue",
            id="an approval without a true digest",
        ),
    ],
)
def test_other_kinds_are_refused_alike(path: str, changes: dict[str, Any], rule: str) -> None:
    assert [got[0] for got in refusals(path, file_of(path, changes))] == [rule]


@pytest.mark.parametrize(
    ("path", "rules"),
    [
        pytest.param("README.md", [], id="a readme at the top is nobody's business"),
        pytest.param("src/main.py", [], id="other folders are nobody's business"),
        pytest.param("slices/vision/README.md", [], id="a readme may lie anywhere"),
        pytest.param("slices/vision/gprs/.gitkeep", [], id="an empty folder may be kept"),
        pytest.param("slices/vision/gprs/train.yml", ["StrayFile"], id="the wrong ending"),
        pytest.param("slices/vision/train.yaml", ["StrayFile"], id="a request beside its folder"),
        pytest.param("slices/Vision/slice.yaml", ["StrayFile"], id="capitals"),
        pytest.param("slices/vision/gprs/a/b.yaml", ["StrayFile"], id="one folder too deep"),
        pytest.param("slices/vision/gprs/../x.yaml", ["StrayFile"], id="a path that climbs"),
        pytest.param("clusters/-east.yaml", ["StrayFile"], id="a name that begins with a dash"),
        pytest.param("clusters/east.yaml\n", ["StrayFile"], id="a line break at the end"),
        pytest.param("clusters/\u202eeast.yaml", ["StrayFile"], id="a reordering character"),
        pytest.param(f"clusters/{'a' * 64}.yaml", ["StrayFile"], id="a name that is too long"),
        pytest.param("approvals/vision/ada.yaml", ["StrayFile"], id="an approval without its request"),
        pytest.param("requests/Robots.yaml", ["StrayFile"], id="a workspace request in capitals"),
        pytest.param("requests/robots/gprs/a.yaml", ["StrayFile"], id="a request below a workspace request"),
    ],
)
def test_paths_that_hold_no_document(path: str, rules: list[str]) -> None:
    got = read_document(path, b"\xff not even text")
    assert isinstance(got, tuple)
    assert [problem.rule for problem in got] == rules
    assert all(BY_ID[rule].severity != "error" for rule in rules)


@pytest.mark.parametrize(
    ("path", "mode", "message"),
    [
        pytest.param("slices", 0o120000, "slices is a symbolic link", id="all slices behind a link"),
        pytest.param(
            "slices/vision", 0o120000, "slices/vision is a symbolic link", id="a slice behind a link"
        ),
        pytest.param("slices/vision/gprs", 0o160000, "is a submodule", id="the requests in a submodule"),
        pytest.param(
            "clusters", 0o100644, "clusters is not the path of a document", id="a file in a folder's place"
        ),
        pytest.param(
            "clusters/\udcff\udcfe.yaml",
            REGULAR,
            r"clusters/\xff\xfe.yaml is no",
            id="a name that is no UTF-8",
        ),
        pytest.param(
            "clusters/\x1b[31m.yaml", REGULAR, r"clusters/\x1b[31m.yaml is no", id="a terminal escape"
        ),
        pytest.param("clusters/a\nb.yaml", REGULAR, r"clusters/a\nb.yaml is no", id="a line break in a name"),
        pytest.param(
            "clusters/\u202eb.yaml", REGULAR, r"clusters/\u202eb.yaml is no", id="a reordering name"
        ),
    ],
)
def test_what_lies_in_a_documents_place_is_told_in_letters_that_print(
    path: str, mode: int, message: str
) -> None:
    got = read_document(path, b"x", mode)
    assert isinstance(got, tuple)
    (problem,) = got
    assert problem.rule == "StrayFile"
    assert message in problem.message
    assert all(text.isprintable() for text in (problem.file, problem.message, problem.fix))
    problem.file.encode()


def test_a_name_of_five_thousand_bytes_is_told_in_a_few() -> None:
    (problem,) = read_document(f"clusters/{'n' * 5000}.yaml", b"x")  # type: ignore[misc]
    assert max(map(len, (problem.file, problem.message))) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("x" * 30_000, id="as long as a file"),
        pytest.param("a\\n1 document, nothing wrong", id="with a line of our own answer in it"),
        pytest.param("a\\tb", id="with a tab"),
    ],
)
def test_a_fields_name_forges_no_line(key: str) -> None:
    got = read_document(TRAIN, f'{GOOD}  "{key}": 1\n'.encode())
    assert isinstance(got, tuple)
    for problem in got:
        assert (problem.message + problem.fix).isprintable()
        assert len(problem.message) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    "email",
    [
        pytest.param("b\u043e@example.com", id="a Cyrillic letter"),
        pytest.param("bo@ex\u0430mple.com", id="a Cyrillic letter in the domain"),
        pytest.param("bo@example.com\u3164", id="a filler that nobody sees"),
        pytest.param("bo\uff20example.com", id="a full-width at sign"),
        pytest.param("bo@example.com>x", id="what would end the address in a commit"),
        pytest.param("bo@evil.com@example.com", id="two at signs"),
    ],
)
def test_an_address_that_looks_like_anothers_is_refused(email: str) -> None:
    path = "slices/vision/slice.yaml"
    got = refusals(path, file_of(path, {"members": [{"email": email}]}))
    assert [found[0] for found in got] == ["BadValue"]


@pytest.mark.parametrize("mode", [0o120000, 0o160000, 0o100755, 0o040000, 0], ids=oct)
def test_only_regular_files_are_documents(mode: int) -> None:
    assert refusals(TRAIN, GOOD, mode) == [("NotAFile", 1, 1)]


def test_a_field_nearly_right_gets_the_right_one_named() -> None:
    got = read_document(TRAIN, f"{GOOD}  gpu_shape: any\n".encode())
    assert isinstance(got, tuple)
    assert got[0].fix == "did you mean gpuShape?"


def test_text_from_a_cache_gives_the_same_document() -> None:
    data = GOOD.encode()
    assert from_json(TRAIN, parse_to_json(data)) == read_document(TRAIN, data)


def test_one_reading_gives_document_and_text_for_the_cache() -> None:
    data = GOOD.encode()
    assert read_with_text(TRAIN, data) == (read_document(TRAIN, data), parse_to_json(data))
    assert read_with_text(TRAIN, b"a: no")[1] is None
    assert read_with_text("README.md", b"a: b") == ((), None)


def test_text_from_a_cache_is_judged_at_its_new_path() -> None:
    got = from_json("slices/nlp/gprs/train.yaml", parse_to_json(GOOD.encode()))
    assert isinstance(got, tuple)
    assert [problem.rule for problem in got] == ["FolderMismatch"]


def test_a_document_written_by_its_model_is_read_back() -> None:
    document = read_document(TRAIN, GOOD.encode())
    assert isinstance(document, GPR)
    text = dump(json.loads(document.model_dump_json(by_alias=True, exclude_unset=True)))
    assert read_document(TRAIN, text.encode()) == document


def test_every_kind_has_one_path() -> None:
    assert len({rule.kind for rule in PATHS}) == len({rule.path for rule in PATHS}) == len(PATHS) == 12


VALID = [(path, file_of(path)) for path in SPECS]


@given(st.sampled_from(VALID), st.data())
@law(500)
def test_mutated_bytes_are_a_document_or_problems(valid: tuple[str, bytes], draw: st.DataObject) -> None:
    """Nothing that anybody commits makes reading fail."""
    path, data = valid
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(data)))
        cut = draw.draw(st.integers(0, 8))
        put = draw.draw(
            st.binary(max_size=6)
            | st.sampled_from(
                [b"{", b"[", b": ", b"\n", b"- ", b"&a ", b"*a", b"!!x ", b"null", b"1e5", b"'"]
            )
        )
        data = data[:at] + put + data[at + cut :]
    got = read_document(path, data)
    if isinstance(got, Document):
        assert isinstance(load(data), dict)
        return
    assert got
    for problem in got:
        assert isinstance(problem, Problem)
        assert problem.rule in BY_ID
        assert len(problem.message) < 1000
        assert 1 <= problem.line <= data.count(b"\n") + 1


def test_vgpu_is_refused_with_the_reason() -> None:
    """G1: it is said where it is asked for."""
    (problem,) = read_document(TRAIN, f"{GOOD}  sharing: vgpu-8q\n".encode())
    assert "vGPU is not supported, because" in problem.message
