"""Classes as tables: theorems 1 to 4 over random tables, brute force, negative controls."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from equitrans.data.batches import Rows, representative
from equitrans.errors import SymmetryError
from equitrans.lexical import PLACES, LexicalClass, is_filler
from equitrans.models import TableTranslator, build
from equitrans.models.configs import GordonConfig
from equitrans.paper.aligner import Aligner
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.transducer import Transducer
from equitrans.paper.translator import Translator
from equitrans.testing import assert_equivariant
from plain import PlainTransducer
from worlds import assert_close, elements, moved, pairs_of, random_tables, small, unshared

SEEDS = range(6)
every_table = pytest.mark.parametrize("seed", SEEDS)
every_kind = pytest.mark.parametrize("kind", ["cyclic", "symmetric"])


def translator_of(symmetry, which):
    torch.manual_seed(1)
    if which == "stack":
        return Translator(symmetry, k=5, d=4).double()
    table = TableTranslator(symmetry).double()
    with torch.no_grad():
        table.logits.copy_(torch.randn(len(table.logits)))
    return table


def random_model(symmetry, seed, translator):
    model = small(symmetry, seed, translator=translator)
    if translator == "table":
        with torch.no_grad():  # a new table gives all words the same probability
            model.translator.logits.normal_()
    return model


def deviation(model, symmetry, pairs):
    """The largest relative change of −log p along an orbit."""
    start = model.loss(unshared(pairs, symmetry))
    others = (model.loss(unshared(moved(pairs, g, symmetry), symmetry)) for g in elements(symmetry))
    return max(float(((other - start) / start).abs().max().detach()) for other in others)


def test_the_group_moves_all_columns_of_a_row_at_once():
    nouns = LexicalClass("nouns", ("dog", "cat"), ("DOG", "CAT"), (("plural", ("dogs", "cats")),))
    symmetry = Symmetry.of([nouns], [])
    swap = (1, 0)
    moves = symmetry.source_action(swap, symmetry.source.encode(("dog", "cats", "dogs")))
    assert symmetry.source.decode(moves) == ("cat", "dogs", "cats")
    assert symmetry.template(("dog", "cats")) == ("<nouns>", "<nouns.plural>")
    assert symmetry.group.order == 2


@every_table
@every_kind
def test_the_action_on_a_table_is_an_action(seed, kind):
    symmetry = random_tables(seed, kind=kind)
    for action in (symmetry.source_action, symmetry.target_action):
        words = range(action.size)
        for g, h in itertools.product(symmetry.group.generators, repeat=2):
            both = tuple(g[i] for i in h)
            assert action(both, words) == action(g, action(h, words))
            assert sorted(action(g, words)) == list(words)


@every_table
@every_kind
@pytest.mark.parametrize("which", ["stack", "table"])
def test_theorem_1_the_translator_is_equivariant(seed, kind, which):
    symmetry = random_tables(seed, kind=kind)
    assert_equivariant(translator_of(symmetry, which), tolerance=1e-12)


@every_table
@every_kind
def test_there_is_one_orbit_for_each_pair_of_columns_and_each_shift(seed, kind):
    symmetry = random_tables(seed, kind=kind)
    table = translator_of(symmetry, "table")
    logits = table.logits[table.shared].detach()
    for s, x in enumerate(symmetry.members[0]):
        for t, y in enumerate(symmetry.members[1]):
            found = set(logits[list(x)][:, list(y)].flatten().tolist())
            n = len(x) if kind == "cyclic" or len(x) == 2 else 2
            same = symmetry.owners[0][s] == symmetry.owners[1][t]
            assert len(found) == (n if same else 1)


@every_table
@every_kind
def test_theorem_2_the_aligner_is_invariant(seed, kind):
    symmetry = random_tables(seed, kind=kind)
    model, pairs = small(symmetry), pairs_of(symmetry, seed, 5)

    def aligned(pairs):
        batch = unshared(pairs, symmetry)
        return model.aligner.advance(model.aligner.start(batch.source), batch.target)[0]

    for g in elements(symmetry):
        assert torch.equal(aligned(moved(pairs, g, symmetry)), aligned(pairs))


@every_table
@every_kind
@pytest.mark.parametrize("translator", ["stack", "table"])
def test_theorem_3_the_transducer_is_equivariant(seed, kind, translator):
    symmetry = random_tables(seed, kind=kind)
    model = random_model(symmetry, seed, translator)
    assert deviation(model, symmetry, pairs_of(symmetry, seed, 5)) <= 1e-12


def test_theorem_3_fails_if_the_aligner_sees_words():
    symmetry = random_tables(0)
    model, bare = small(symmetry), Symmetry(symmetry.source, symmetry.target)
    seeing = Aligner(bare, embedding=6, hidden=7)
    broken = Transducer(symmetry, model.translator, seeing, model.marginal)
    assert deviation(broken, symmetry, pairs_of(symmetry, 0, 5)) > 1e-3


@pytest.mark.parametrize("translator", ["stack", "table"])
def test_theorem_3_fails_if_a_column_is_in_another_order(translator):
    words = {"source": ("a", "b", "c"), "target": ("A", "B", "C")}
    straight = LexicalClass("x", **words, source_forms=(("s", ("as", "bs", "cs")),))
    turned = replace(straight, source_forms=(("s", ("bs", "as", "cs")),))
    symmetry = Symmetry.of([straight], [])
    model = random_model(Symmetry(symmetry.source, symmetry.target, (turned,)), 2, translator)
    assert deviation(model, symmetry, pairs_of(symmetry, 0, 6)) > 1e-3
    right = random_model(symmetry, 2, translator)
    assert deviation(right, symmetry, pairs_of(symmetry, 0, 6)) <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_theorem_4_given_the_alignment_every_position_moves_by_itself(seed):
    symmetry = random_tables(seed)
    model = small(symmetry, seed)
    (pair,) = [p for p in pairs_of(symmetry, seed, 9, longest=3) if len(p.source) > 1][:1]
    homes, _ = symmetry.homes
    x = symmetry.source.encode(pair.source)
    y = symmetry.target.encode([*pair.target, symmetry.target.words[0]])
    a = [m % len(x) for m in range(len(y))]

    def log_prob(source, target):
        return model.translator(torch.tensor(source))[a, list(target)].sum()

    orbit = set()
    choices = [elements(symmetry) if word in homes else elements(symmetry)[:1] for word in x]
    for gs in itertools.product(*choices):
        source = tuple(symmetry.source_action(g, [w])[0] for g, w in zip(gs, x, strict=True))
        target = tuple(symmetry.target_action(gs[n], [w])[0] for n, w in zip(a, y, strict=True))
        orbit.add(source)
        assert_close(log_prob(source, target), log_prob(x, y))
    rows = [len(symmetry.members[0][homes[word].column]) if word in homes else 1 for word in x]
    assert len(orbit) == math.prod(rows)


@every_table
def test_a_transducer_agrees_with_the_plain_implementation(seed):
    symmetry = random_tables(seed)
    model = small(symmetry, seed)
    pairs = pairs_of(symmetry, seed, 5)
    batch = unshared(pairs, symmetry)
    plain = PlainTransducer(model)
    assert_close(model.loss(batch), plain.loss(batch.source, batch.target), 1e-10)


@every_table
@every_kind
def test_pairs_of_one_orbit_share_a_row(seed, kind):
    symmetry = random_tables(seed, kind=kind)
    for pair in pairs_of(symmetry, seed, 4):
        orbit = [moved([pair], g, symmetry)[0] for g in elements(symmetry)]
        keys = {
            representative(symmetry, symmetry.source.encode(x), symmetry.target.encode(y))
            for x, y in orbit
        }
        assert len(keys) == 1
        assert len(Rows.of(orbit, symmetry).weight) == 1


def test_gordon_is_equivariant_to_tables():
    symmetry = random_tables(1)
    torch.manual_seed(0)
    model = build(GordonConfig(hidden=3, output_bias="tied"), symmetry).eval()
    assert_equivariant(model, tolerance=1e-10)


# --- empty cells, and open classes


def test_an_empty_cell_gets_a_word_that_never_occurs():
    nouns = LexicalClass("n", ("dog", "sheep"), ("DOG", "SHEEP"), (("many", ("dogs", "")),))
    ((_, words),) = nouns.source_forms
    assert words == ("dogs", "‹sheep many›")
    assert nouns.rows == [(("dog", "dogs"), ("DOG",)), (("sheep",), ("SHEEP",))]


def test_an_open_class_has_places_and_a_symmetric_group():
    symmetry = random_tables(2, opened=True)
    _, b = symmetry.classes
    assert sum(map(is_filler, b.source)) == PLACES
    assert symmetry.kinds == ("cyclic", "symmetric")
    assert_equivariant(translator_of(symmetry, "stack"), tolerance=1e-12)
    assert_equivariant(translator_of(symmetry, "table"), tolerance=1e-12)
    assert_equivariant(small(symmetry), tolerance=1e-10)
    assert LexicalClass(**vars(b)) == b


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": ("a", ""), "target": ("A", "B")}, "row 2 has no source word"),
        ({"source": ("a",), "target": ("A",), "source_forms": (("s", ("a",)),)}, "duplicate"),
        (
            {"source": ("a",), "target": ("A",), "source_forms": (("s", ()),)},
            "1 source words but 0",
        ),
        ({"source": (), "target": ()}, "is empty"),
        ({"source": ("a",), "target": ("A",), "aliases": (("b", "c"),)}, "alias 'b' of 'c'"),
        ({"source": ("a",), "target": ("A",), "aliases": (("a", "a"),)}, "expected a new spelling"),
        ({"source": (), "target": (), "pattern": "["}, "pattern '\\['"),
        ({"source": (), "target": (), "pattern": "(a+)+"}, "no parentheses"),
        ({"source": (), "target": (), "pattern": "a*a*a*a*a*"}, "4 of the signs"),
    ],
)
def test_a_table_that_is_none_is_refused(settings, message):
    with pytest.raises(SymmetryError, match=message):
        LexicalClass("c", **settings)
