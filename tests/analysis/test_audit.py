"""An audit passes equivariant models and fails all others."""

import math
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from equitrans.analysis.audits import audit
from equitrans.data.batches import pad_source
from equitrans.data.pairs import Pair
from equitrans.errors import DataError, SymmetryError
from equitrans.models.baselines.common import Baseline
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.vocabulary import EOS
from equitrans.training.trained import Trained
from worlds import SYMMETRIES, TURNS, VERBS, random_pairs, small, symmetry

PAIRS = random_pairs(seed=3, count=12)


class Odd(Baseline):
    """A model that gives all targets the same probability, except those of some sources."""

    def __init__(self, symmetry, sources):
        super().__init__()
        self.symmetry = symmetry
        self.odd = pad_source(map(symmetry.source.encode, sources))
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def loss(self, batch, *, moment=None):
        return 1.0 + (batch.source[:, None] == self.odd).all(2).any(1)

    def start(self, source):
        return State(source)

    def step(self, state, previous):
        scores = torch.full((len(previous), len(self.symmetry.target)), -math.inf)
        scores[:, EOS] = 0.0
        return scores, state

    def alignments(self, batch):
        raise NotImplementedError


class State(NamedTuple):
    source: Tensor


def audited(model, s, **settings):
    return audit(model, PAIRS, s, **({"tolerance": 1e-9, "max_length": 8} | settings))


@pytest.mark.parametrize("name", [n for n in SYMMETRIES if n != "no class"])
@pytest.mark.parametrize("marginal", ["sum", "max"])
def test_theorem_3_a_transducer_passes_under_its_own_group(name, marginal):
    found = audited(small(SYMMETRIES[name], marginal=marginal), SYMMETRIES[name])
    assert found.passed
    assert found.max_deviation < 1e-12
    assert found.elements == SYMMETRIES[name].group.order


def test_a_model_without_classes_fails_under_some():
    found = audited(small(SYMMETRIES["no class"]), SYMMETRIES["verbs"])
    assert not found.passed
    assert found.max_deviation > 0.1
    assert found.mismatches
    assert found.worst.deviation == found.max_deviation


def test_a_model_of_one_class_fails_under_two():
    assert not audited(small(SYMMETRIES["verbs"]), SYMMETRIES["verbs × turns"]).passed


def test_a_model_of_the_cyclic_group_fails_under_the_symmetric_one():
    model = small(SYMMETRIES["verbs"])
    assert audited(model, SYMMETRIES["verbs"]).passed
    assert not audited(model, SYMMETRIES["symmetric verbs"]).passed


def test_the_smallest_crack_in_the_table_is_found():
    s = SYMMETRIES["verbs"]
    model = small(s, translator="table")
    torch.nn.init.normal_(model.translator.logits)
    assert audited(model, s).passed
    shared = model.translator.shared.clone()
    logits = torch.nn.Parameter(torch.cat([model.translator.logits, torch.zeros(1)]))
    place = s.source.index["walk"], s.target.index["go"]
    logits.data[-1] = model.translator.logits[shared[place]] + 1e-6
    shared[place] = len(logits) - 1
    model.translator.logits, model.translator.shared = logits, shared
    found = audited(model, s)
    assert not found.passed
    assert 1e-9 < found.max_deviation < 1e-5


def test_predictions_that_tie_are_counted_separately():
    s = SYMMETRIES["verbs"]
    model = small(s, translator="table")
    torch.nn.init.zeros_(model.translator.logits)
    # whatever the source, any verb is the best word, and decoding has to take one of them
    verbs = [s.target.index[word] for word in VERBS.target]
    model.translator.logits.data[model.translator.shared[:, verbs].flatten()] = 3.0
    found = audited(model, s)
    assert found.passed
    assert found.ties > 0


def test_a_large_group_is_represented_by_powers_of_its_generators_and_random_elements(monkeypatch):
    s = replace(SYMMETRIES["three classes"], kind="symmetric")
    big = symmetry(*s.classes, kind="symmetric")
    assert audited(small(big), big).elements == big.group.order == 288
    trained = Trained.new(TransducerConfig(k=4, d=4, embedding=4, hidden=4), big, max_length=5)
    assert trained.audit(PAIRS).passed
    monkeypatch.setattr("equitrans.analysis.audits.ALL_ELEMENTS", 100)
    found = audited(small(big), big)
    assert found.sampled
    # the powers of a swap and a shift of 3, of 4, and of a swap are 9 elements
    assert 9 + 24 < found.elements < 100
    assert found.passed
    assert audited(small(big), big) == found


def test_the_audit_under_a_large_group_reaches_every_word_of_a_class():
    # a model that treats one word apart must fail, though no generator takes the pair there
    words = tuple(f"w{i}" for i in range(7))
    verbs = LexicalClass("verbs", words, tuple(w.upper() for w in words))
    s = Symmetry.of([verbs], [], "symmetric")
    model = small(Symmetry(s.source, s.target), translator="table")
    torch.nn.init.zeros_(model.translator.logits)
    odd = s.source.index["w5"], s.target.index["W5"]
    model.translator.logits.data[model.translator.shared[odd]] = 1.0
    pair = [Pair(("w0",), ("W0",))]
    assert s.group.order > 1000
    assert not audit(model, pair, s, max_length=3).passed


