"""Words in files: every field of a statement altered after it was signed, and every way of spoiling a signature."""

from __future__ import annotations

from collections.abc import Callable

from schemas.documents.approval import NAMESPACE
from schemas.reading.yaml_text import dump
from tests.support import world
from tests.support.court import LONG, Acting, Bench, Case, sign_content
from tests.support.machinekeys import key

OTHER = "sha256:" + "0" * 64
LITTLE = {"gpus": 8, "nodes": 1}
GRACE = {"gpus": 16, "nodes": 2, "extend": "1h"}


def altered(**after: object) -> Callable[[Bench], None]:
    """Ada signed something else."""
    return lambda bench: bench.put(bench.word(after=after))


def meant(after: dict[str, object], **signed: object) -> Callable[[Bench], None]:
    """Ada signed this, and the file says that."""
    return lambda bench: bench.put(bench.word(after=after, **signed))


def spoiled(change: Callable[[str], str]) -> Callable[[Bench], None]:
    """Ada's signature, written otherwise."""

    def act(bench: Bench) -> None:
        content = bench.content()
        content["spec"]["signature"] = change(_signature(bench))
        bench.put(dump(content))

    return act


def _signature(bench: Bench) -> str:
    return sign_content(bench.content(), key("ada"), NAMESPACE, "default")


def _with_another_letter(signature: str) -> str:
    lines = signature.splitlines()
    lines[2] = lines[2][:20] + ("A" if lines[2][20] != "A" else "B") + lines[2][21:]
    return "\n".join(lines) + "\n"


def for_another_request(bench: Bench) -> None:
    """A word for some other slice's request, copied into this one's folder."""
    other = bench.word(after={"slice": bench.slice}, slice="elsewhere")
    bench.put(other)


def redigested(bench: Bench) -> None:
    """Ada approved something else; its digest is exchanged for this request's."""
    bench.put(bench.word(after={"specDigest": bench.digest}, specDigest=OTHER))


def under_another_name(bench: Bench) -> None:
    """Ada's word as Grace's."""
    bench.put(bench.word("grace-h", "ada"), "grace-h")


def copied_to_another_name(bench: Bench) -> None:
    """The signature of Ada's statement in a file of Grace."""
    content = bench.content("grace-h")
    content["spec"]["signature"] = _signature(bench)
    bench.put(dump(content), "grace-h")


def with_another_reason(bench: Bench) -> None:
    """Her approval of something else, with its signature on a new reason."""
    bench.put(bench.word(after={"reason": "for everything, for ever"}, reason="for the paper"))


def pgp(bench: Bench) -> None:
    content = bench.content()
    body = "-----BEGIN PGP SIGNATURE-----\n\niHUEABYIAB0WIQ==\n=aaaa\n-----END PGP SIGNATURE-----\n"
    content["spec"]["signature"] = body
    bench.put(dump(content))


def two_signatures(bench: Bench) -> None:
    content = bench.content()
    bo = key("bo").sign("egs-approval", b"x")
    content["spec"]["signature"] = bo + _signature(bench)
    bench.put(dump(content))


def elsewhere(path: str, by: str = "ada") -> Callable[[Bench], None]:
    """A good word at another path."""

    def act(bench: Bench) -> None:
        place = path.format(slice=bench.slice)
        bench.court.push({place: bench.word(by)}, bench.court.courier)

    return act


def by_namespace(namespace: str) -> Callable[[Bench], None]:
    return lambda bench: bench.put(bench.word(namespace=namespace))


def edited_after(bench: Bench) -> Acting:
    """The request asks for more once it was approved; it waited for its notBefore."""
    bench.put(bench.word())
    yield
    assert bench.is_let_in
    bench.court.push({bench.path: bench.request(nodes=3)})
    yield
    bench.from_now()


def before_an_edit(bench: Bench) -> None:
    """Approval and edit arrive together: what was signed is the request as it was."""
    files = {bench.file(): bench.word(), bench.path: bench.request(nodes=90)}
    bench.court.push(files, "bo" if bench.court.courier == "bo" else "ada")


def other_template(bench: Bench) -> Acting:
    """An admin changes the template that the approved request names; the request grows with it."""
    text = {"nodes": 2, "duration": "5m"}

    def template(**more: object) -> dict[str, str]:
        name = f"t-{bench.slice}"
        return {f"templates/{name}.yaml": world._document("GPRTemplate", name, {**text, **more})}

    bench.court.push(template(), "ada")
    spec = {"nodes": None, "duration": None, "template": f"t-{bench.slice}", "notBefore": LONG}
    bench.court.push({bench.path: bench.request(**spec)})
    yield
    bench.put(bench.word())
    yield
    assert bench.is_let_in
    bench.court.push(template(nodes=50), "ada")
    yield
    bench.from_now()


