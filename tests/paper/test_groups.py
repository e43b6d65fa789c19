"""Groups, actions, and orbits of pairs of points (§3.1, definitions 1–6)."""

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from equitrans.errors import SymmetryError
from equitrans.paper.groups import Action, Group, compose, cycles, identity
from listed import inverse, orbits, regular

GROUPS = [
    Group.trivial(),
    Group.trivial(3),
    Group.cyclic(1),
    Group.cyclic(2),
    Group.cyclic(5),
    Group.symmetric(3),
    Group.symmetric(4),
    Group.cyclic(4) * Group.cyclic(2),
    Group.symmetric(3) * Group.cyclic(2) * Group.cyclic(3),
]
groups = st.sampled_from(GROUPS)


@given(groups, st.data())
def test_groups_have_closure_identity_inverses_and_associativity(group, data):
    g, h, k = (data.draw(st.sampled_from(group.elements)) for _ in range(3))
    e = identity(group.degree)
    assert group.elements[0] == e
    assert compose(g, h) in group.elements
    assert compose(e, g) == g == compose(g, e)
    assert inverse(g) in group.elements
    assert compose(g, inverse(g)) == e == compose(inverse(g), g)
    assert compose(compose(g, h), k) == compose(g, compose(h, k))


@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_the_order_is_the_number_of_elements(group):
    assert len(set(group.elements)) == len(group.elements) == group.order


@pytest.mark.parametrize("n", range(5))
def test_symmetric_groups_have_all_permutations_and_cyclic_groups_all_shifts(n):
    assert set(Group.symmetric(n).elements) == set(itertools.permutations(range(n)))
    shifts = {tuple((i + shift) % n for i in range(n)) for shift in range(max(n, 1))}
    assert set(Group.cyclic(n).elements) == shifts


def test_the_paper_s_examples_in_cycle_notation():
    assert {cycles(g) for g in Group.symmetric(3)} == {
        "()",
        "(12)",
        "(13)",
        "(23)",
        "(123)",
        "(132)",
    }
    assert {cycles(g) for g in Group.cyclic(3)} == {"()", "(123)", "(132)"}
    assert [cycles(g) for g in Group.cyclic(4)] == ["()", "(1234)", "(13)(24)", "(1432)"]
    assert cycles(Group.cyclic(9).elements[1]) == "(123456789)"
    assert cycles(Group.cyclic(10).elements[1]) == "(1 2 3 4 5 6 7 8 9 10)"
    assert repr(Group.trivial()) == "⟨()⟩"


def test_listing_a_large_group_raises_an_error():
    group = Group.symmetric(30)
    assert group.order == math.factorial(30)
    assert len(group.generators) == 2
    with pytest.raises(SymmetryError, match="use its generators"):
        _ = group.elements


@given(groups, st.data())
def test_an_action_respects_identity_and_composition_and_fixes_other_words(group, data):
    size = group.degree + 3
    places = tuple(data.draw(st.permutations(range(size)))[: group.degree])
    act = Action(group, places, size)
    g, h = (data.draw(st.sampled_from(group.elements)) for _ in range(2))
    sentence = data.draw(st.lists(st.integers(0, size - 1), max_size=6))
    assert act(identity(group.degree), sentence) == tuple(sentence)
    assert act(compose(g, h), sentence) == act(g, act(h, sentence))
    fixed = [word for word in range(size) if word not in places]
    assert act(g, fixed) == tuple(fixed)


@pytest.mark.parametrize("group", GROUPS, ids=repr)
def test_orbits_of_a_group_and_its_points_are_quotients(group):
    """(g, x) and (e, g⁻¹∘x) share an orbit, so the shared weights are the paper's ω(g⁻¹∘x)."""
    table = orbits(regular(group), group.generators)
    for i, g in enumerate(group.elements):
        assert table[i] == [table[0][inverse(g)[x]] for x in range(group.degree)]
    # no two points share a weight
    assert sorted(table[0]) == list(range(group.degree))


def test_a_large_symmetric_group_has_two_orbits_of_pairs():
    table = orbits(Group.symmetric(40).generators, Group.symmetric(40).generators)
    for i, row in enumerate(table):
        assert [j for j, orbit in enumerate(row) if orbit == table[0][0]] == [i]
        assert len(set(row)) == 2


@pytest.mark.parametrize(
    "group",
    [
        Group.cyclic(2) * Group.cyclic(2),
        Group.trivial(1) * Group.cyclic(3),
        Group.symmetric(3) * Group.trivial(2),
    ],
    ids=repr,
)
def test_orbits_of_pairs_agree_with_applying_every_element(group):
    numbers: dict[tuple[int, int], int] = {}
    for i, j in itertools.product(range(group.degree), repeat=2):
        if (i, j) not in numbers:
            new = len(set(numbers.values()))
            numbers |= {(g[i], g[j]): new for g in group.elements}
    points = range(group.degree)
    expected = [[numbers[i, j] for j in points] for i in points]
    assert orbits(group.generators, group.generators) == expected
