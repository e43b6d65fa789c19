"""Right sides that make a target of the parts of a left side, against brute force."""

from itertools import product

import pytest
from hypothesis import given, strategies as st

from equitrans.models.recursive import tile as tiling
from equitrans.models.recursive.rules import CONSTANTS, HOLE, constant, constant_word
from equitrans.models.recursive.tile import tile

A, B, C = 3, 4, 5
GO, STOP = constant(0), constant(1)


def own(atoms, span):
    """What a span may give of some atoms: its positions and every constant."""
    return "".join(a for a in atoms if span[0] <= ord(a) < span[1] or ord(a) >= CONSTANTS)


def pieces(part, span, yields, target):
    """Everything that a part may stand for: for an unknown hole, only the number of words."""
    if part != HOLE:
        return [chr(span[0])]
    if span in yields:
        return [piece for piece in yields[span] if piece]
    return list(range(1, len(target) + 1))


def goals_of(right, chosen, spans, target):
    """The goals that a right side leaves if its parts stand for the chosen pieces; None if they
    do not make the target.
    """
    at, unknown = 0, {}
    for k in right:
        piece = constant(~k) if k < 0 else chosen[k]
        size = piece if isinstance(piece, int) else len(piece)
        here = target[at : at + size]
        at += size
        if len(here) < size:
            return None
        if isinstance(piece, str):
            if not all(a in atoms for a, atoms in zip(piece, here, strict=True)):
                return None
        else:
            here = [own(atoms, spans[k]) for atoms in here]
            known = unknown.setdefault(k, here)
            unknown[k] = ["".join(a for a in x if a in y) for x, y in zip(known, here, strict=True)]
            if not all(unknown[k]):
                return None
    if at != len(target):
        return None
    return tuple((*spans[k], tuple(unknown[k])) for k in sorted(unknown))


def every_right(left, target, longest):
    """All right sides; one writes constants if it has a word to write them for."""
    symbols = [*range(len(left))]
    if any(s != HOLE for s in left):
        words = {constant_word(a) for atoms in target for a in atoms} - {None}
        symbols += [~word for word in words]
    return [right for n in range(longest + 1) for right in product(symbols, repeat=n)]


def brute(left, spans, target, yields, rights):
    """The right sides that make the target, with all goals they leave, one by one."""
    found = set()
    for right in rights:
        used = sorted({k for k in right if k >= 0})
        choices = [pieces(left[k], spans[k], yields, target) for k in used]
        for chosen in product(*choices):
            goals = goals_of(right, dict(zip(used, chosen, strict=True)), spans, target)
            if goals is not None:
                found.add((right, goals))
    return found


# the left sides: words and holes over five positions, with what is known of the holes
PARTS = [
    ((A,), ((2, 3),), {}),
    ((HOLE, B), ((0, 3), (3, 4)), {}),
    ((HOLE, B), ((0, 3), (3, 4)), {(0, 3): {"\1": 0, "\1\0": 0, "": 0}}),
    ((HOLE, HOLE), ((0, 2), (2, 4)), {}),
    ((HOLE, B, HOLE), ((0, 2), (2, 3), (3, 5)), {(0, 2): {"\0": 0, "\1" + GO: 0}}),
    ((A, HOLE), ((0, 1), (1, 4)), {(0, 1): {"\0": 0}}),
]
parts = st.sampled_from(range(len(PARTS)))
plain = st.lists(st.sampled_from(["\0", "\1", "\2", "\3", "\4", GO, STOP]), max_size=4).map(tuple)


@pytest.fixture
def unlimited(monkeypatch):
    monkeypatch.setattr(tiling, "FOUND", 10_000)
    monkeypatch.setattr(tiling, "TRIES", 10_000)


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("number", range(len(PARTS)))
def test_all_right_sides_that_make_a_target_are_found(number):
    left, spans, yields = PARTS[number]

    @given(plain, st.integers(0, 4))
    def check(target, longest):
        found, _ = tile(left, spans, target, yields, longest=longest)
        assert len(found) == len(set(found))
        rights = every_right(left, target, longest)
        assert {(t.right, t.goals) for t in found} == brute(left, spans, target, yields, rights)

    check()


OPEN = ["\0\1", "\3\4", "\0" + "\1" + "\2", "\2", GO]


@pytest.mark.usefixtures("unlimited")
@given(st.sampled_from([1, 2, 3, 4]), st.lists(st.sampled_from(OPEN), max_size=4).map(tuple))
def test_what_is_found_for_an_open_target_makes_it(number, target):
    left, spans, yields = PARTS[number]
    found, _ = tile(left, spans, target, yields, longest=4)
    rights = every_right(left, target, 4)
    assert {(t.right, t.goals) for t in found} <= brute(left, spans, target, yields, rights)


def test_an_unknown_hole_may_take_the_words_that_are_open_to_it():
    hole, word = (0, 2), (2, 3)
    found, _ = tile((HOLE, B), (hole, word), ("\0\2", "\2"), {}, longest=2)
    assert [(t.right, t.goals) for t in found] == [((0, 1), ((0, 2, ("\0",)),)), ((1, 1), ())]
    found, _ = tile((HOLE, B), (hole, word), ("\0\1\2", "\0\1"), {}, longest=2)
    assert {(t.right, t.goals) for t in found} == {
        ((0,), ((0, 2, ("\0\1", "\0\1")),)),
        ((0, 0), ((0, 2, ("\0\1",)),)),
        ((1, 0), ((0, 2, ("\0\1",)),)),
    }


