"""Approvals on a forge: whose review of which content counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tests.support import repos
from tests.support.court import LONG, Acting, Bench, Case
from tests.support.forge import Forge

How = Literal["merge", "squash", "rebase"]


def pull(bench: Bench, by: str = "bo", **changes: object) -> int:
    """Somebody opens a pull request that files the request."""
    forge = forge_of(bench)
    forge.push(f"b-{bench.slice}", {bench.path: bench.request(**changes)}, by)
    return forge.open(f"b-{bench.slice}", by)


def forge_of(bench: Bench) -> Forge:
    """The forge that has the court's repository."""
    forge = bench.court.forge
    assert forge is not None
    return forge


def reviewed(*by: str, how: How = "merge", author: str = "bo", merger: str = "mo") -> Callable[[Bench], None]:
    """Opened, approved and merged."""

    def act(bench: Bench) -> None:
        forge, number = forge_of(bench), pull(bench, author)
        for name in by:
            forge.approve(number, name)
        forge.merge(number, merger, how)

    return act


def said(*states: str) -> Callable[[Bench], None]:
    """Ada says something, and then something else."""

    def act(bench: Bench) -> None:
        forge, number = forge_of(bench), pull(bench)
        for state in states:
            forge.approve(number, "ada", state)
        forge.merge(number, "mo")

    return act


def dismissed(bench: Bench) -> None:
    forge, number = forge_of(bench), pull(bench)
    forge.approve(number, "ada").dismissed = True
    forge.merge(number, "mo")


def before_a_push(bench: Bench) -> None:
    """Approved small, then made large."""
    forge, number = forge_of(bench), pull(bench, nodes=1)
    forge.approve(number, "ada")
    forge.push(f"b-{bench.slice}", {bench.path: bench.request()}, "bo")
    forge.merge(number, "mo")


def by_the_last_pusher(bench: Bench) -> None:
    forge, number = forge_of(bench), pull(bench)
    forge.push(f"b-{bench.slice}", {f"notes/{bench.slice}.md": "x\n"}, "ada", author="bo <bo@example.com>")
    forge.approve(number, "ada")
    forge.merge(number, "mo")


def by_a_committer(bench: Bench) -> None:
    """Ada wrote one of its commits, Bo pushed last."""
    forge = forge_of(bench)
    forge.push(f"b-{bench.slice}", {bench.path: bench.request()}, "bo", author="ada <ada@example.com>")
    number = forge.open(f"b-{bench.slice}", "bo")
    forge.push(f"b-{bench.slice}", {f"notes/{bench.slice}.md": "x\n"}, "bo")
    forge.approve(number, "ada")
    forge.merge(number, "mo")


def altered_by_the_squash(bench: Bench) -> None:
    """What came to main is not what its head had."""
    forge, number = forge_of(bench), pull(bench, nodes=1)
    forge.approve(number, "ada")
    after = repos.commit(forge.repo, {bench.path: bench.request()}, "main", "Squashed", "mo <mo@example.com>")
    forge._end(forge.pulls[number], after, forge.user("mo"))


def of_another_pull(bench: Bench) -> None:
    """Ada approved the README that Bo wrote, not his request."""
    forge = forge_of(bench)
    forge.push(f"r-{bench.slice}", {f"notes/{bench.slice}.md": "x\n"}, "bo")
    other = forge.open(f"r-{bench.slice}", "bo")
    forge.approve(other, "ada")
    number = pull(bench)
    forge.merge(other, "mo")
    forge.merge(number, "mo")


def straight_to_main(bench: Bench) -> None:
    """The very content that Ada approves on a pull request that is never merged."""
    forge, number = forge_of(bench), pull(bench)
    forge.approve(number, "ada")
    forge.push("main", {bench.path: bench.request(), f"notes/{bench.slice}.md": "mine\n"}, "bo")


def moved_to_main(bench: Bench) -> None:
    """Bo pushes the approved head itself to main: the forge counts that as the merge."""
    forge, number = forge_of(bench), pull(bench)
    forge.approve(number, "ada")
    before, head = bench.court.tip(), forge.pulls[number].head
    bench.court.move(head)
    forge.pushed("main", before, head, "bo")


def to_another_branch(bench: Bench) -> None:
    """Approved where nobody looks: on a pull request to another branch."""
    forge = forge_of(bench)
    tip = repos.git(forge.repo, "rev-parse", "main")
    repos.git(forge.repo, "update-ref", f"refs/heads/dev-{bench.slice}", tip)
    forge.push(f"b-{bench.slice}", {bench.path: bench.request()}, "bo")
    number = forge.open(f"b-{bench.slice}", "bo", f"dev-{bench.slice}")
    forge.approve(number, "ada")
    forge.merge(number, "mo")
    forge.push("main", {bench.path: bench.request()}, "bo")


def refiled_by_a_push(bench: Bench) -> Acting:
    """Used up, deleted, and filed again without a pull request."""
    reviewed("ada")(bench)
    yield
    assert bench.is_let_in
    forge_of(bench).push("main", {bench.path: None}, "bo")
    yield
    bench.from_now()
    forge_of(bench).push("main", {bench.path: bench.request()}, "bo")
    yield


