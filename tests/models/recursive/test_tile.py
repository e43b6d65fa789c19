"""Right sides under which the parts of a left side yield a target, against brute force."""

from itertools import product

import pytest
from hypothesis import given, strategies as st

from equitrans.models.recursive import tile as tiling
from equitrans.models.recursive.rules import CONSTANTS, HOLE, constant, constant_word
from equitrans.models.recursive.tile import Budget, tile

A, B, C = 3, 4, 5
GO, STOP = constant(0), constant(1)


def own(atoms, span):
    """The atoms that may come from a span: its positions and every constant."""
    return "".join(a for a in atoms if span[0] <= ord(a) < span[1] or ord(a) >= CONSTANTS)


def pieces(part, span, yields, target):
    """All possible yields of a part; for an unknown hole, the possible numbers of words."""
    if part != HOLE:
        return [chr(span[0])]
    if span in yields:
        return [piece for piece in yields[span] if piece]
    return list(range(1, len(target) + 1))


def goals_of(right, chosen, spans, target):
    """The goals of a right side whose parts yield the chosen pieces; None if the pieces do not
    yield the target.
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
    """All right sides; only a left side with a word allows constants."""
    symbols = [*range(len(left))]
    if any(s != HOLE for s in left):
        words = {constant_word(a) for atoms in target for a in atoms} - {None}
        symbols += [~word for word in words]
    return [right for n in range(longest + 1) for right in product(symbols, repeat=n)]


def brute(left, spans, target, yields, rights):
    """The right sides that yield the target, with their goals, by enumeration."""
    found = set()
    for right in rights:
        used = sorted({k for k in right if k >= 0})
        choices = [pieces(left[k], spans[k], yields, target) for k in used]
        for chosen in product(*choices):
            goals = goals_of(right, dict(zip(used, chosen, strict=True)), spans, target)
            if goals is not None:
                found.add((right, goals))
    return found


# left sides over five positions, with the known yields of their holes
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
    monkeypatch.setattr(tiling, "MAX_TILINGS", 10_000)
    monkeypatch.setattr(tiling, "MAX_TRIES", 10_000)


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("number", range(len(PARTS)))
def test_tilings_of_an_unambiguous_target_agree_with_brute_force(number):
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
def test_tilings_of_an_ambiguous_target_agree_with_brute_force(number, target):
    left, spans, yields = PARTS[number]
    found, _ = tile(left, spans, target, yields, longest=4)
    rights = every_right(left, target, 4)
    assert {(t.right, t.goals) for t in found} == brute(left, spans, target, yields, rights)


@pytest.mark.usefixtures("unlimited")
def test_a_hole_before_an_open_word_may_yield_a_part_of_its_run():
    """The last word may also come from elsewhere, so the words before are not copies."""
    left, spans, yields = PARTS[1]
    target = ("\1", "\2\3")
    found, _ = tile(left, spans, target, yields, longest=2)
    assert {t.right for t in found} == {(0,), (0, 1)}


def test_an_unknown_hole_yields_only_words_that_may_come_from_its_span():
    hole, word = (0, 2), (2, 3)
    found, _ = tile((HOLE, B), (hole, word), ("\0\2", "\2"), {}, longest=2)
    assert [(t.right, t.goals) for t in found] == [((0, 1), ((0, 2, ("\0",)),)), ((1, 1), ())]
    found, _ = tile((HOLE, B), (hole, word), ("\0\1\2", "\0\1"), {}, longest=2)
    assert {(t.right, t.goals) for t in found} == {
        ((0,), ((0, 2, ("\0\1", "\0\1")),)),
        ((0, 0), ((0, 2, ("\0\1",)),)),
        ((1, 0), ((0, 2, ("\0\1",)),)),
    }


def test_the_yield_of_a_hole_ends_before_a_word_from_elsewhere():
    found, _ = tile((HOLE, B, C), ((0, 1), (1, 2), (2, 3)), ("\0", "\1\2", "\0"), {}, longest=3)
    goals = ((0, 1, ("\0",)),)
    assert {(t.right, t.goals) for t in found} == {((0, 1, 0), goals), ((0, 2, 0), goals)}


def test_an_unknown_hole_used_twice_yields_the_same_twice():
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


def test_a_constant_after_a_hole_comes_from_the_hole_or_from_the_rule():
    found, _ = tile((HOLE, B), ((0, 1), (1, 2)), ("\0", GO), {}, longest=2)
    assert {(t.right, t.goals) for t in found} == {
        ((0,), ((0, 1, ("\0", GO)),)),
        ((0, ~0), ((0, 1, ("\0",)),)),
    }


# --- a given right side


@pytest.mark.usefixtures("unlimited")
@given(parts, plain, st.lists(st.sampled_from([0, 1, ~0, ~1]), min_size=1, max_size=3).map(tuple))
def test_goals_of_a_given_right_side_agree_with_brute_force(number, target, right):
    left, spans, yields = PARTS[number]
    right = tuple(min(k, len(left) - 1) for k in right)
    found, _ = tile(left, spans, target, yields, right=right, longest=len(right))
    assert {(t.right, t.goals) for t in found} == brute(left, spans, target, yields, [right])


def test_a_given_right_side_must_match_the_whole_target():
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


# --- limits


def test_the_number_of_tilings_is_limited(monkeypatch):
    target, spans = ("\0\1",) * 3, ((0, 1), (1, 2))
    every, _ = tile((A, B), spans, target, {}, longest=3)
    assert [t.right for t in every] == list(product((0, 1), repeat=3))
    for most in (1, 7, 8):
        monkeypatch.setattr(tiling, "MAX_TILINGS", most)
        assert tile((A, B), spans, target, {}, longest=3)[0] == every[:most]


@given(
    st.lists(st.sampled_from(["\0", "\1", GO, STOP]), min_size=1, max_size=5), st.integers(0, 30)
)
def test_a_budget_keeps_the_right_sides_that_it_pays_for(target, room):
    left, spans = (A, HOLE), ((0, 1), (1, 2))
    bits = {True: 3.0, False: 5.0}
    every, _ = tile(left, spans, tuple(target), {}, longest=5)
    found, _ = tile(
        left, spans, tuple(target), {}, longest=5, budget=Budget(room, bits[True], bits[False])
    )
    paid = [t for t in every if sum(bits[k >= 0] for k in t.right) <= room]
    assert found == paid or len(every) == tiling.MAX_TILINGS


def test_the_yield_of_a_hole_has_all_words_of_its_span():
    # words 0 and 1 come from the hole, so it yields both, once
    found, tries = tile((HOLE, B), ((0, 2), (2, 3)), ("\0", GO, "\1"), {}, longest=3)
    assert [t.right for t in found] == [(0,)]
    assert tries == 2