def test_a_word_that_cannot_come_from_a_hole_ends_what_the_hole_may_take():
    found, _ = tile((HOLE, B, C), ((0, 1), (1, 2), (2, 3)), ("\0", "\1\2", "\0"), {}, longest=3)
    goals = ((0, 1, ("\0",)),)
    assert {(t.right, t.goals) for t in found} == {((0, 1, 0), goals), ((0, 2, 0), goals)}


def test_an_unknown_hole_named_twice_means_the_same_twice():
    target = ("\0\1", "\0", "\1", "\0\1")
    found, _ = tile((HOLE, B), ((0, 2), (2, 3)), target, {}, longest=2)
    assert {(t.right, t.goals) for t in found} == {
        ((0,), ((0, 2, target),)),
        ((0, 0), ((0, 2, ("\1", "\0")),)),
    }
    target = ("\0", "\0", "\1", "\0\1")
    found, _ = tile((HOLE, B), ((0, 2), (2, 3)), target, {}, longest=2)
    assert {(t.right, t.goals) for t in found} == {((0,), ((0, 2, target),))}


def test_only_a_rule_with_a_word_writes_constants():
    found, _ = tile((HOLE, HOLE), ((0, 1), (1, 2)), ("\0", GO), {(0, 1): {"\0": 0}}, longest=2)
    assert {(t.right, t.goals) for t in found} == {((0, 1), ((1, 2, (GO,)),))}
    found, _ = tile((A, B), ((0, 1), (1, 2)), ("\0", GO), {}, longest=2)
    assert [t.right for t in found] == [(0, ~0)]


def test_a_constant_after_a_hole_is_of_the_hole_or_of_the_rule():
    found, _ = tile((HOLE, B), ((0, 1), (1, 2)), ("\0", GO), {}, longest=2)
    assert {(t.right, t.goals) for t in found} == {
        ((0,), ((0, 1, ("\0", GO)),)),
        ((0, ~0), ((0, 1, ("\0",)),)),
    }


# --- a right side that is given


@pytest.mark.usefixtures("unlimited")
@given(parts, plain, st.lists(st.sampled_from([0, 1, ~0, ~1]), min_size=1, max_size=3).map(tuple))
def test_a_given_right_side_leaves_the_goals_of_brute_force(number, target, right):
    left, spans, yields = PARTS[number]
    right = tuple(min(k, len(left) - 1) for k in right)
    found, _ = tile(left, spans, target, yields, right=right, longest=len(right))
    assert {(t.right, t.goals) for t in found} == brute(left, spans, target, yields, [right])


def test_a_given_right_side_is_taken_whole_or_not_at_all():
    left, spans = (A, B), ((0, 1), (1, 2))
    target = ("\0", GO, "\1")
    for right, fits in {
        (0, ~0, 1): True,
        (0, ~1, 1): False,
        (0, ~0): False,
        (1, ~0, 0): False,
        (0, ~0, 1, 1): False,
    }.items():
        found, _ = tile(left, spans, target, {}, right=right, longest=len(right))
        assert [t.right for t in found] == [right] * fits
    found, _ = tile(left, spans, (STOP, GO), {}, right=(~1, ~0), longest=2)
    assert [t.right for t in found] == [(~1, ~0)]


# --- how much is tried


def test_every_word_placed_is_one_try_and_so_is_the_end():
    for words in range(5):
        found, tries = tile((A,), ((0, 1),), (GO,) * words, {}, longest=9)
        assert [t.right for t in found] == [(~0,) * words]
        assert tries == words + 1


def test_of_words_that_are_all_of_a_hole_only_the_whole_and_its_copies_are_tried():
    for target, tries in {("\0", "\1", "\2", "\3"): 2, ("\0", "\1", "\0", "\1"): 3}.items():
        found = tile((HOLE, B), ((0, 4), (4, 5)), target, {}, longest=1)
        assert found == ([((0,), ((0, 4, target),))], tries)


def test_as_many_tries_as_allowed_are_enough_and_one_fewer_is_not(monkeypatch):
    for allowed, right in {4: [], 5: [(~0,) * 4], 6: [(~0,) * 4]}.items():
        monkeypatch.setattr(tiling, "TRIES", allowed)
        found, _ = tile((A,), ((0, 1),), (GO,) * 4, {}, longest=9)
        assert [t.right for t in found] == right


def test_no_more_right_sides_are_given_than_allowed(monkeypatch):
    target, spans = ("\0\1",) * 3, ((0, 1), (1, 2))
    every, _ = tile((A, B), spans, target, {}, longest=3)
    assert [t.right for t in every] == list(product((0, 1), repeat=3))
    for most in (1, 7, 8):
        monkeypatch.setattr(tiling, "FOUND", most)
        assert tile((A, B), spans, target, {}, longest=3)[0] == every[:most]
