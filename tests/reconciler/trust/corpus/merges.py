"""Merges: when an admin's own signed merge commit lets content in, and when it does not."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.court import LONG, Acting, Bench, Case


def merged(by: str | None, side: str | None = "bo", **more: object) -> Callable[[Bench], None]:
    """A branch by one, merged by another."""

    def act(bench: Bench) -> None:
        commit = bench.court.side({bench.path: bench.request()}, side)
        bench.court.merge([commit], by, **more)  # type: ignore[arg-type]

    return act


def evil(bench: Bench) -> None:
    """Ada's merge holds another request than the branch did: she wrote that herself."""
    side = bench.court.side({bench.path: bench.request(nodes=1)})
    bench.court.merge([side], "ada", {bench.path: bench.request(nodes=2)})


def evil_by_a_member(bench: Bench) -> None:
    """Bo makes Ada merge two nodes, and merges more himself."""
    side = bench.court.side({bench.path: bench.request(nodes=1)})
    bench.court.merge([side], "bo", {bench.path: bench.request(nodes=2)}, author="ada")


def fast_forward(bench: Bench) -> None:
    """Ada moves main to Bo's commit: nothing of hers is in it."""
    bench.court.move(bench.court.side({bench.path: bench.request()}))


def squashed(bench: Bench) -> None:
    """Ada commits what Bo had on a branch: she stands behind it alone."""
    bench.court.push({bench.path: bench.request()}, "ada", author="bo")


def edited_after_the_merge(bench: Bench) -> Acting:
    merged("ada")(bench)
    yield
    assert bench.is_let_in
    bench.court.push({bench.path: bench.request(nodes=3, notBefore=LONG)})
    yield
    bench.from_now()


def merged_before(bench: Bench) -> Acting:
    """Ada merged it once; Bo files the same again after it was gone."""
    merged("ada")(bench)
    yield
    assert bench.is_let_in
    bench.court.push({bench.path: None})
    yield
    bench.court.push({bench.path: bench.request()})
    bench.from_now()
    yield


def pulled(bench: Bench) -> None:
    """Ada merged main into work of her own; Bo moves main there. She looked at her side."""
    work = bench.court.side({f"notes/{bench.slice}.md": "hers\n"}, "ada")
    bench.court.push({bench.path: bench.request()})
    text = "Merge branch 'main' into work"
    tree = bench.court.tree({f"notes/{bench.slice}.md": "hers\n"}, bench.court.tip())
    bench.court.move(bench.court.commit(tree, [work, bench.court.tip()], "ada", text=text))


def several(bench: Bench) -> None:
    """One merge of two branches."""
    one = bench.court.side({f"notes/{bench.slice}.md": "one\n"}, "mo")
    other = bench.court.side({bench.path: bench.request()})
    bench.court.merge([one, other], "ada")


def longer(bench: Bench) -> None:
    """A branch of three commits; the middle one brought what is asked for."""
    tip = bench.court.side({bench.path: bench.request(nodes=9)})
    tip = bench.court.side({bench.path: bench.request()}, base=tip)
    tip = bench.court.side({f"notes/{bench.slice}.md": "x\n"}, "mo", base=tip)
    bench.court.merge([tip], "ada")


def nested(bench: Bench) -> None:
    """A branch that was itself merged from a branch, by members."""
    court = bench.court
    side = court.side({bench.path: bench.request()})
    tip = court.tip()
    tree = court.tree({bench.path: bench.request()}, tip)
    court.merge([court.commit(tree, [tip, side], "mo", text="Merge branch 'feature'")], "ada")


def branched_long_ago(bench: Bench) -> None:
    """Main went on meanwhile."""
    side = bench.court.side({bench.path: bench.request()})
    bench.court.push({f"notes/{bench.slice}.md": "main goes on\n"}, "mo")
    bench.court.merge([side], "ada")


FORGERIES = [
    Case("an unsigned merge", merged(None, author="ada"), is_filed=False),
    Case("a member's merge", merged("mo"), is_filed=False),
    Case("a member's merge with an admin as its author", merged("bo", author="ada"), is_filed=False),
    Case("a stranger's merge with an admin as its author", merged("eve", author="ada"), is_filed=False),
    Case("a merge signed by a revoked key", merged("rev"), is_filed=False),
    Case("a merge signed by a key that is over", merged("kay"), is_filed=False),
    Case("a merge by an admin whom project.yaml alone gives a key", merged("mal"), is_filed=False),
    Case("a merge by a service", merged("door", text="Merge\n\nOn-Behalf-Of: Ada <ada@example.com>"), is_filed=False),
    Case("a merge that made up more", evil, is_filed=False),
    Case("a member's merge that made up more", evil_by_a_member, is_filed=False),
    Case("a fast-forward", fast_forward, is_filed=False),
    Case("an admin's own commit of what a member wrote", squashed, is_filed=False),
    Case("an admin's merge of their own request", merged("ada", "ada"), is_filed=False),
    Case("an admin's merge of what nobody signed", merged("ada", None), is_filed=False),
    Case("a merge of what is edited afterwards", edited_after_the_merge, spec={"notBefore": LONG}, is_filed=False),
    Case("a merge of the same content before", merged_before, is_filed=False),
    Case("a merge of main into an admin's own work", pulled, is_filed=False),
    Case("a merge with a word of approval in its text", merged("mo", text="Merge\n\nApproved-by: ada"), is_filed=False),
    Case("one admin's merge where two are needed", merged("ada"), spec={"nodes": 21}, is_filed=False),
]  # fmt: skip


def merge_and_word(bench: Bench) -> Acting:
    """One admin merged, another signs."""
    merged("ada")(bench)
    yield
    assert bench.verdict == "waiting"
    bench.put(bench.word("grace-h", "grace"), "grace-h")
    yield


GENUINE = [
    Case("an admin's merge", merged("ada"), "approved", is_filed=False),
    Case("another admin's merge, by a key that is for commits", merged("gia"), "approved", is_filed=False),
    Case("an admin's merge of another admin's request", merged("grace", "ada"), "approved", is_filed=False),
    Case("a merge of two branches", several, "approved", is_filed=False),
    Case("a merge of a longer branch", longer, "approved", is_filed=False),
    Case("a merge of a branch that had merges", nested, "approved", is_filed=False),
    Case("a merge after main went on", branched_long_ago, "approved", is_filed=False),
    Case("one admin's merge and another's word", merge_and_word, "approved", spec={"nodes": 21}, is_filed=False),
]  # fmt: skip
