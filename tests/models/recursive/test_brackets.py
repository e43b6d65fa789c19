"""Rules from bracketed targets: brackets, translations, copies, types, and the whole model."""

import random

import pytest
import torch

from equitrans.data.batches import Rows
from equitrans.data.pairs import Pair
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.brackets import find_brackets
from equitrans.models.recursive.cooccurrence import find_translations
from equitrans.models.recursive.typed import TypedGrammar
from equitrans.models.recursive.uses import Operation, Use, operate
from equitrans.paper.symmetry import Symmetry
from equitrans.training.fitting import fit
from equitrans.training.trained import Trained

RECURSIVE = TransducerConfig(aligner="recursive", k=4, d=3)

NAMES = [(name, name.upper()) for name in ("ann", "bob", "cy", "dee", "eli")]
NOUNS = [(noun, noun.upper()) for noun in ("cat", "dog", "cow", "fox", "hen")]
VERBS = [(("saw", "see"), "SEE"), (("hit", "hit"), "HIT"), (("fed", "feed"), "FEED")]


def pair(source, target):
    return Pair(tuple(source.split()), tuple(target.split()))


def nominal(rng, depth):
    """A name or a noun, perhaps with a relative clause: source, label, and the whole target."""
    if rng.random() < 0.4:
        name, label = rng.choice(NAMES)
        return name, label, label
    noun, label = rng.choice(NOUNS)
    the = rng.random() < 0.5
    label = f"* {label}" if the else label
    source = f"{'the' if the else 'a'} {noun}"
    if depth and rng.random() < 0.3:
        (past, _), verb = rng.choice(VERBS)
        inner, _, target = nominal(rng, depth - 1)
        if rng.random() < 0.5:
            return (
                f"{source} that {past} {inner}",
                label,
                f"{label} ( mod = {verb} ( by = {label} , to = {target} ) )",
            )
        return (
            f"{source} that {inner} {past}",
            label,
            f"{label} ( mod = {verb} ( by = {target} , to = {label} ) )",
        )
    return source, label, label


def sentence(rng, depth):
    """A pair of a small language with passives, relative clauses and wishes."""
    (past, base), verb = rng.choice(VERBS)
    one, label, agent = nominal(rng, depth)
    other, _, patient = nominal(rng, depth)
    kind = rng.random()
    if kind < 0.2:
        return pair(f"{one} was {past} by {other} .", f"{verb} ( to = {agent} , by = {patient} )")
    if kind < 0.4:
        wish = f"WANT ( by = {agent} , what = {verb} ( by = {label} , to = {patient} ) )"
        return pair(f"{one} wanted to {base} {other} .", wish)
    return pair(f"{one} {past} {other} .", f"{verb} ( by = {agent} , to = {patient} )")


def language(seed, number, depth):
    rng = random.Random(seed)
    return [sentence(rng, depth) for _ in range(number)]


@pytest.fixture(scope="module")
def trained():
    pairs = language(0, 300, 1)
    once = pair("a yak saw ann .", "SEE ( by = YAK , to = ANN )")
    return fit([*pairs, once], model=RECURSIVE)


def right(trained, pairs):
    found = trained.predict([p.source for p in pairs])
    return sum(
        not best.refused and best.words == p.target for best, p in zip(found, pairs, strict=True)
    )


def test_brackets_are_words_that_balance_and_nest():
    targets = [pair("x", text).target for text in ("f ( a , g ( b ) )", "g ( a )", "a")]
    symmetry = Symmetry.of((), [(("x",), target) for target in targets])
    found = find_brackets([symmetry.target.encode(target) for target in targets])
    assert found is not None
    assert symmetry.target.decode(found[:2]) == ("(", ")")
    assert found.labelled
    flat = [(1, 2, 1, 2), (1, 2), (2, 1, 1, 2)]
    assert find_brackets(flat) is None


