"""The last step of a change: commits pushed to one branch by compare-and-swap, and what a failed push means.

  * conflict: others were faster. The change is made again on their work, a bounded number of times;
  * refusal: the server has a rule. The change becomes a pull request if it may, else its caller is told;
  * unknown: the server did not answer. What its branch has by then decides, so no change is made twice.

Held by tests/contract/test_publish_contract.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.store.store_port import Draft, Outcome, Store, chain

TRIES = 10
"""Lost races of one change before its caller is told."""


def push(
    store: Store, branch: str, drafts: Sequence[Draft], tip: str, expected: str | None
) -> tuple[Outcome, Sequence[str]]:
    """Commits on `tip`, pushed as the branch if its head is `expected` (None: absent); and their ids.

    Without drafts `tip` itself is pushed.
    """
    commits = store.write_all(chain(tip, drafts))
    return store.push(branch, commits[-1] if commits else tip, expected), commits


def refused_push(branch: str, to_do: str, said: str = "") -> str:
    """For `Outcome.REFUSED`; `said` is the server's own message, if any."""
    return f"the server refused the push to {branch}{f': {said}' if said else ', which may be protected'}; {to_do}"


def unanswered(what: str, to_do: str) -> str:
    """For `Outcome.UNKNOWN`."""
    return f"the server did not answer whether {what} arrived; {to_do}"


def overrun(times: int, to_do: str) -> str:
    """For this many `Outcome.CONFLICT`."""
    return f"others pushed to main {times} times in a row; {to_do}"
