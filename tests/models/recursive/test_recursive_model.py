"""The transducer with a grammar: likelihoods, predictions and origins, computed by hand."""

import math

import pytest
import torch

from equitrans.data.pairs import Pair
from equitrans.models.recursive.learn import fit_translator
from equitrans.models.recursive.rules import HOLE, Rule, constant
from equitrans.paper.base import Moment
from equitrans.paper.symmetry import LexicalClass
from worlds import (
    SOURCE,
    TARGET,
    TURNS,
    VERBS,
    assert_close,
    shared,
    small_recursive,
    symmetry,
    unshared,
)

WORLD = symmetry(VERBS, TURNS)
GO, STOP = TARGET.encode(("go", "stop"))


def word(text):
    """The class of a source word."""
    return WORLD.source_classes[SOURCE.index[text]]


VERB, TURN, AND, TWICE, AFTER = map(word, ("walk", "left", "and", "twice", "after"))
RULES = [
    Rule((VERB,), (0,)),
    Rule((TURN,), (0,)),
    Rule((HOLE, TWICE), (0, 0)),
    Rule((HOLE, AND, HOLE), (0, 2)),
    Rule((HOLE, AND, HOLE), (2, 0)),
    Rule((AND, HOLE), (~GO, 1, ~STOP)),
    Rule((HOLE, AFTER), (0, ~GO)),
    Rule((HOLE, AFTER), (0, 0)),
    Rule((VERB, TURN), (1, ~GO, 0)),
]


def model_of(noise=0.05, world=WORLD, rules=RULES, **settings):
    """A transducer with these rules, random weights and a random translator."""
    return small_recursive(world, rules, noise=noise, **settings)


def pair(source, target):
    return Pair(tuple(source.split()), tuple(target.split()))


def joint(model, source, target):
    """Log p(target, a | source) for every alignment a of the target's length."""
    source, target = SOURCE.encode(source), TARGET.encode(target)
    table = model.spoken(torch.arange(len(SOURCE))).detach()
    scores = []
    for a in model.aligner.alignments(model.form(source)):
        if len(a.text) == len(target):
            score = a.log_prob
            for atom, y in zip(a.text, target, strict=True):
                if atom < constant(0):
                    score += float(table[source[ord(atom)], y])
                elif atom != constant(y):
                    score = -math.inf
            scores.append(score)
    return torch.tensor(scores)


def mixed(likely, target, noise):
    """Log p with noise, under which each of 11 words and the end has the probability 1/12."""
    return math.log((1 - noise) * math.exp(likely) + noise * (1 / 12) ** (len(target) + 1))


PAIRS = [
    pair("twice walk", "WALK"),  # has no derivation
    pair("walk and look twice", "WALK LOOK LOOK"),
    pair("walk and look twice", "WALK RUN RUN"),
    pair("run and jump twice", "JUMP LOOK WALK"),
    pair("and walk", "go LOOK stop"),
    pair("and walk", "go LOOK go"),
    pair("look after", "LOOK go"),
    pair("look after", "LOOK LOOK"),
    pair("walk left", "LTURN go WALK"),
    pair("walk and look", "LOOK"),
]


@pytest.mark.parametrize("marginal", ["sum", "max"])
@pytest.mark.parametrize("batch", [shared, unshared])
def test_the_likelihood_mixes_alignments_and_noise(marginal, batch):
    model = model_of(marginal=marginal)
    gathered = torch.logsumexp if marginal == "sum" else torch.amax
    expected = []
    for source, target in PAIRS:
        scores = joint(model, source, target)
        likely = float(gathered(scores, 0)) if len(scores) else -math.inf
        share = 0.05 if model.derivation(source) else 1.0
        expected.append(-mixed(likely, target, share))
    rows = batch(PAIRS, WORLD)
    found = model.loss(rows).detach()
    if batch is unshared:
        assert_close(found, torch.tensor(expected))
    else:
        assert max(torch.bincount(rows.form).tolist()) > 1
        assert len(found) == len(PAIRS)
        assert_close(found.sort().values, torch.tensor(expected).sort().values)


def test_the_marginal_depends_on_the_moment_of_training():
    model = model_of(marginal="annealed", noise=0.0)
    source, target = pair("look and look", "LOOK LOOK")
    batch, scores = unshared([Pair(source, target)], WORLD), joint(model, source, target)
    assert len(scores) == 2
    start = Moment(0, 0.0)
    early = -float(model.loss(batch, moment=start).detach()[0])
    assert early == pytest.approx(float(model.marginal(scores, moment=start)))
    assert early != pytest.approx(float(scores.max()))
    assert -float(model.loss(batch).detach()[0]) == pytest.approx(float(scores.max()))


def test_the_loss_has_the_dtype_of_the_model():
    model, batch = model_of(), unshared(PAIRS, WORLD)
    expected = model.loss(batch).detach()
    torch.set_default_dtype(torch.float32)
    found = model.loss(batch).detach()
    assert found.dtype == torch.float64
    assert_close(found, expected, 1e-6)


