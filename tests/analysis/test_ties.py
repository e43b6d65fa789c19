"""Equally likely targets: an answer must not depend on how the source names its class words."""

from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from baselines import spread
from equitrans.analysis.decoding import decode
from equitrans.analysis.evaluation import evaluate, judge, predict
from equitrans.data.batches import Rows, pad_source
from equitrans.data.pairs import Pair
from equitrans.models.baselines.common import Baseline
from equitrans.models.configs import GordonConfig
from equitrans.models.recursive.rules import Rule
from equitrans.models.table import TableTranslator
from equitrans.paper.base import lengths
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.vocabulary import EOS
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import fit
from worlds import SYMMETRIES, moved, random_pairs, small, small_recursive

VERBS = LexicalClass("verbs", ("walk", "run", "jump"), ("WALK", "RUN", "JUMP"))
COUNTS = (("once", 1), ("twice", 2), ("thrice", 3))
PAIRS = [
    Pair((verb, word), (act,) * n)
    for (verb, act), (word, n) in product(zip(VERBS.source, VERBS.target, strict=True), COUNTS)
]
CHANCE = 1 / 3
SHARING = [n for n in SYMMETRIES if n != "no class"]


class Step(NamedTuple):
    left: Tensor  # number of words before EOS


class Undecided(Baseline):
    """A model that writes one class word per source word; all class words are equally likely."""

    def __init__(self, symmetry):
        super().__init__()
        self.symmetry = symmetry
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def start(self, source):
        return Step(lengths(source) - 2)

    def step(self, state, previous):
        logits = torch.full((len(previous), len(self.symmetry.target)), -torch.inf)
        logits[:, [word for words in self.symmetry.members[1] for word in words]] = 0.0
        logits[:, EOS] = torch.where(state.left > 0, -torch.inf, 50.0)
        return torch.log_softmax(logits, dim=1), Step(state.left - 1)

    def loss(self, batch, *, moment=None):
        return torch.zeros(len(batch.source))

    def alignments(self, batch):
        raise NotImplementedError


@pytest.fixture(scope="module")
def trained():
    torch.set_default_dtype(torch.float32)
    return fit(PAIRS, [VERBS], training=TrainingConfig(updates=300))


@pytest.fixture
def stuck(trained, float32):
    """A trained transducer whose translator no longer tells the words of the class apart."""
    trained = replace(trained, model=deepcopy(trained.model))
    table = TableTranslator(trained.symmetry)
    table.fill(trained.model.translation_table(torch.arange(len(trained.symmetry.source))))
    (sources,), (targets,) = trained.symmetry.members
    with torch.no_grad():
        own = table.shared[torch.tensor(sources)][:, torch.tensor(targets)].flatten()
        table.logits[own] = table.logits[own].max()
    trained.model.translator = table
    return trained


@pytest.mark.parametrize("width", [1, 3])
def test_a_translator_uniform_over_a_class_scores_at_most_chance(stuck, width):
    report = stuck.evaluate(PAIRS, width=width)
    assert report.exact_match <= CHANCE
    assert report.tied == len(PAIRS)
    assert judge(stuck.model, Rows.of(PAIRS, stuck.model.sharing))[1] == 0


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_baseline_uniform_over_a_class_scores_at_most_chance(width):
    pairs = [Pair((x,) * n, (y,) * n) for x, y in zip(VERBS.source, VERBS.target, strict=True)
             for n in (1, 2, 3)]  # fmt: skip
    model = Undecided(Symmetry.of([VERBS], pairs))
    report = evaluate(model, pairs, width=width, max_length=5)
    assert report.exact_match <= CHANCE
    assert report.tied == len(pairs)
    assert judge(model, Rows.of(pairs, model.sharing))[1] == 0


def test_a_recursive_model_uniform_over_a_class_scores_at_most_chance():
    pairs = [Pair((x,), (y,)) for x, y in zip(VERBS.source, VERBS.target, strict=True)]
    symmetry = Symmetry.of([VERBS], pairs)
    verb = symmetry.source_classes[symmetry.source.index["walk"]]
    model = small_recursive(symmetry, [Rule((verb,), (0,))], noise=0.1)
    with torch.no_grad():
        for parameter in model.translator.parameters():
            parameter.zero_()
    report = evaluate(model, pairs, width=3, max_length=5)
    assert report.exact_match <= CHANCE
    assert report.tied == len(pairs)
    assert judge(model, Rows.of(pairs, model.sharing))[1] == 0