def test_the_audit_under_a_large_group_tries_more_than_powers_of_generators():
    # powers of the swap (w0 w1) and of the shift take w0 w2 to w4 w6, and to no other … w6
    words = tuple(f"w{i}" for i in range(7))
    verbs = LexicalClass("verbs", words, tuple(w.upper() for w in words))
    s = Symmetry.of([verbs], [], "symmetric")
    model = Odd(s, [(w, "w6") for w in words if w not in ("w4", "w6")])
    pair = Pair(("w0", "w2"), ("W0", "W2"))
    assert s.group.order > 1000
    assert not audit(model, [pair], s, max_length=3).passed


def test_a_group_that_random_elements_sample_is_cyclic_if_its_classes_are(monkeypatch):
    s = SYMMETRIES["three classes"]
    monkeypatch.setattr("equitrans.analysis.audits.ALL_ELEMENTS", 10)
    found = audited(small(s), s)
    assert found.sampled
    assert found.passed
    assert 7 < found.elements <= s.group.order == 24  # the powers are 7 elements


def test_predictions_that_do_not_commute_fail_although_the_given_pairs_agree():
    s = SYMMETRIES["verbs"]
    model = small(symmetry(), translator="table")
    table = model.translator
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        # of the pair's own words nothing differs, but after `jump` another word is the best
        for verb, best in (("walk", "stop"), ("look", "stop"), ("run", "stop"), ("jump", "go")):
            table.logits[table.shared[s.source.index[verb], s.target.index[best]]] = 2.0
    found = audit(model, [Pair(("walk",), ("LOOK",))], s, max_length=4)
    assert found.max_deviation < 1e-12
    assert found.mismatches
    assert not found.passed
    loose = audit(model, [Pair(("walk",), ("LOOK",))], s, tolerance=10.0, max_length=4)
    assert loose.ties == len(found.mismatches)
    assert loose.passed


def test_an_infinite_deviation_is_a_failure(monkeypatch):
    s = SYMMETRIES["verbs"]
    given = {"walk": math.inf}
    monkeypatch.setattr(
        "equitrans.analysis.audits.losses",
        lambda model, pairs: [given.get(pair.source[0], 1.0) for pair in pairs],
    )
    for word in ("walk", "run"):  # the infinite loss is that of the pair, or of an image
        found = audit(small(s), [Pair((word,), (word.upper(),))], s, max_length=3)
        assert found.max_deviation == math.inf
        assert not found.passed


def test_infinite_losses_of_a_pair_and_its_images_are_a_failure(monkeypatch):
    s = SYMMETRIES["verbs"]
    for value in (math.inf, math.nan):
        monkeypatch.setattr(
            "equitrans.analysis.audits.losses", lambda model, pairs, v=value: [v for _ in pairs]
        )
        for tolerance in (1e-5, math.inf):
            pairs = [Pair(("walk",), ("WALK",))]
            assert not audit(small(s), pairs, s, tolerance=tolerance, max_length=3).passed


@pytest.mark.parametrize("kind", ["cyclic", "symmetric"])
def test_pairs_without_a_word_of_some_class_are_rejected(kind):
    s = symmetry(VERBS, TURNS, kind=kind)
    # a model that knows the verbs alone is not equivariant to turns, and these pairs do not show it
    model = small(symmetry(VERBS, kind=kind))
    for pair in (Pair(("walk",), ("WALK",)), Pair(("twice",), ("go",))):
        with pytest.raises(DataError, match=r"no pair has a word of class '(verbs|turns)'"):
            audit(model, [pair], s, max_length=3)
    pairs = [Pair(("walk",), ("WALK",)), Pair(("left",), ("LTURN",)), Pair(("look",), ("LTURN",))]
    found = audit(model, pairs, s, max_length=3)
    assert found.moved == {"verbs": 2, "turns": 2}
    assert not found.passed


def test_classes_of_one_word_have_nothing_to_audit():
    alone = LexicalClass("stop", ("twice",), ("stop",))
    with pytest.raises(DataError, match="the group moves no word"):
        audit(small(symmetry(alone)), [Pair(("twice",), ("stop",))], symmetry(alone), max_length=3)
    both = symmetry(VERBS, alone)
    pair = Pair(("walk",), ("WALK",))
    assert audit(small(both), [pair], both, max_length=3).moved == {"verbs": 1}


def test_an_audit_without_pairs_or_classes_is_an_error():
    with pytest.raises(DataError, match="no pairs"):
        audit(small(SYMMETRIES["verbs"]), [], SYMMETRIES["verbs"], max_length=3)
    trained = Trained.new(TransducerConfig(), symmetry(), max_length=5)
    with pytest.raises(SymmetryError, match="has no classes"):
        trained.audit(PAIRS)
    assert not trained.audit(PAIRS, [VERBS, TURNS]).passed