def test_all_tensors_are_on_the_device_of_the_batch():
    model, batch = model_of(), unshared(PAIRS, WORLD)
    loss, prob = model.loss(batch).detach(), model.alignments(batch)
    with torch.device("meta"):  # a tensor without an explicit device would have no values
        assert_close(model.loss(batch).detach(), loss)
        assert_close(model.alignments(batch), prob)


# --- parts of the model


def test_the_aligner_has_the_class_symbols_of_forms():
    model = model_of()
    assert model.aligner.classes == (VERB, TURN)
    alone = LexicalClass("alone", ("walk",), ("WALK",))
    assert len(model_of(world=symmetry(alone), rules=[]).aligner.classes) == 1


def test_the_noise_is_not_part_of_the_weights():
    state = model_of(noise=0.1).state_dict()
    assert "noise" not in state
    model = model_of(noise=0.2)
    model.load_state_dict(state)
    assert float(model.noise) == 0.2


@pytest.mark.parametrize("translator", ["stack", "table"])
@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
def test_fitting_the_translator_teaches_all_class_words(kind, translator):
    model = model_of(world=symmetry(VERBS, TURNS, kind=kind), translator=translator)
    fit_translator(model)
    for each in (VERBS, TURNS):
        table = model.spoken(torch.tensor(SOURCE.encode(each.source))).detach()
        chosen = table[range(len(each.source)), TARGET.encode(each.target)]
        # training ends when all gradients are below 1e-7
        assert float(chosen.min()) > -2e-7


def test_fitting_the_translator_without_classes_changes_nothing():
    model = model_of(world=symmetry(), rules=[])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fit_translator(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


# --- origins


@pytest.mark.parametrize(
    ("source", "text", "origins"),
    [
        ("walk and look", "\2\0", [2, 0]),
        # the origin of a constant is the first word of its rule
        ("and walk twice", constant(GO) + "\1\1" + constant(STOP), [0, 1, 1, 0]),
        ("walk and look after", "\2" + constant(GO) + "\0", [2, 3, 0]),
        ("walk left", "\1" + constant(GO) + "\0", [1, 0, 0]),
        ("look and walk left", "\3" + constant(GO) + "\2\0", [3, 2, 2, 0]),
    ],
)
def test_origins_are_the_source_positions_of_a_yield(source, text, origins):
    model = model_of()
    assert model.origins(model.form(SOURCE.encode(source.split())), text) == origins


# --- predictions


def predict(model, source, n_best=9):
    batch = unshared([pair(source, "")], WORLD)
    (found,) = model.predict(batch.source, max_length=9, n_best=n_best)
    return found


def test_a_source_without_a_derivation_has_an_unfinished_prediction():
    (refused,) = predict(model_of(), "twice walk")
    assert (refused.words, refused.log_prob, refused.finished) == ((), -math.inf, False)


@pytest.mark.parametrize("source", ["walk and look", "and walk", "look after", "walk left after"])
def test_the_log_probability_of_a_prediction_is_its_negative_loss(source):
    model = model_of(noise=0.3)
    found = predict(model, source)
    assert len(found) == (1 if source == "and walk" else 2)
    for hypothesis in found:
        scores = joint(model, source.split(), TARGET.decode(hypothesis.words))
        target = TARGET.decode(hypothesis.words)
        expected = mixed(float(torch.logsumexp(scores, 0)), target, 0.3)
        assert hypothesis.log_prob == pytest.approx(expected, abs=1e-12)
        loss = model.loss(unshared([Pair(tuple(source.split()), target)], WORLD)).detach()
        assert hypothesis.log_prob == pytest.approx(-float(loss), abs=1e-12)
        assert hypothesis.finished
    assert found == sorted(found, key=lambda h: -h.log_prob)
    assert predict(model, source, n_best=1) == found[:1]


def test_the_likelihood_of_a_prediction_is_computed_in_double_precision():
    model = model_of()
    expected = predict(model, "walk and look")
    torch.set_default_dtype(torch.float32)
    assert [h.log_prob for h in predict(model, "walk and look")] == pytest.approx(
        [h.log_prob for h in expected], abs=1e-13
    )


def test_noise_decides_between_targets_of_different_lengths():
    """With much noise, a short target may have a higher likelihood than a likelier alignment."""
    rules = [Rule((VERB,), (0,)), *([Rule((HOLE, AFTER), (0,) * n) for n in (1, 4)])]
    model = model_of(noise=0.5, rules=rules)
    with torch.no_grad():
        model.aligner.rule.copy_(torch.tensor([0.0, 0.0, 0.5]))
        for parameter in (model.aligner.child, model.aligner.holds):
            parameter.zero_()
        for parameter in model.translator.parameters():
            parameter.zero_()  # all words are equally likely
    model.aligner.forget()
    assert [len(a.text) for a in model.aligner.alignments((VERB, AFTER))] == [4, 1]
    assert [len(h.words) for h in predict(model, "walk after")] == [1, 4]
