"""`egs-pre-receive` as a person meets it (E4)."""

from __future__ import annotations

import pytest

from reconciler.processes import push_hook_process


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_says_what_it_is_and_what_sets_it(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["egs-pre-receive", word])
    with pytest.raises(SystemExit) as left:
        push_hook_process.main()
    said = capsys.readouterr().out
    assert left.value.code == 0
    assert all(name in said for name in ("EGS_VERIFY", "EGS_TRUST", "EGS_PUSHER", "pre-receive"))


def test_arguments_are_wrong_use(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["egs-pre-receive", "refs/heads/main"])
    with pytest.raises(SystemExit) as left:
        push_hook_process.main()
    assert (left.value.code, "takes no arguments" in capsys.readouterr().err) == (2, True)
