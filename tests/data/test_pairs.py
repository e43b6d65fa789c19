"""Pairs: reading, writing, holding out."""

import pytest
from hypothesis import given, strategies as st

from equitrans.data.pairs import Pair, as_pairs, format_scan, format_tsv, hold_out, read_pairs
from equitrans.errors import ConfigError, DataError
from equitrans.files import normalized, write_atomically

words = st.text(
    st.characters(categories=("L", "N", "P"), exclude_characters="\x85\u2028"),
    min_size=1,
    max_size=4,
).map(normalized)
sentences = st.lists(words, min_size=1, max_size=4).map(tuple)
pair_lists = st.lists(st.builds(Pair, sentences, sentences), min_size=1, max_size=5)


@given(pair_lists)
def test_pairs_written_as_tsv_are_read_unchanged(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("pairs") / "p.tsv"
    path.write_bytes(format_tsv(pairs).encode())
    if not any(p.source[0].startswith("IN:") for p in pairs[:1]):
        assert read_pairs(path) == tuple(pairs)


def test_scan_s_format_is_recognised(tmp_path):
    path = tmp_path / "tasks.txt"
    pairs = (Pair(("walk", "left"), ("L", "W")), Pair(("walk",), ("W",)))
    path.write_text(format_scan(pairs))
    assert path.read_text().startswith("IN: walk left OUT: L W\n")
    assert read_pairs(path) == pairs


def test_windows_line_ends_byte_order_marks_blank_lines_and_empty_targets_are_read(tmp_path):
    path = tmp_path / "p.tsv"
    path.write_bytes("\ufeffa b\tA\r\n\r\nc\t\r\n".encode())
    assert read_pairs(path) == (Pair(("a", "b"), ("A",)), Pair(("c",), ()))


def test_characters_can_be_words(tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("ab\tx y\n")
    assert read_pairs(path, characters=True) == (Pair(("a", "b"), ("x", " ", "y")),)
    assert format_tsv(read_pairs(path, characters=True), characters=True) == "ab\tx y\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tA\nb B\n", ":2: expected source<TAB>target, got no TAB in 'b B'"),
        (b"a,A\nb,B\n", ":1: expected source<TAB>target, got no TAB in 'a,A'; is this CSV?"),
        (b"a\tA\na\tA\tx\n", ":2: expected source<TAB>target, got 3 columns in 'a\\tA\\tx'"),
        (b"a\tA\tx\na\tA\n", ":2: expected 3 columns as in line 1, got 2 columns in 'a\\tA'"),
        (b"IN: a OUT: A\nwalk\n", ":2: expected 'IN: … OUT: …', got 'walk'"),
        (b"IN: a OUT: A OUT: B\n", ":1: expected 'IN: … OUT: …'"),
        (b"a\tA\n\tB\n", ":2: the source is empty"),
        (b"a\tA\n\xff\tB\n", ":2: not UTF-8"),
        (b"\n\n", ": no pairs"),
        (b"", ": no pairs"),
    ],
)
def test_a_malformed_line_raises_with_file_and_line_number(tmp_path, content, message):
    path = tmp_path / "p.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_pairs(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_further_columns_are_ignored_and_columns_can_be_chosen(tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("a b\tA B\tplain\nc\tC\tlong one\n")
    assert read_pairs(path) == (Pair(("a", "b"), ("A", "B")), Pair(("c",), ("C",)))
    chosen = read_pairs(path, columns="3,2")
    assert chosen == (Pair(("plain",), ("A", "B")), Pair(("long", "one"), ("C",)))
    path.write_text("a\tA\nb\tB\tx\n")
    assert read_pairs(path, columns="1,2") == (Pair(("a",), ("A",)), Pair(("b",), ("B",)))
    with pytest.raises(DataError, match=":1: expected 3 columns, got 2 columns"):
        read_pairs(path, columns="1,3")


@pytest.mark.parametrize("columns", ["", "1", "0,1", "1,1", "1,2,3", "a,b", "1, 2", "99999,1"])
def test_invalid_columns_raise_an_error(tmp_path, columns):
    path = tmp_path / "p.tsv"
    path.write_text("a\tA\n")
    with pytest.raises(ConfigError, match="expected the numbers of two columns, such as 1,2"):
        read_pairs(path, columns=columns)


def test_scan_s_format_has_no_columns(tmp_path):
    path = tmp_path / "tasks.txt"
    path.write_text("IN: walk OUT: W\n")
    with pytest.raises(ConfigError, match="which has no columns"):
        read_pairs(path, columns="1,2")


def test_pairs_are_read_from_lines_of_bytes():
    assert read_pairs([b"a\tA\n", b"b\tB"]) == (Pair(("a",), ("A",)), Pair(("b",), ("B",)))
    with pytest.raises(DataError, match=r"^line 2: expected source<TAB>target"):
        read_pairs([b"a\tA\n", b"b"])


@pytest.mark.parametrize(
    "pair",
    ["ab", 5, None, ("a",), ("a", "b", "c"), ("", "A"), (5, "A"), ("a", [5]), (["a", ""], "")],
)
def test_a_value_that_is_not_a_pair_raises_with_its_position(pair):
    with pytest.raises(DataError, match=r"^pair 2 is .*; expected a source and a target"):
        as_pairs(iter([("a", "A"), pair]))  # run-time type checks do not look into iterators


def many(n):
    return [Pair((f"w{i % 7}", f"v{i % 11}"), ("T",) * (i % 9 + 1)) for i in range(n)]


@given(st.integers(0, 99), st.integers(10, 200))
def test_a_tenth_of_the_distinct_pairs_is_held_out_and_copies_stay_together(seed, n):
    pairs = many(n) + many(n)[:3] * 50
    train, valid = hold_out(pairs, fraction=0.1, how="random", seed=seed)
    assert len(valid) == len(set(valid)) <= round(0.1 * len(set(pairs)))
    assert not set(train) & set(valid)
    assert len(train) + sum(pairs.count(p) for p in valid) == len(pairs)
    assert hold_out(pairs, fraction=0.1, how="random", seed=seed) == (train, valid)
    for side in (0, 1):
        assert {w for p in train for w in p[side]} == {w for p in pairs for w in p[side]}


def test_a_word_seen_once_is_never_held_out():
    pairs = [*many(40), Pair(("jump",), ("JUMP",))]
    for seed in range(50):
        _, valid = hold_out(pairs, fraction=0.3, how="random", seed=seed)
        assert Pair(("jump",), ("JUMP",)) not in valid


def test_different_seeds_hold_out_different_pairs():
    draws = {hold_out(many(150), fraction=0.1, how="random", seed=s)[1] for s in range(5)}
    assert len(draws) == 5


def test_hold_out_longest_takes_the_pairs_with_the_longest_targets():
    train, valid = hold_out(many(77), fraction=0.1, how="longest", seed=0)
    assert len(valid) == 8
    assert min(len(p.target) for p in valid) >= max(len(p.target) for p in train)


def test_fewer_than_ten_pairs_are_all_for_training():
    pairs = many(9)
    assert hold_out(pairs, fraction=0.5, how="random", seed=0) == (tuple(pairs), ())


def test_a_failed_write_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "f"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