def test_several_words_have_one_translation_and_constants_none():
    pairs = language(0, 300, 1)
    symmetry = Symmetry.of((), pairs)
    sources = [symmetry.source.encode(p.source) for p in pairs]
    targets = [symmetry.target.encode(p.target) for p in pairs]
    found = find_translations(sources, targets, {}, symmetry.target.encode(("(", ")", "=")))
    words = {
        symmetry.source.decode([x])[0]: symmetry.target.decode([y])[0] for x, y in found.items()
    }
    assert words["saw"] == words["see"] == "SEE"
    assert words["the"] == "*"
    assert not {"by", "to"} & set(words.values())
    assert not {"a", "was", "."} & words.keys()


def test_grammar_has_variables_and_translates_longer_sentences(trained):
    assert isinstance(trained.grammar.grammar, TypedGrammar)
    assert trained.grammar.grammar.parents < 25
    text = str(trained.grammar)
    assert "[X = own head]" in text
    assert "[X = head(0)]" in text
    assert "words: " in text
    beyond = language(1, 60, 3)
    assert right(trained, beyond) >= 57


def test_word_seen_once_stands_where_its_like_stand(trained):
    best = trained.predict(["bob wanted to feed the yak that dee hit ."])[0]
    yak = "* YAK ( mod = HIT ( by = DEE , to = * YAK ) )"
    target = f"WANT ( by = BOB , what = FEED ( by = BOB , to = {yak} ) )"
    assert " ".join(best.words) == target
    refused = trained.predict(["yak saw was by ."])[0]
    assert refused.refused
    assert refused.reason


def test_wrong_pairs_are_listed_and_do_not_spoil_the_rules():
    rng = random.Random(3)
    pairs = language(0, 400, 1)
    for n in rng.sample(range(400), 8):
        target = list(pairs[n].target)
        target[rng.randrange(len(target))] = "FOX"
        pairs[n] = Pair(pairs[n].source, tuple(target))
    noisy = fit(pairs, model=RECURSIVE)
    assert right(noisy, language(1, 60, 2)) >= 56
    assert len(noisy.grammar.exceptions) >= 5


def test_saved_model_predicts_the_same(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = Trained.load(tmp_path / "model")
    assert loaded.grammar.texts == trained.grammar.texts
    sources = [p.source for p in language(2, 20, 2)]
    before, after = trained.predict(sources), loaded.predict(sources)
    assert [p.words for p in before] == [p.words for p in after]
    assert [p.log_prob for p in before] == pytest.approx([p.log_prob for p in after])


def test_loss_is_the_probability_of_the_prediction_and_origins_follow_copies(trained):
    wish = pair("bob wanted to see ann .", "WANT ( by = BOB , what = SEE ( by = BOB , to = ANN ) )")
    (best,) = trained.predict([wish.source])
    batch = Rows.of([wish], trained.model.sharing).batch(torch.tensor([0]), torch.ones(1))
    assert float(trained.model.loss(batch)[0]) == pytest.approx(-best.log_prob, abs=1e-4)
    found, name = trained.align(wish), wish.target.index("BOB")
    assert wish.target.count("BOB") == 2
    assert {found.best[m] for m, word in enumerate(wish.target) if word == "BOB"} == {
        found.best[name]
    }


def test_operations_on_parts():
    def use(operation, other=0):
        return Use(0, operation, other, 5).number

    bracket, variable = chr(0x10000 + 5), chr(0x10FFFF)
    parts = {0: f"ab{bracket}c{variable}", 1: "xy"}

    def result(*right):
        return operate(right, parts, lambda word: chr(0x10000 + word), "")

    assert result(use(Operation.HEAD)) == "ab"
    assert result(use(Operation.FILL, 1)) == f"ab{bracket}cxy"
    assert result(1, ~5, use(Operation.BIND)) == f"xy{bracket}ab{bracket}cxy"
    assert result(use(Operation.KEEP)) == parts[0]
    assert result(Use(1, Operation.REVERSE).number) == "yx"
    assert result(Use(1, Operation.FIRST).number, Use(1, Operation.LAST).number) == "xy"
    assert result(Use(1, Operation.REST).number, Use(1, Operation.MOST).number) == "yx"