def edited_by_a_push(bench: Bench) -> Acting:
    reviewed("ada")(bench)
    yield
    assert bench.is_let_in
    forge_of(bench).push("main", {bench.path: bench.request(nodes=9)}, "bo")
    yield
    bench.from_now()
    yield


def dismissed_later(bench: Bench) -> Acting:
    forge, number = forge_of(bench), pull(bench)
    review = forge.approve(number, "ada")
    forge.merge(number, "mo")
    yield
    assert bench.is_let_in
    review.dismissed = True
    yield
    bench.from_now()
    yield


FORGERIES = [
    Case("merged without a review", reviewed(), is_filed=False),
    Case("reviewed by a member", reviewed("mo"), is_filed=False),
    Case("reviewed by a stranger", reviewed("eve"), is_filed=False),
    Case("reviewed by a bot that project.yaml lists", reviewed("robo"), is_filed=False),
    Case("reviewed by another account of an admin's name", reviewed("kay"), is_filed=False),
    Case("reviewed by its author", reviewed("ada", author="ada", merger="ada"), is_filed=False),
    Case("merged by an admin, and reviewed by nobody", reviewed(merger="ada"), is_filed=False),
    Case("only commented", said("comment"), is_filed=False),
    Case("approved, and then changes were asked for", said("approve", "reject"), is_filed=False),
    Case("a review that was dismissed", dismissed, is_filed=False),
    Case("a review that is dismissed later", dismissed_later, is_filed=False, spec={"notBefore": LONG}),
    Case("a review of an older head", before_a_push, is_filed=False),
    Case("a review by the last pusher", by_the_last_pusher, is_filed=False),
    Case("a review by somebody who wrote a part", by_a_committer, is_filed=False),
    Case("a squash that altered it", altered_by_the_squash, is_filed=False),
    Case("a review of another pull request", of_another_pull, is_filed=False),
    Case("pushed straight to main beside its pull request", straight_to_main, is_filed=False),
    Case("a pull request to another branch", to_another_branch, is_filed=False),
    Case("used up and filed again by a push", refiled_by_a_push, is_filed=False),
    Case("edited by a push", edited_by_a_push, is_filed=False, spec={"notBefore": LONG}),
    Case("one review where two are needed", reviewed("ada"), is_filed=False, spec={"nodes": 21}),
    Case("one review and a bot's", reviewed("ada", "robo"), is_filed=False, spec={"nodes": 21}),
]


def approved_again(bench: Bench) -> None:
    """After a push."""
    forge, number = forge_of(bench), pull(bench, nodes=1)
    forge.approve(number, "ada")
    forge.push(f"b-{bench.slice}", {bench.path: bench.request()}, "bo")
    forge.approve(number, "ada")
    forge.merge(number, "mo")


def after_the_merge(bench: Bench) -> Acting:
    """Nobody approved when it was merged; Ada does when she sees it waiting."""
    forge, number = forge_of(bench), pull(bench)
    forge.merge(number, "mo")
    yield
    assert bench.verdict == "waiting"
    forge.approve(number, "ada")
    yield


def of_a_fork(bench: Bench) -> None:
    forge = forge_of(bench)
    forge.push(f"b-{bench.slice}", {bench.path: bench.request()}, "bo", fork="bo")
    number = forge.open(f"b-{bench.slice}", "bo", fork="bo")
    forge.approve(number, "ada")
    forge.merge(number, "mo")


def signed_instead(bench: Bench) -> Acting:
    """Nobody reviewed; Ada's signed word comes through a pull request of Bo's."""
    forge = forge_of(bench)
    reviewed()(bench)
    yield
    forge.push(f"w-{bench.slice}", {bench.file(): bench.word()}, "bo")
    forge.merge(forge.open(f"w-{bench.slice}", "bo"), "bo")
    yield


GENUINE = [
    Case("reviewed and merged", reviewed("ada"), "approved", is_filed=False),
    Case("reviewed and squashed", reviewed("ada", how="squash"), "approved", is_filed=False),
    Case("reviewed and rebased", reviewed("ada", how="rebase"), "approved", is_filed=False),
    Case("reviewed by another admin", reviewed("grace"), "approved", is_filed=False),
    Case("merged by the admin who reviewed", reviewed("ada", merger="ada"), "approved", is_filed=False),
    Case(
        "an admin's request, reviewed by another", reviewed("grace", author="ada"), "approved", is_filed=False
    ),
    Case("reviewed by two", reviewed("ada", "grace"), "approved", is_filed=False, spec={"nodes": 21}),
    Case("reviewed again after a push", approved_again, "approved", is_filed=False),
    Case("reviewed after the merge", after_the_merge, "approved", is_filed=False),
    Case("changes asked for, and then approved", said("reject", "approve"), "approved", is_filed=False),
    Case("from a fork", of_a_fork, "approved", is_filed=False),
    Case("reviewed, and its head pushed to main", moved_to_main, "approved", is_filed=False),
    Case("signed instead of reviewed", signed_instead, "approved", is_filed=False),
]
