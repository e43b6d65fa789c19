"""Rows, batches and epochs: every pair is seen as often as it should be."""

from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st

from equitrans.data.batches import Renaming, Rows, by_form, by_pair, in_order, representative
from equitrans.data.pairs import Pair
from equitrans.data.scan import CLASSES, load_split
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.vocabulary import BOS, EOS, PAD
from worlds import SYMMETRIES, elements, moved, random_pairs, symmetry


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_rows_have_bos_and_eos_around_sources_and_eos_after_targets():
    rows = Rows.of([Pair(("walk", "and"), ("WALK",)), Pair(("run",), ())], symmetry())
    batch = rows.batch(torch.arange(2), rows.weight)
    walk, and_, run = (symmetry().source.index[w] for w in ("walk", "and", "run"))
    assert batch.source.tolist() == [[BOS, walk, and_, EOS], [BOS, run, EOS, PAD]]
    assert batch.target.tolist() == [[symmetry().target.index["WALK"], EOS], [EOS, PAD]]


@pytest.mark.parametrize("name", SYMMETRIES)
def test_there_is_one_row_per_orbit_weighted_by_its_number_of_pairs(name):
    world = SYMMETRIES[name]
    pairs = random_pairs(1, 20)
    pairs += [q for g in elements(world) for q in moved(pairs[:5], g, world)]
    rows = Rows.of(pairs, world)
    keys = [representative(world, world.source.encode(x), world.target.encode(y)) for x, y in pairs]
    assert len(rows.weight) == len(set(keys))
    assert rows.weight.sum() == len(pairs)
    counts = Counter(rows.row.tolist())
    assert [counts[i] for i in range(len(rows.weight))] == rows.weight.tolist()


@pytest.mark.parametrize("name", SYMMETRIES)
def test_rows_of_one_form_are_adjacent_and_have_the_same_classes(name):
    world = SYMMETRIES[name]
    pairs = random_pairs(2, 40, longest=2)
    rows = Rows.of(pairs, world)
    assert rows.form.diff().min() >= 0
    batch = rows.batch(torch.arange(len(rows.weight)), rows.weight)
    for side, classes in (
        (batch.source, world.source_classes),
        (batch.target, world.target_classes),
    ):
        numbers = torch.tensor(classes)[side]
        assert torch.equal(numbers, numbers[batch.first][batch.form])
    forms = {
        (tuple(world.source_classes[w] for w in x), tuple(world.target_classes[w] for w in y))
        for x, y in ((world.source.encode(x), world.target.encode(y)) for x, y in pairs)
    }
    assert rows.n_forms == len(batch.first) == len(forms)


@given(st.integers(0, 99), st.integers(1, 7))
def test_an_epoch_of_forms_has_every_form_once_with_all_its_pairs_and_equal_weight(seed, size):
    rows = Rows.of(random_pairs(seed, 30, longest=2), SYMMETRIES["verbs × turns"])
    seen, weight = [], torch.zeros(())
    for batch in by_form(rows, forms=size, generator=generator(seed)):
        assert len(batch.first) <= size
        by_form_weight = torch.zeros(len(batch.first)).index_add_(0, batch.form, batch.weight)
        torch.testing.assert_close(by_form_weight, torch.ones(len(batch.first)))
        weight = weight + batch.weight.sum()
        seen += [(s, t) for s, t in zip(strip(batch.source), strip(batch.target), strict=True)]
    assert round(float(weight)) == rows.n_forms
    assert Counter(seen) == Counter(zip(strip(rows.source), strip(rows.target), strict=True))


@given(st.integers(0, 99), st.integers(1, 9))
def test_an_epoch_of_pairs_has_every_pair_once(seed, size):
    pairs = random_pairs(seed, 30, longest=2)
    rows = Rows.of(pairs, SYMMETRIES["verbs"])
    seen: Counter = Counter()
    for batch in by_pair(rows, pairs=size, generator=generator(seed)):
        assert batch.weight.tolist() == [1.0] * len(batch.source)  # nothing is merged
        assert batch.form.tolist() == batch.first.tolist() == list(range(len(batch.source)))
        assert len(batch.source) <= size
        for s, t, w in zip(strip(batch.source), strip(batch.target), batch.weight, strict=True):
            seen[s, t] += int(w)
    expected: Counter = Counter()
    for s, t, w in zip(strip(rows.source), strip(rows.target), rows.weight, strict=True):
        expected[s, t] += int(w)
    assert seen == expected


def test_the_seed_decides_the_order_of_batches():
    rows = Rows.of(random_pairs(3, 60), SYMMETRIES["verbs"])

    def order(seed):
        return [strip(b.source) for b in by_form(rows, forms=4, generator=generator(seed))]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_batches_mix_short_and_long_forms_without_columns_of_padding():
    split = load_split("simple_p4")
    rows = Rows.of(split.train, Symmetry.of(CLASSES["both"], split.train))
    ranges = []
    for batch in by_form(rows, forms=8, generator=generator()):
        assert (batch.target[:, -1] != PAD).any()
        assert (batch.source[:, -1] != PAD).any()
        lengths = (batch.target != PAD).sum(1)
        ranges.append(int(lengths.max() - lengths.min()))
    assert sum(ranges) / len(ranges) > 8


def test_add_jump_has_3081_forms_with_verbs_and_903_with_both_classes():
    split = load_split("add_jump")
    assert Rows.of(split.train, Symmetry.of(CLASSES["verbs"], split.train)).n_forms == 3081
    assert Rows.of(split.train, Symmetry.of(CLASSES["both"], split.train)).n_forms == 903


def test_in_order_yields_every_row_once():
    rows = Rows.of(random_pairs(4, 50), SYMMETRIES["verbs"])
    batches = list(in_order(rows, rows=7))
    assert sum(len(b.weight) for b in batches) == len(rows.weight)
    assert sum(float(b.weight.sum()) for b in batches) == 50


@pytest.mark.parametrize("name", SYMMETRIES)
@given(seed=st.integers(0, 10**6))
def test_all_pairs_of_an_orbit_have_one_representative_in_it(name, seed):
    world = SYMMETRIES[name]
    (pair,) = random_pairs(seed, 1)

    def encoded(p):
        return world.source.encode(p[0]), world.target.encode(p[1])

    orbit = {encoded(moved([pair], g, world)[0]) for g in elements(world)}
    found = representative(world, *encoded(pair))
    assert found in orbit
    assert {representative(world, *member) for member in orbit} == {found}


@pytest.mark.parametrize("name", SYMMETRIES)
@given(seed=st.integers(0, 10**6))
def test_a_renaming_can_be_undone_also_for_words_that_did_not_appear(name, seed):
    world = SYMMETRIES[name]
    ((source, _), (_, target)) = random_pairs(seed, 2)
    renaming = Renaming(world)
    renaming.source(world.source.encode(source))
    # a group element takes the prediction for the representative to that for the original
    said = world.target.encode(target)
    undone = renaming.original_target(said)
    orbit = {world.target_action(g, said) for g in elements(world)}
    assert undone in orbit
    again = Renaming(world)
    again.source(world.source.encode(source))
    moved_classes = [c for c in world.classes if set(c.source) & set(source)]
    known = [w for c in moved_classes for w in c.target if c.source[c.target.index(w)] in source]
    for word in known:
        (number,) = world.target.encode((word,))
        assert again.original_target(again.target((number,))) == (number,)


def strip(rows):
    return [tuple(w for w in row if w != PAD) for row in rows.tolist()]
