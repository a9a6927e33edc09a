"""`egs get` as people know it from kubectl: names, widths, one thing in JSON, and watching."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from egs import cli
from egs.commands.errors import Said
from egs.commands.kinds import CLUSTERS, SINGULAR, Kind, by_pool
from egs.commands.listing import GetForm, ListOptions, answer

PETS = Kind(
    "pet",
    "no pet",
    (("PET", lambda row: row["name"]), ("AGE", lambda row: row["age"]), ("MOOD", lambda row: row["mood"])),
    (("OWNER", lambda row: row["owner"]),),
    passing=("AGE",),
)


def pet(name: str, mood: str = "calm", age: int = 1) -> dict[str, Any]:
    return {"name": name, "mood": mood, "age": age, "owner": "bo"}


TWO = [pet("a/rex"), pet("b/tom")]


def said(capsys: pytest.CaptureFixture[str], rows: Sequence[dict[str, Any]], asked: ListOptions) -> list[str]:
    capsys.readouterr()
    answer(PETS, lambda: rows, asked)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("form", "head"),
    [(GetForm.TABLE, ["PET", "AGE", "MOOD"]), (GetForm.WIDE, ["PET", "AGE", "MOOD", "OWNER"])],
)
def test_a_wider_table_has_more_columns(capsys, form: GetForm, head: list[str]) -> None:
    assert said(capsys, TWO, ListOptions(form))[0].split() == head


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param([], ["a/rex", "b/tom"], id="no name: all"),
        pytest.param(["b/tom", "a/rex"], ["b/tom", "a/rex"], id="in the order of the names"),
        pytest.param(["rex"], ["a/rex"], id="the part behind the slash is enough"),
        pytest.param(["rex", "a/rex"], ["a/rex"], id="a thing that is named twice comes once"),
    ],
)
def test_names(capsys, names: list[str], found: list[str]) -> None:
    lines = said(capsys, TWO, ListOptions(GetForm.TABLE, names))
    assert [line.split()[0] for line in lines[1:]] == found


@pytest.mark.parametrize(
    ("names", "kind"), [([], list), (["rex"], dict), (["rex", "tom"], list)], ids=["all", "one", "several"]
)
def test_of_one_name_data_is_the_thing_itself(capsys, names: list[str], kind: type) -> None:
    assert isinstance(json.loads("\n".join(said(capsys, TWO, ListOptions(GetForm.JSON, names)))), kind)


def test_a_name_of_nothing_is_an_error_after_what_there_is(capsys) -> None:
    with pytest.raises(Said, match="there is no pet b/tim; did you mean b/tom") as caught:
        said(capsys, TWO, ListOptions(names=["rex", "b/tim"]))
    assert (caught.value.exit_code, "a/rex" in capsys.readouterr().out) == (1, True)


LOOKS = [
    [pet("rex"), pet("tom")],
    [pet("rex", age=2), pet("tom", age=2)],
    [pet("rex", "wild", 3), pet("tom", age=3)],
    [pet("rex", "wild", 3)],
    [pet("rex", "wild", 3), pet("tom", age=5), pet("zoe")],
]


def watched(capsys, form: GetForm, names: list[str] | None = None) -> list[str]:
    supply: Iterator[list[dict[str, Any]]] = iter(LOOKS)
    answer(PETS, lambda: next(supply), ListOptions(form, names, True), looks=[None] * len(LOOKS))
    return capsys.readouterr().out.splitlines()


def test_watching_tells_what_is_then_each_row_that_changes(capsys) -> None:
    told = [line.split() for line in watched(capsys, GetForm.TABLE)]
    assert told == [
        ["PET", "AGE", "MOOD"],
        ["rex", "1", "calm"],
        ["tom", "1", "calm"],
        ["rex", "3", "wild"],
        ["tom", "5", "calm"],
        ["zoe", "1", "calm"],
    ]


def test_watching_in_json_is_a_row_in_each_line(capsys) -> None:
    told = [json.loads(line) for line in watched(capsys, GetForm.JSON, ["rex"])]
    assert [(row["name"], row["mood"]) for row in told] == [("rex", "calm"), ("rex", "wild")]


def test_watching_has_no_yaml() -> None:
    with pytest.raises(Said, match="use -o json") as caught:
        answer(PETS, lambda: TWO, ListOptions(GetForm.YAML, is_watched=True))
    assert caught.value.exit_code == 2


def test_a_cluster_with_two_pools_is_two_rows_of_a_watched_table(capsys) -> None:
    pools = [
        {"name": n, "gpusPerNode": 8, "gpuShape": "A", "nodes": 1, "leased": 0, "free": 1, "out": 0}
        for n in "ab"
    ]
    row = {
        "name": "east",
        "mode": "manage",
        "reachable": True,
        "since": None,
        "statusTime": None,
        "pools": pools,
    }
    answer(CLUSTERS, lambda: [row], ListOptions(is_watched=True), by_pool, looks=[None, None])
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("plural", SINGULAR)
def test_a_kind_is_known_by_both_its_numbers(plural: str) -> None:
    groups = cli.commands([], None).commands
    for group, shown in ((groups["get"], plural), (groups["describe"], SINGULAR[plural])):
        if shown in group.commands:
            hidden = {name: group.commands[name].hidden for name in (plural, SINGULAR[plural])}
            assert hidden == {name: name != shown for name in hidden}