def alone(model, source, **settings):
    """The best targets of one sentence, decoded by itself."""
    (found,) = decode(model, pad_source([model.symmetry.source.encode(source)]), **settings)
    return [model.symmetry.target.decode(h.words) for h in found]


def uniform_over_classes(name):
    """A random transducer for which all words of a class are equally likely."""
    model = small(SYMMETRIES[name], translator="table")
    torch.nn.init.normal_(model.translator.logits)
    with torch.no_grad():
        for sources, targets in zip(*model.symmetry.members, strict=True):
            own = model.translator.shared[torch.tensor(sources)][:, torch.tensor(targets)]
            model.translator.logits[own.flatten()] = 2.0
    return model


@pytest.mark.parametrize("n_best", [1, 3])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("name", SHARING)
def test_predictions_are_those_of_every_sentence_decoded_by_itself(name, width, n_best):
    sources = [pair.source for pair in random_pairs(31, 16)]
    settings = {"width": max(width, n_best), "max_length": 5, "n_best": n_best}
    seen = set()
    for model in (small(SYMMETRIES[name]), uniform_over_classes(name)):
        found = predict(model, sources, **settings)
        for source, best in zip(sources, found, strict=True):
            assert [h.words for h in best] == alone(model, source, **settings)
            seen.add(best[0].tied)
    assert seen == {True, False}


def test_predictions_of_a_compared_system_are_those_of_every_sentence_by_itself():
    model = spread(GordonConfig(hidden=3, output_bias="none"), world=SYMMETRIES["verbs"])
    assert model.sharing.classes
    sources = [pair.source for pair in random_pairs(32, 16)]
    found = predict(model, sources, width=3, max_length=6)
    for source, (best,) in zip(sources, found, strict=True):
        assert [best.words] == alone(model, source, width=3, max_length=6)


@pytest.mark.parametrize("name", SHARING)
def test_predictions_without_ties_commute_with_every_element(name):
    world = SYMMETRIES[name]
    pairs = random_pairs(33, 30)
    model = small(world)
    straight = predict(model, [p.source for p in pairs], width=3, max_length=6)
    untied = [
        Pair(p.source, h.words) for p, (h,) in zip(pairs, straight, strict=True) if not h.tied
    ]
    assert len(untied) > 5
    for g in world.group.generators:
        images = moved(untied, g, world)
        found = predict(model, [p.source for p in images], width=3, max_length=6)
        assert [best.words for (best,) in found] == [p.target for p in images]


@pytest.mark.usefixtures("float32")
def test_one_sentence_of_an_orbit_is_decoded_if_nothing_ties(trained, monkeypatch):
    decoded = []
    start = trained.model.start

    def counted(source):
        decoded.append(len(source))
        return start(source)

    monkeypatch.setattr(trained.model, "start", counted)
    report = trained.evaluate(PAIRS)
    assert (report.exact_match, report.tied) == (1.0, 0)
    assert sum(decoded) == len(COUNTS)


def test_a_hypothesis_is_tied_if_another_was_as_likely_at_some_step():
    model = Undecided(Symmetry.of([VERBS], []))
    ((best,),) = decode(model, pad_source([(3, 4)]), width=3, max_length=4)
    assert best.tied
    sure = small(SYMMETRIES["no class"], seed=1)
    ((best,),) = decode(sure, pad_source([(3, 4)]), width=3, max_length=4)
    assert not best.tied


def test_a_pair_is_right_if_every_word_is_likelier_than_all_others():
    world = SYMMETRIES["no class"]
    pairs = random_pairs(34, 30)
    right = 0
    for seed in range(4):
        model = small(world, seed)
        said = predict(model, [p.source for p in pairs], width=1, max_length=6)
        finished = [
            Pair(p.source, b.words) for p, (b,) in zip(pairs, said, strict=True) if b.finished
        ]
        right += len(finished)
        if finished:
            assert judge(model, Rows.of(finished, world))[1] == 1
    assert right > 5
