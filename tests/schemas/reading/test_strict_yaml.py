"""What the strict loader reads, what it refuses and where.3."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.reading import strict_yaml
from schemas.reading.strict_yaml import MAX_BYTES, MAX_DEPTH, MAX_NODES, Refused, load, locate
from schemas.rules.rule_list import BY_ID
from tests.support.profile import law


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: word", {"a": "word"}, id="a word is text"),
        pytest.param("a: two words", {"a": "two words"}, id="words are text"),
        pytest.param("a: 12", {"a": 12}, id="digits are a whole number"),
        pytest.param("a: -3", {"a": -3}, id="a sign belongs to the number"),
        pytest.param("a: +3", {"a": 3}, id="a plus belongs to the number"),
        pytest.param("a: 0", {"a": 0}, id="zero is a number"),
        pytest.param("a: 9007199254740992", {"a": 2**53}, id="2^53 is the largest number"),
        pytest.param("a: 2.50", {"a": 2.5}, id="a point makes a fraction"),
        pytest.param("a: .5", {"a": 0.5}, id="a fraction may begin with its point"),
        pytest.param(
            "a: true\nb: False", {"a": True, "b": False}, id="true and false in YAML 1.2's spellings"
        ),
        pytest.param(
            "a:\nb: ~\nc: null", {"a": None, "b": None, "c": None}, id="nothing, ~ and null are null"
        ),
        pytest.param("a: 2026-11-21T08:00:00Z", {"a": "2026-11-21T08:00:00Z"}, id="a date-time is text"),
        pytest.param(
            "a: 2026-11-21T08:00:00.5+02:00", {"a": "2026-11-21T08:00:00.5+02:00"}, id="so with an offset"
        ),
        pytest.param("a: 'no'\nb: \"010\"", {"a": "no", "b": "010"}, id="quoted is text, whatever it says"),
        pytest.param("a: 0d6h0m", {"a": "0d6h0m"}, id="a duration is text"),
        pytest.param(
            "a: 6h\nb: 1.2.3\nc: 0d\nd: x:1",
            {"a": "6h", "b": "1.2.3", "c": "0d", "d": "x:1"},
            id="what only resembles a number is text",
        ),
        pytest.param("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}, id="a block is text"),
        pytest.param("a: >\n  12\n", {"a": "12\n"}, id="a folded number is text"),
        pytest.param("- 1\n- [2, {b: 3}]", [1, [2, {"b": 3}]], id="lists and mappings nest"),
        pytest.param("{a: []}", {"a": []}, id="flow style reads alike"),
        pytest.param("--- # head\na: 1\n...\n", {"a": 1}, id="document markers are allowed"),
        pytest.param("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}, id="Windows line ends are allowed"),
        pytest.param('a: "tab\\tline\\n"', {"a": "tab\tline\n"}, id="harmless escapes are allowed"),
        pytest.param("ä: 日本 🚀", {"ä": "日本 🚀"}, id="any language's letters are text"),
        pytest.param("just text", "just text", id="a document may be one scalar"),
        pytest.param("a: b\n'': c", {"a": "b", "": "c"}, id="a quoted empty key is a key"),
    ],
)
def test_what_is_read(text: str, want: object) -> None:
    assert load(text.encode()) == want


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "no", "on", "off", "y", "n", "Yes", "NO", "On", "oFF", "Y", "N"),
        *("010", "00", "-01", "01.5", "007", "1_000", "1_0.5", "_1_0"[1:], "1:30", "10:20:30", "-1:30.5"),
        *("0x1F", "0o17", "0b101", "0X1f", "1e3", "1.5e+3", "12e45678", "-1E5"),
        *(".inf", "-.INF", ".NaN", "2026-11-21", "2026-1-1", "2026-11-21 08:00:00", "2026-11-21T08:00:00"),
        *("2026-11-21t8:00:00Z", "<<", "="),
    ],
)
@pytest.mark.parametrize("place", ["a: {}", "- {}", "{}: a"], ids=["as a value", "in a list", "as a key"])
def test_an_ambiguous_plain_scalar_is_refused_with_quote_it(text: str, place: str) -> None:
    with pytest.raises(Refused) as refusal:
        load(place.format(text).encode())
    assert (refusal.value.rule, refusal.value.fix) == ("AmbiguousScalar", "quote it")
    assert text.lower() in str(refusal.value).lower()
    assert load(place.format(f"'{text}'").encode()) in ({"a": text}, [text], {text: "a"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("no", "truth value", id="a word for false"),
        pytest.param("010", "octal", id="a leading zero"),
        pytest.param("0x10", "another base", id="a base"),
        pytest.param("1_000", "skip '_'", id="an underscore"),
        pytest.param("1e3", "a number to some", id="an exponent"),
        pytest.param("1:30", "base of 60", id="a colon"),
        pytest.param(".inf", "computed", id="an infinity"),
        pytest.param("2026-11-21", "a date", id="a date"),
        pytest.param("2026-11-21 08:00:00", "a time", id="a time without its T"),
        pytest.param("<<", "merge", id="the merge key"),
    ],
)
def test_a_refusal_says_what_others_would_read(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        load(f"a: {text}".encode())


@pytest.mark.parametrize(
    ("data", "rule", "place"),
    [
        pytest.param(b"a: 1\nb: 2\na: 3\n", "DuplicateKey", (3, 1), id="a key given twice"),
        pytest.param(b"a: 1\n'a': 3\n", "DuplicateKey", (2, 1), id="a key given twice, once quoted"),
        pytest.param(b"a: {b: 1, b: 1}", "DuplicateKey", (1, 11), id="a key given twice inside"),
        pytest.param(b"a: &x 1", "AnchorUsed", (1, 4), id="an anchor on a scalar"),
        pytest.param(b"a: &x [1]", "AnchorUsed", (1, 4), id="an anchor on a list"),
        pytest.param(b"&x a: 1", "AnchorUsed", (1, 1), id="an anchor on a key"),
        pytest.param(b"a: *x", "AliasUsed", (1, 4), id="an alias of nothing"),
        pytest.param(b"*a : b", "AliasUsed", (1, 1), id="an alias as a key"),
        pytest.param(
            b"a: !!python/object/apply:os.system [id]", "TagUsed", (1, 4), id="a tag that would run code"
        ),
        pytest.param(b"a: !!str 1", "TagUsed", (1, 4), id="a harmless tag"),
        pytest.param(b"a: ! 1", "TagUsed", (1, 4), id="the non-specific tag"),
        pytest.param(b"a: !!map {}", "TagUsed", (1, 4), id="a tag on a mapping"),
        pytest.param(b"a: 1\n---\nb: 2\n", "SeveralDocuments", (2, 1), id="a second document"),
        pytest.param(b"a: 1\n---\n", "SeveralDocuments", (2, 1), id="an empty second document"),
        pytest.param(
            b"%YAML 1.1\n---\na: no", "DirectiveUsed", (1, 1), id="a version that would change the meaning"
        ),
        pytest.param(b"%TAG ! x:\n---\na: 1", "DirectiveUsed", (1, 1), id="a tag directive"),
        pytest.param(b"1: a", "KeyNotString", (1, 1), id="a number as a key"),
        pytest.param(b"true: a", "KeyNotString", (1, 1), id="a truth value as a key"),
        pytest.param(b"~: a", "KeyNotString", (1, 1), id="nothing as a key"),
        pytest.param(b"? [a]\n: b", "KeyNotString", (1, 3), id="a list as a key"),
        pytest.param(b"? {a: b}\n: b", "KeyNotString", (1, 3), id="a mapping as a key"),
        pytest.param(b"a: 9007199254740993", "NumberTooLarge", (1, 4), id="a number beyond 2^53"),
        pytest.param(b"a: -9007199254740993", "NumberTooLarge", (1, 4), id="a number below -2^53"),
        pytest.param(b"a: " + b"9" * 60_000, "NumberTooLarge", (1, 4), id="sixty thousand digits"),
        pytest.param(
            b"a: " + b"9" * 400 + b".0", "NumberTooLarge", (1, 4), id="a fraction beyond all doubles"
        ),
        pytest.param(b"", "EmptyDocument", (1, 1), id="no bytes"),
        pytest.param(b"# nothing\n", "EmptyDocument", (1, 1), id="only a comment"),
        pytest.param(b"---\n...\n", "EmptyDocument", (1, 1), id="only markers"),
        pytest.param(b"null", "EmptyDocument", (1, 1), id="only null"),
        pytest.param(b"a: 1\nb: \xff", "NotUtf8", (2, 4), id="a byte that is no UTF-8"),
        pytest.param("a: ü".encode("utf-16"), "NotUtf8", (1, 1), id="UTF-16"),
        pytest.param(b"\xed\xa0\x80", "NotUtf8", (1, 1), id="half a surrogate pair"),
        pytest.param(b"a: b\0c", "ForbiddenCharacter", (1, 5), id="a NUL"),
        pytest.param(b"a: 1\nb: \x1b[31m", "ForbiddenCharacter", (2, 4), id="a terminal escape"),
        pytest.param(b"a: 1\rb: 2", "ForbiddenCharacter", (1, 5), id="a carriage return that hides a line"),
        pytest.param("a: ab\u202ecd".encode(), "ForbiddenCharacter", (1, 6), id="a right-to-left override"),
        pytest.param("a: \u2066x\u2069".encode(), "ForbiddenCharacter", (1, 4), id="a directional isolate"),
        pytest.param(
            "a: 1 # \u200f".encode(), "ForbiddenCharacter", (1, 8), id="a directional mark in a comment"
        ),
        pytest.param(
            "a: x\u2028b: 1".encode(), "ForbiddenCharacter", (1, 5), id="a line break to some readers only"
        ),
        pytest.param("a: x\x85b: 1".encode(), "ForbiddenCharacter", (1, 5), id="the next-line control"),
        pytest.param("\ufeffa: 1".encode(), "ForbiddenCharacter", (1, 1), id="a byte order mark"),
        pytest.param(b'a: "\\u202e"', "ForbiddenCharacter", (1, 4), id="an override written as an escape"),
        pytest.param(b'a: "\\0"', "ForbiddenCharacter", (1, 4), id="a NUL written as an escape"),
        pytest.param("a: ad\u200ba".encode(), "ForbiddenCharacter", (1, 6), id="a space without width"),
        pytest.param("a: ad\u2060a".encode(), "ForbiddenCharacter", (1, 6), id="a joiner that nobody sees"),
        pytest.param("a: ad\u00ada".encode(), "ForbiddenCharacter", (1, 6), id="a soft hyphen"),
        pytest.param("a: \U000e0041x".encode(), "ForbiddenCharacter", (1, 4), id="a tag character"),
        pytest.param(
            b'a: "\\u200b"', "ForbiddenCharacter", (1, 4), id="an invisible one written as an escape"
        ),
        pytest.param(b'"\\e": 1', "ForbiddenCharacter", (1, 1), id="a control as an escape in a key"),
        pytest.param(b"a: b: c", "BadYaml", (1, 5), id="a mapping where none may be"),
        pytest.param(b"a: [1, 2\nb: 3", "BadYaml", (2, 2), id="a bracket that stays open"),
        pytest.param(b"a:\n\t- 1", "BadYaml", (2, 1), id="a tab that indents"),
        pytest.param(b'a: "open', "BadYaml", (1, 9), id="a quote that stays open"),
        pytest.param(b"a: @home", "BadYaml", (1, 4), id="a reserved indicator"),
        pytest.param(
            b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "TooDeep", (1, 33), id="lists nested too deep"
        ),
        pytest.param(b"[" * 60_000, "TooDeep", (1, 33), id="sixty thousand open brackets"),
        pytest.param(b"{a: " * 15_000, "TooDeep", (1, 129), id="fifteen thousand open braces"),
        pytest.param(b"- " * 30_000, "TooDeep", (1, 65), id="thirty thousand dashes on a line"),
        pytest.param(b"? " * 30_000, "KeyNotString", (1, 3), id="thirty thousand question marks"),
        pytest.param(b"-\n" * (MAX_NODES + 1), "TooManyValues", (1, 1), id="a list of too many values"),
        pytest.param(b"#" * (MAX_BYTES + 1), "TooLarge", (1, 1), id="one byte too many"),
        pytest.param(b"x" * 9_000_000, "TooLarge", (1, 1), id="nine megabytes"),
        pytest.param(b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]", "AnchorUsed", (1, 4), id="an alias bomb"),
    ],
)
def test_what_is_refused_and_where(data: bytes, rule: str, place: tuple[int, int]) -> None:
    with pytest.raises(Refused) as refusal:
        load(data)
    got = refusal.value
    assert (got.rule, (got.line, got.column)) == (rule, place)
    assert got.reason == rule
    assert got.message
    assert got.fix == BY_ID[rule].fix


def test_machine_written_files_may_be_larger() -> None:
    data = b"-\n" * (MAX_NODES + 1) + b"#" * MAX_BYTES
    assert load(data, 2 * MAX_BYTES) == [None] * (MAX_NODES + 1)


def test_bounds_are_reached_exactly() -> None:
    assert load(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert load(b"-\n" * MAX_NODES) == [None] * MAX_NODES
    assert load(b"a: b #" + b"#" * (MAX_BYTES - 6)) == {"a": "b"}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * MAX_BYTES, id="open brackets"),
        pytest.param(b"[a, " * (MAX_BYTES // 4), id="open brackets with entries"),
        pytest.param(b"a: " * (MAX_BYTES // 3), id="colons"),
        pytest.param(b"- " * (MAX_BYTES // 2), id="dashes"),
        pytest.param(b"\n" * MAX_BYTES, id="empty lines"),
        pytest.param(b"'" * MAX_BYTES, id="quotes"),
        pytest.param(b"a: |\n" + b" \n" * (MAX_BYTES // 2 - 5), id="a block of blanks"),
        pytest.param(b"".join(b"k%d:\n" % i for i in range(7000)), id="seven thousand keys"),
        pytest.param(b"[" + b"a," * (MAX_BYTES // 2 - 2) + b"]", id="thirty thousand entries"),
        pytest.param(b"".join(b"a%d: &a%d x\n" % (i, i) for i in range(3000)), id="anchors"),
        pytest.param(b"a: " + b"0" * (MAX_BYTES - 3), id="zeros"),
        pytest.param(b"a: " + b"1:" * (MAX_BYTES // 2 - 2), id="digits and colons"),
        pytest.param(b"a: " + b"1_" * (MAX_BYTES // 2 - 2), id="digits and underscores"),
        pytest.param(b"a: " + b"1." * (MAX_BYTES // 2 - 2) + b"x", id="digits and points"),
        *(
            pytest.param(
                b"a: " + (part * MAX_BYTES)[: MAX_BYTES - 8] + end, id=f"many {part!r} and then {end!r}"
            )
            for part in (b"9", b"0", b"1_", b"1:", b".1_", b"9.", b"2026-11-21 ", b"2026-11-21T08:00:00.0")
            for end in (b"x", b"e", b".x", b":x", b"_", b"e+x")
        ),
    ],
)
def test_no_input_takes_long(data: bytes) -> None:
    began = time.process_time()
    with suppress(Refused):
        load(data)
    assert time.process_time() - began < 2  # generous: it takes milliseconds


def outcome(data: bytes) -> object:
    try:
        return load(data)
    except Refused as refusal:
        return refusal


@given(
    st.binary(max_size=300)
    | st.text(max_size=200).map(str.encode)
    | st.text("[]{}:-,#&*!|>'\"%@? \n\tab01", max_size=120).map(str.encode)
)
@example(b"\xef\xbb\xbf")
@law(400)
def test_any_bytes_are_a_value_or_one_refusal(data: bytes) -> None:
    got = outcome(data)
    if isinstance(got, Refused):
        assert got.rule in BY_ID
        assert got.line >= 1
        assert got.column >= 1
    else:
        assert locate(data).values[()]
        assert got is not None


plain = st.text("yesnotrufalc0123456789._:-+eExXoObB~TZ ", min_size=1, max_size=12)


@given(plain)
@law(600)
def test_a_yaml_1_1_reader_understands_what_is_accepted_alike(text: str) -> None:
    """The reason for all refusals: whoever reads the file with another tool sees the same values."""
    data = f"a: {text}".encode()
    got = outcome(data)
    if isinstance(got, Refused):
        return
    if got != yaml.safe_load(data):
        # The one exception on purpose: a date-time with a zone, which every field that has one calls text.
        assert isinstance(got, dict)
        assert str(got["a"])[10] in "Tt"


def test_places_are_those_a_person_would_point_at() -> None:
    positions = locate(b"a: 1\nspec:\n  list:\n  - x\n  - {k: v}\n  'quoted': \"z\"\n")
    assert positions.value(("a",)) == (1, 4)
    assert positions.key(("spec", "list")) == (3, 3)
    assert positions.value(("spec", "list", 0)) == (4, 5)
    assert positions.value(("spec", "list", 1, "k")) == (5, 9)
    assert positions.key(("spec", "quoted")) == (6, 3)


def test_the_place_of_an_absent_value_is_that_of_what_should_hold_it() -> None:
    positions = locate(b"spec:\n  nodes: 1\n")
    assert positions.value(("spec", "model", "name")) == (2, 3)
    assert positions.key(("spec", "model")) == (2, 3)


def test_the_memory_of_scalars_is_bounded() -> None:
    for i in range(strict_yaml.KNOWN_SCALARS + 10):
        load(b"a: word%d" % i)
    assert len(strict_yaml._known) <= strict_yaml.KNOWN_SCALARS
