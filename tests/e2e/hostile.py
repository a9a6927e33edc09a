"""What somebody with the right to push could commit: files by their raw names, modes and bytes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.reading.yaml_text import dump

FILE, PROGRAM, LINK, MODULE = "100644", "100755", "120000", "160000"
SPEC = {"slice": "a", "nodes": 1, "duration": "1h"}


def gpr(name: str, **spec: object) -> bytes:
    """A request of slice `a`, as it should be but for what is given."""
    return dump(
        {
            "apiVersion": "egs.dev/v1alpha1",
            "kind": "GPR",
            "metadata": {"name": name},
            "spec": {**SPEC, **spec},
        }
    ).encode()


def with_line(line: str) -> bytes:
    """The request `bad` with one more line in its spec."""
    return gpr("bad") + f"  {line}\n".encode()


@dataclass(frozen=True, slots=True)
class Attack:
    """One file, and the problem that has to be said of it; `shown` is its name in that problem, `rule` None: none."""

    why: str
    rule: str | None
    path: bytes = b"slices/a/gprs/bad.yaml"
    data: bytes = b""
    mode: str = FILE
    shown: str = ""

    @property
    def named(self) -> str:
        """What the problem calls the file."""
        return self.shown or self.path.decode()


def _stray(why: str, path: str | bytes, shown: str = "") -> Attack:
    raw = path if isinstance(path, bytes) else path.encode()
    return Attack(why, "StrayFile", raw, gpr("bad"), shown=shown)


NAMES = (
    _stray("a name that is no UTF-8", b"slices/a/gprs/\xff\xfe.yaml", r"slices/a/gprs/\xff\xfe.yaml"),
    _stray("a terminal escape in a name", "slices/a/gprs/\x1b[2J.yaml", r"slices/a/gprs/\x1b[2J.yaml"),
    _stray("a line break in a name", "slices/a/gprs/b\nok.yaml", r"slices/a/gprs/b\nok.yaml"),
    _stray("a carriage return in a name", "slices/a/gprs/b\rok.yaml", r"slices/a/gprs/b\rok.yaml"),
    _stray("a name that reads backwards", "slices/a/gprs/\u202eb.yaml", r"slices/a/gprs/\u202eb.yaml"),
    _stray("a letter that nobody sees", "slices/a/gprs/b\u200b.yaml", r"slices/a/gprs/b\u200b.yaml"),
    _stray("a letter of another alphabet", "slices/a/gprs/b\u0430d.yaml"),
    _stray("an accent in one letter", "slices/a/gprs/\u00e9.yaml"),
    _stray("the same accent in two", "slices/a/gprs/e\u0301.yaml"),
    _stray("capitals where a file system has none", "slices/A/slice.yaml"),
    _stray("capitals in an ending", "slices/a/gprs/bad.YAML"),
    _stray("a dash first", "slices/a/gprs/-rf.yaml"),
    _stray("what a shell would run", "slices/a/gprs/$(reboot).yaml"),
    _stray("a name of 64 letters", f"slices/a/gprs/{'n' * 64}.yaml"),
    _stray("a name of 5,000 letters", f"clusters/{'n' * 5000}.yaml", f"clusters/{'n' * 490}…"),
    _stray("one folder too deep", "slices/a/gprs/deep/bad.yaml"),
    _stray("an approval in another's place", "approvals/a/ada.yaml"),
    _stray("what was left by an editor", "slices/a/gprs/bad.yaml~"),
    Attack("a name that is another's", "NameMismatch", data=gpr("other")),
    Attack("a slice that is another's", "FolderMismatch", data=gpr("bad", slice="b")),
)

MODES = (
    Attack("a link in a request's place", "NotAFile", data=b"/etc/passwd", mode=LINK),
    Attack(
        "a link to a secret",
        "NotAFile",
        data=b"/var/run/secrets/kubernetes.io/serviceaccount/token",
        mode=LINK,
    ),
    Attack("a link whose target reads as a request", "NotAFile", data=gpr("bad"), mode=LINK),
    Attack("a program in a request's place", "NotAFile", data=gpr("bad"), mode=PROGRAM),
    Attack("a submodule in a request's place", "NotAFile", mode=MODULE),
    Attack("a link in the place of a slice's folder", "StrayFile", b"slices/d", b"../slices/b", LINK),
    Attack("a link in the place of a folder of requests", "StrayFile", b"slices/c/gprs", b"../a/gprs", LINK),
    Attack("a submodule in the place of all requests for slices", "StrayFile", b"requests", mode=MODULE),
    Attack("a link in the place of all templates", "StrayFile", b"templates", b"/etc", LINK),
    Attack(
        "what git would obey in a work tree",
        None,
        b".gitmodules",
        b'[submodule "x"]\n\turl = ext::sh -c id\n',
    ),
    Attack("filters that git would run in a work tree", None, b".gitattributes", b"* filter=run\n"),
    Attack("a workflow of its own", None, b".github/workflows/x.yml", b"on: push\n"),
)

SIZES = (
    Attack("one byte too many", "TooLarge", data=b"#" * 65_537),
    Attack("50 MB of nothing", "TooLarge", data=bytes(50_000_000)),
    Attack("no byte at all", "EmptyDocument", data=b""),
    Attack("20,001 values", "TooManyValues", data=b"-\n" * 20_001),
    Attack("60,000 digits", "NumberTooLarge", data=with_line(f"move: {'9' * 60_000}")),
    Attack("60,000 letters for a name", "BadValue", data=with_line(f"displayName: {'n' * 60_000}")),
    Attack("a field of 30,000 letters", "UnknownField", data=with_line(f"{'n' * 500}: 1")),
)

ENCODINGS = (
    Attack("UTF-16", "NotUtf8", data=gpr("bad").decode().encode("utf-16")),
    Attack("Latin-1", "NotUtf8", data=gpr("bad", displayName="caf\u00e9").decode().encode("latin-1")),
    Attack("half a character", "NotUtf8", data=gpr("bad") + b"#\xed\xa0\x80"),
    Attack("an overlong form", "NotUtf8", data=gpr("bad") + b"#\xc0\xae"),
    Attack("a byte order mark", "ForbiddenCharacter", data=b"\xef\xbb\xbf" + gpr("bad")),
    Attack("a NUL", "ForbiddenCharacter", data=gpr("bad") + b"#\0"),
    Attack("a terminal escape", "ForbiddenCharacter", data=with_line("displayName: \x1b[2Jx")),
    Attack("a terminal escape in one byte", "ForbiddenCharacter", data=with_line("displayName: \x9b2Jx")),
    Attack(
        "a line that some readers do not see",
        "ForbiddenCharacter",
        data=gpr("bad") + b"# x\r  priority: 300\n",
    ),
    Attack("text that reads backwards", "ForbiddenCharacter", data=with_line("displayName: a\u202eb")),
    Attack("a comment that reads backwards", "ForbiddenCharacter", data=gpr("bad") + "# \u2067\n".encode()),
    Attack("a character that nobody sees", "ForbiddenCharacter", data=with_line("displayName: a\u2063b")),
    Attack("an escape that gives one", "ForbiddenCharacter", data=with_line(r'displayName: "a\u202eb"')),
)

YAML = (
    Attack("60,000 open brackets", "TooDeep", data=b"[" * 60_000),
    Attack("15,000 open braces", "TooDeep", data=b"{a: " * 15_000),
    Attack("33 lists in each other", "TooDeep", data=b"[" * 33 + b"]" * 33),
    Attack("an alias bomb", "AnchorUsed", data=b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"),
    Attack("an alias", "AliasUsed", data=with_line("displayName: *x")),
    Attack("a merge", "AmbiguousScalar", data=with_line("<<: {nodes: 100}")),
    Attack(
        "a tag that would run code", "TagUsed", data=with_line("model: !!python/object/apply:os.system [id]")
    ),
    Attack("a tag that changes a type", "TagUsed", data=with_line('displayName: !!int "1"')),
    Attack("a version that changes the meaning", "DirectiveUsed", data=b"%YAML 1.1\n---\n" + gpr("bad")),
    Attack("a second document", "SeveralDocuments", data=gpr("bad") + b"---\n" + gpr("bad", nodes=100)),
    Attack("a number twice", "DuplicateKey", data=with_line("nodes: 100")),
    Attack("a number twice, once in quotes", "DuplicateKey", data=with_line('"nodes": 100')),
    Attack("a key that is a number", "KeyNotString", data=with_line("1: 1")),
    Attack("an octal number", "AmbiguousScalar", data=with_line("priority: 0144")),
    Attack("a number in hexadecimal", "AmbiguousScalar", data=with_line("priority: 0x64")),
    Attack("a number to the base of 60", "AmbiguousScalar", data=with_line("idleTimeout: 1:30")),
    Attack("a number with a line in it", "AmbiguousScalar", data=with_line("priority: 1_0")),
    Attack("a number with an exponent", "AmbiguousScalar", data=with_line("priority: 1e2")),
    Attack("no number", "AmbiguousScalar", data=with_line("priority: .NaN")),
    Attack("a number without end", "AmbiguousScalar", data=with_line("priority: -.inf")),
    Attack("an integer beyond 2^53", "NumberTooLarge", data=with_line("move: 9007199254740993")),
    Attack("no, in a country's sense", "AmbiguousScalar", data=with_line("displayName: no")),
    Attack("off, for a truth value", "AmbiguousScalar", data=with_line("preemptible: off")),
    Attack("a date that is none to others", "AmbiguousScalar", data=with_line("displayName: 2026-11-21")),
    Attack("text for a number", "WrongType", data=gpr("bad", nodes="2")),
    Attack("true for a number", "WrongType", data=gpr("bad", nodes=True)),
    Attack("a fraction for a number", "BadValue", data=gpr("bad", nodes=1.0)),
    Attack("a negative number", "BadValue", data=gpr("bad", nodes=-1)),
    Attack("a field of another's making", "UnknownField", data=gpr("bad", __class__="x")),
    Attack(
        "a request without its head", "MissingField", data=b"kind: GPR\nmetadata: {name: bad}\nspec: {}\n"
    ),
    Attack("another kind", "WrongKind", data=gpr("bad").replace(b"kind: GPR", b"kind: Project")),
    Attack("only text", "NotAMapping", data=b"hello\n"),
)

ATTACKS: Mapping[str, Attack] = {a.why: a for a in (*NAMES, *MODES, *SIZES, *ENCODINGS, *YAML)}
