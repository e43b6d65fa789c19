"""``assert_equivariant`` passes equivariant models and layers and fails others."""

import math

import pytest
import torch
from torch import nn

from equitrans import AttentionConfig, GordonConfig, TransducerConfig
from equitrans.models import build
from equitrans.paper import EOS
from equitrans.testing import assert_equivariant
from worlds import SYMMETRIES, random_pairs

every_symmetry = pytest.mark.parametrize("name", [n for n, s in SYMMETRIES.items() if s.classes])
VERBS = SYMMETRIES["verbs"]


def transducer(name="verbs", **settings):
    config = TransducerConfig(k=3, d=2, embedding=3, hidden=4, **settings)
    return build(config, SYMMETRIES[name])


@every_symmetry
@pytest.mark.parametrize("translator", ["stack", "table"])
def test_a_transducer_and_its_translator_pass(name, translator):
    model = transducer(name, translator=translator)
    assert_equivariant(model)
    assert_equivariant(model, pairs=random_pairs(1, 3))
    assert_equivariant(model.translator)


def test_a_model_without_symmetry_fails_with_the_group_element():
    model = build(AttentionConfig(embedding=3, hidden=4), VERBS)
    message = r"not equivariant: log p\(y \| x\) changes under \(1234\)\n(.|\n)*difference"
    with pytest.raises(AssertionError, match=message):
        assert_equivariant(model)


@pytest.mark.parametrize("change", [0.1, math.nan, -math.inf])
def test_a_layer_that_treats_one_word_of_a_class_differently_fails(change):
    model = transducer()

    def broken(words):
        table = model.translator(words).clone()
        table[..., VERBS.members[1][0][0]] += change
        return table

    with pytest.raises(AssertionError, match=r"the output changes under \(1234\)"):
        assert_equivariant(broken, actions=model.translator.actions)


def test_a_layer_that_returns_only_nan_fails():
    translator = transducer().translator
    nan = lambda words: translator(words) * math.nan  # noqa: E731
    with pytest.raises(AssertionError, match="the output changes"):
        assert_equivariant(nan, actions=translator.actions)


def test_a_layer_can_be_tested_on_given_inputs_only():
    translator = transducer().translator

    def broken_for_one_word(words):
        changed = words == VERBS.members[0][0][0]
        return translator(words) * (1.0 + changed[..., None])

    assert_equivariant(broken_for_one_word, torch.tensor([EOS]), actions=translator.actions)
    with pytest.raises(AssertionError):
        assert_equivariant(broken_for_one_word, actions=translator.actions)


def test_the_tolerance_follows_the_floating_point_type():
    model = build(GordonConfig(hidden=3, output_bias="none"), VERBS)
    assert_equivariant(model)
    assert_equivariant(model.float())
    with pytest.raises(AssertionError):
        assert_equivariant(model, tolerance=0.0)


def test_the_training_mode_of_every_part_is_restored():
    model = transducer(dropout=0.5).train()
    model.translator.eval()
    assert_equivariant(model)
    assert model.training
    assert model.aligner.dropout.training
    assert not model.translator.training


def test_a_layer_without_actions_raises_a_type_error():
    with pytest.raises(TypeError, match="Linear has no attribute 'actions'; pass actions="):
        assert_equivariant(nn.Linear(2, 2), torch.tensor([EOS]))