def ends(bench: Bench) -> Acting:
    """It waits for its notBefore until the word is over."""
    bench.put(bench.word(notAfter="2026-11-21T08:35:00Z"))
    yield
    assert bench.is_let_in
    yield
    yield
    bench.from_now()


ALTERED = [
    Case("a project of another name", lambda b: b.put(b.word(project="other"))),
    Case("another slice's request", for_another_request),
    Case("another request of the slice", meant({"gpr": "big"}, gpr="small")),
    Case("another digest", altered(specDigest=OTHER)),
    Case("a digest that was signed for other content", redigested),
    Case("a rejection made an approval", meant({"decision": "approve"}, decision="reject")),
    Case("a word for grace made one for it", meant({"rule": "request"}, rule="extension", limit=GRACE)),
    Case("a word for grace alone", lambda b: b.put(b.word(rule="extension", limit=GRACE))),
    Case("more GPUs than were signed", meant({"limit": {"gpus": 1000, "nodes": 2}}, limit={"gpus": 8, "nodes": 2})),
    Case("more nodes than were signed", meant({"limit": {"gpus": 1000, "nodes": 2}}, limit={"gpus": 1000, "nodes": 1})),
    Case("grace added to the limit", altered(limit={"gpus": 1000, "nodes": 100, "extend": "9h"})),
    Case("an end that was moved out", meant({"notAfter": LONG}, notAfter="2026-11-21T08:00:01Z")),
    Case("an end that was moved in", altered(notAfter="2026-12-19T00:00:00Z")),
    Case("an end that was taken away", altered(notAfter=None)),
    Case("another reason under an old signature", with_another_reason),
    Case("a reason taken away", meant({"reason": ""}, reason="for the paper")),
    Case("one admin's word under another's name", under_another_name),
    Case("one admin's signature in another's file", copied_to_another_name),
]  # fmt: skip

SPOILED = [
    Case("no signature at all", lambda b: b.put(dump(b.content()))),
    Case("an empty signature", spoiled(lambda s: "")),
    Case("a truncated signature", spoiled(lambda s: s[:-60])),
    Case("a signature without its last line", spoiled(lambda s: "\n".join(s.splitlines()[:-1]) + "\n")),
    Case("two signatures in one", two_signatures),
    Case("a signature twice", spoiled(lambda s: s + s)),
    Case("blanks before the signature", spoiled(lambda s: "  " + s)),
    Case("blanks inside of the signature", spoiled(lambda s: s.replace("U1NI", "U1N I", 1))),
    Case("tabs behind its lines", spoiled(lambda s: s.replace("\n", "\t\n"))),
    Case("words behind the signature", spoiled(lambda s: s + "approved by ada\n")),
    Case("words before the signature", spoiled(lambda s: "approved by ada\n" + s)),
    Case("line ends of another system", spoiled(lambda s: s.replace("\n", "\r\n"))),
    Case("a head in small letters", spoiled(lambda s: s.replace("BEGIN SSH", "begin ssh"))),
    Case("an OpenPGP signature", pgp),
    Case("OpenPGP's armour around an SSH signature", spoiled(lambda s: s.replace("SSH", "PGP"))),
    Case("one letter of it changed", spoiled(_with_another_letter)),
    Case("its base64 in another alphabet", spoiled(lambda s: s.replace("/", "_").replace("+", "-") + "_")),
    Case("a signature made for commits", by_namespace("git")),
    Case("a signature made for agents' reports", by_namespace("egs-health")),
    Case("a signature made for appliers' reports", by_namespace("egs-cluster")),
    Case("a signature made for files", by_namespace("file")),
    Case("a namespace in capitals", by_namespace("EGS-APPROVAL")),
    Case("a namespace that goes on", by_namespace("egs-approval-test")),
]  # fmt: skip

BOUNDS = [
    Case("a limit of too few GPUs", lambda b: b.put(b.word(limit={"gpus": 15, "nodes": 2}))),
    Case("a limit of too few nodes", lambda b: b.put(b.word(limit={"gpus": 1000, "nodes": 1}))),
    Case("no end", lambda b: b.put(b.word(notAfter=None))),
    Case("an end that is past", lambda b: b.put(b.word(notAfter="2026-11-21T08:09:00Z"))),
    Case("an end that is years away", lambda b: b.put(b.word(notAfter="2031-01-01T00:00:00Z"))),
    Case("an end that comes while it waits", ends, spec={"notBefore": LONG}),
    Case("the digest before an edit", edited_after, spec={"notBefore": LONG}),
    Case("an edit that comes with the approval", before_an_edit),
    Case("a template that grew", other_template, spec={"notBefore": LONG}),
    Case("one admin where two are needed", lambda b: b.put(b.word()), spec={"nodes": 21}),
    Case("a word at a path of no document", elsewhere("approvals/{slice}/ada.yaml")),
    Case("a word in a folder of capitals", elsewhere("Approvals/{slice}/big/ada.yaml")),
    Case("a name in capitals", elsewhere("approvals/{slice}/big/Ada.yaml")),
    Case("a name with a Cyrillic letter", elsewhere("approvals/{slice}/big/\u0430d\u0430.yaml")),
    Case("a name with a letter of no width", elsewhere("approvals/{slice}/big/a\u200bda.yaml")),
    Case("a name in full-width letters", elsewhere("approvals/{slice}/big/\uff41\uff44\uff41.yaml")),
    Case("a name with another ending", elsewhere("approvals/{slice}/big/ada.yml")),
    Case("another path below main", elsewhere("approvals/{slice}/big/x/ada.yaml")),
]  # fmt: skip


