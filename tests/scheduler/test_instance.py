"""The bare interface, byte for byte (design, section 8)."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from scheduler.instance import InstanceError, plan_instance
from schemas.documents.scheduling import Fairness

HEAD = "id,pool,submit,nodes,duration,priority,slice,running,notBefore\n"


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param("r,a,0,1,10,101,,,", "r,a,0,10,0", id="starts at once"),
        pytest.param("r,a,7,1,10,101,,,", "r,a,7,17,0", id="not before it is submitted"),
        pytest.param(
            "r,a,0,1,10,101,,,30", "r,a,30,40,30", id="not before its wish; the wait counts from submit"
        ),
        pytest.param("r,a,0,2,9,101,,1,\ns,a,0,1,5,101,,0,", "r,a,0,9,0\ns,a,9,14,9", id="behind what runs"),
        pytest.param(
            "r,a|b,0,2,9,101,,,\ns,a|b,0,2,9,101,,,", "r,a,0,9,0\ns,b,0,9,0", id="ties: the first listed"
        ),
        pytest.param("r,b|a,0,2,9,101,,,", "r,b,0,9,0", id="preference is the row's"),
        pytest.param(
            "r,a,0,1,9,101,t,1,\ns,b,0,1,5,101,t,,", "r,a,0,9,0\ns,b,9,14,9", id="a slice runs one at a time"
        ),
        pytest.param("r,a,0,2,9,1,,,\ns,a,0,2,9,2,,,", "r,a,9,18,9\ns,a,0,9,0", id="priority comes first"),
        pytest.param("r,a,1,2,9,1,,,\ns,a,0,2,9,1,,,", "r,a,9,18,8\ns,a,0,9,0", id="then submit"),
        pytest.param("z,a,0,2,9,1,,,\nb,a,0,2,9,1,,,", "z,a,0,9,0\nb,a,9,18,9", id="then row order"),
        pytest.param("r,a,0,3,9,1,,,\ns,a,0,2,9,1,,,", "r,,,,\ns,a,0,9,0", id="one that fits nowhere"),
        pytest.param("", "", id="no rows"),
    ],
)
def test_plan(rows: str, want: str) -> None:
    got = plan_instance(HEAD + rows, [("a", 2), ("b", 2)], now=0).csv
    assert got == "id,pool,start,end,wait\n" + (want and want + "\n")


def test_now_is_the_earliest_start() -> None:
    assert plan_instance(HEAD + "r,a,0,1,10,101,,,", [("a", 2)], now=50).csv.splitlines()[1] == "r,a,50,60,50"


def test_running_rows_start_now() -> None:
    assert plan_instance(HEAD + "r,a,0,1,10,101,,1,", [("a", 2)], now=50).csv.splitlines()[1] == "r,a,50,60,0"


def test_columns_come_in_any_order_and_optional_ones_may_be_absent() -> None:
    text = "priority,nodes,id,duration,pool,submit\n101,1,r,10,a,0\n"
    assert plan_instance(text, [("a", 1)], now=0).csv == "id,pool,start,end,wait\nr,a,0,10,0\n"


def test_a_row_without_a_start_says_why_and_what_would_fit() -> None:
    result = plan_instance(HEAD + "r,a,0,3,9,1,,,", [("a", 2)], now=0)
    assert [(row.id, row.reason) for row in result.refused] == [("r", "FitsNowhere")]
    assert result.json()[0]["wait"] is None
    assert result.refused[0].message == (
        "it asks for 3 nodes but no pool that it may use has so many; would fit: 2 nodes or fewer, in a"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("id,pool\n", "line 1: the header lacks submit, nodes, duration, priority", id="columns"),
        pytest.param(HEAD.replace("slice", "slize"), "unknown column 'slize'", id="a misspelt column"),
        pytest.param(HEAD.replace("slice", "id"), "a column is listed twice", id="a column twice"),
        pytest.param(
            HEAD + "r,a,0,0,9,1,,,",
            "line 2: nodes is '0'; give a whole number from 1 to 1125899906842624",
            id="none",
        ),
        pytest.param(HEAD + "r,a,0,1.5,9,1,,,", "nodes is '1.5'", id="not whole"),
        pytest.param(HEAD + "r,a,0,1,,1,,,", "duration is ''", id="an empty cell"),
        pytest.param(
            HEAD + "r,a,0,1,99999999999999999999,1,,,", "duration is", id="a number beyond all bounds"
        ),
        pytest.param(
            HEAD + "r,a,0,1,9,1,,yes,", "running is 'yes'; use 1, 0 or leave it empty", id="running"
        ),
        pytest.param(HEAD + "r,a,0,1,9,1,,", "8 fields; give 9", id="too few fields"),
        pytest.param(HEAD + ",a,0,1,9,1,,,", "id is empty", id="no id"),
        pytest.param(
            HEAD + "r,a,0,1,9,1,,,\nr,a,0,1,9,1,,,", "line 3: id 'r' is already on line 2", id="id twice"
        ),
        pytest.param(
            HEAD + "r,c,0,1,9,1,,,", "pool 'c' is not declared; add --pool c=NODES", id="undeclared"
        ),
        pytest.param(
            HEAD + "r,a|b,0,1,9,1,,1,", "a running row names several pools", id="running in two pools"
        ),
        pytest.param(HEAD + "r,a,0,3,9,1,,1,", "3 nodes run in pool 'a' of 2", id="more run than there are"),
        pytest.param(HEAD + 'r,a,0,1,9,1,"x,,', "not CSV", id="an open quote"),
        pytest.param("", "line 1: the header lacks", id="nothing at all"),
    ],
)
def test_a_bad_instance_says_line_trouble_and_remedy(text: str, says: str) -> None:
    with pytest.raises(InstanceError) as caught:
        plan_instance(text, [("a", 2), ("b", 2)], now=0)
    assert says in str(caught.value)


def _instance(rows: int) -> str:
    chance = random.Random(7)
    lines = [
        f"r{i},{chance.choice(['a', 'b', 'a|b', 'b|a'])},{chance.randrange(50)},{chance.randint(1, 8)},"
        f"{chance.randint(1, 99)},{chance.randint(1, 300)},{chance.choice(['', 's', 't', 'u'])},,"
        for i in range(rows)
    ]
    return HEAD + "\n".join(lines)


def test_the_same_bytes_under_every_hash_seed() -> None:
    program = (
        "import sys; from scheduler.instance import plan_instance; "
        "sys.stdout.write(plan_instance(sys.stdin.read(), [('a', 9), ('b', 20)], 0).csv)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=_instance(300),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == 301


def test_with_fairness_the_slice_that_asked_for_less_comes_first() -> None:
    """A running row counts; a row without a slice shares with nobody; priorities come before all of it."""
    text = HEAD + "\n".join(
        (
            "run,a,0,1,36000,101,x,1,",
            "x1,a,0,1,3600,101,x,,",
            "x2,a,0,1,3600,101,x,,",
            "y1,a,1,1,3600,101,y,,",
            "n1,a,2,1,3600,101,,,",
            "x9,a,3,1,3600,102,x,,",
        )
    )
    found = plan_instance(text, [("a", 1)], now=0, fairness=Fairness(step=5))
    order = [a.id for a in sorted(found.answers, key=lambda answer: answer.start or 0)]
    assert order == ["run", "x9", "y1", "n1", "x1", "x2"]
    bare = plan_instance(text, [("a", 1)], now=0)
    assert [a.id for a in sorted(bare.answers, key=lambda answer: answer.start or 0)] == [
        *("run", "x9", "x1", "x2", "y1", "n1")
    ]
