"""A memo works something out anew exactly when what it is made from has changed."""

from __future__ import annotations

import pytest

from reconciler.model.memo import Memo

ONE, LIKE_ONE = ["one"], ["one"]


class Counted:
    """Work that counts how often it is done."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self) -> int:
        self.done += 1
        return self.done


@pytest.mark.parametrize(
    ("first", "then", "done"),
    [
        pytest.param({"same": (ONE,)}, {"same": (ONE,)}, 1, id="the very same object"),
        pytest.param({"same": (ONE,)}, {"same": (LIKE_ONE,)}, 2, id="an equal object is not the same"),
        pytest.param({"same": (ONE,)}, {"same": (ONE, ONE)}, 2, id="more objects"),
        pytest.param({"equal": ONE}, {"equal": LIKE_ONE}, 1, id="an equal value"),
        pytest.param({"equal": ONE}, {"equal": ["two"]}, 2, id="a changed value"),
        pytest.param({"same": (ONE,), "equal": 1}, {"same": (ONE,), "equal": 2}, 2, id="both count"),
    ],
)
def test_work_is_done_anew_when_its_inputs_changed(first, then, done):
    memo, work = Memo[int](), Counted()
    memo.of("a", work, **first)
    assert memo.of("a", work, **then) == work.done == done


def test_names_are_apart_and_those_that_are_not_kept_are_forgotten():
    memo, work = Memo[int](), Counted()
    assert [memo.of(name, work) for name in ("a", "b", "a")] == [1, 2, 1]
    memo.keep({"a"})
    assert [memo.of(name, work) for name in ("a", "b")] == [1, 3]


def test_a_failure_is_not_kept():
    memo = Memo[float]()
    with pytest.raises(ZeroDivisionError):
        memo.of("a", lambda: 1 / 0)
    assert memo.of("a", lambda: 1.0) == 1.0