def renamed(bench: Bench) -> Acting:
    """What an approval does not bind may change: the name people see, and a priority within the ceiling."""
    bench.put(bench.word())
    yield
    bench.from_now()
    bench.court.push({bench.path: bench.request(displayName="Third try", priority=150, notBefore=LONG)})
    yield
    assert bench.status is not None
    assert bench.status.accepted_spec.priority == 150


def two_admins(bench: Bench) -> Acting:
    bench.put(bench.word())
    yield
    assert bench.verdict == "waiting"
    bench.put(bench.word("grace-h", "grace"), "grace-h")


def widened(bench: Bench) -> Acting:
    """Too little at first, and then enough."""
    bench.put(bench.word(limit=LITTLE))
    yield
    assert bench.verdict == "waiting"
    bench.put(bench.word(limit={"gpus": 16, "nodes": 2}), pusher="ada")


def renewed(bench: Bench) -> Acting:
    """It would have ended while the request waits."""
    bench.put(bench.word(notAfter="2026-11-21T08:35:00Z"))
    yield
    bench.put(bench.word(notAfter="2026-11-22T08:35:00Z"), pusher="ada")
    yield
    yield
    bench.from_now()


def back_to_what_was_approved(bench: Bench) -> Acting:
    bench.put(bench.word())
    yield
    bench.court.push({bench.path: bench.request(nodes=5)})
    yield
    bench.from_now()
    bench.court.push({bench.path: bench.request()})
    yield


def by_two(bench: Bench) -> None:
    bench.put(bench.word())
    bench.put(bench.word("grace-h", "grace"), "grace-h")


def in_a_block(bench: Bench) -> None:
    """As people write several lines in YAML."""
    content = bench.content()
    lines = sign_content(content, key("ada"), NAMESPACE, "default").splitlines()
    block = "".join(f"    {line}\n" for line in lines)
    bench.put(dump(content) + "  signature: |\n" + block)


def with_line_ends_of_another_system(bench: Bench) -> None:
    """The file as a whole; what YAML reads is the same."""
    content = bench.content()
    lines = sign_content(content, key("ada"), NAMESPACE, "default").splitlines()
    block = "".join(f"    {line}\n" for line in lines)
    bench.put((dump(content) + "  signature: |\n" + block).replace("\n", "\r\n"))


def signed(**spec: object) -> Callable[[Bench], None]:
    """Ada's word."""
    return lambda bench: bench.put(bench.word(**spec))


SMALL = {"nodes": 1, "notBefore": LONG}

GENUINE = [
    Case("signed in this process", signed(), "approved"),
    Case("with a reason in any script", signed(reason="für das Paper ✓\nzweite Zeile"), "approved"),
    Case("with just enough", signed(limit={"gpus": 16, "nodes": 2}), "approved"),
    Case("with an end that is near", signed(notAfter="2026-11-21T09:30:00Z"), "approved"),
    Case("with an end a year away", signed(notAfter="2027-11-20T00:00:00Z"), "approved"),
    Case("by another admin", lambda b: b.put(b.word("grace-h", "grace"), "grace-h"), "approved"),
    Case("by two where one is enough", by_two, "approved"),
    Case("with its signature in a block", in_a_block, "approved"),
    Case("with line ends of another system", with_line_ends_of_another_system, "approved"),
    Case("a rejection", signed(decision="reject", limit=None, reason="not now"), "rejected"),
    Case("a rejection of a small request", signed(decision="reject", limit=None), "rejected", spec=SMALL),
    Case("an edit of what it does not bind", renamed, "approved", spec={"notBefore": LONG}),
    Case("two admins, one after the other", two_admins, "approved", spec={"nodes": 21}),
    Case("a limit that was widened", widened, "approved"),
    Case("a word that is renewed in time", renewed, "approved", spec={"notBefore": LONG}),
    Case("an edit that is undone", back_to_what_was_approved, "approved", spec={"notBefore": LONG}),
]
