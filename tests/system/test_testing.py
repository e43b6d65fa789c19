"""``equitrans.testing``: models and layers that are equivariant pass, others fail."""

import pytest
import torch
from torch import nn

from equitrans import AttentionConfig, GordonConfig, TransducerConfig
from equitrans.models import build
from equitrans.paper import EOS
from equitrans.testing import assert_equivariant
from worlds import SYMMETRIES

every_symmetry = pytest.mark.parametrize("name", [n for n, s in SYMMETRIES.items() if s.classes])


@every_symmetry
@pytest.mark.parametrize("translator", ["stack", "table"])
def test_a_transducer_and_its_translator_pass(name, translator):
    config = TransducerConfig(k=3, d=2, embedding=3, hidden=4, translator=translator)
    model = build(config, SYMMETRIES[name])
    assert_equivariant(model)
    assert_equivariant(model.translator)


def test_a_model_without_symmetry_fails():
    with pytest.raises(AssertionError, match=r"log p\(y \| x\) under .* changes by .*; allowed"):
        assert_equivariant(build(AttentionConfig(embedding=3, hidden=4), SYMMETRIES["verbs"]))


def test_a_broken_translator_fails():
    model = build(TransducerConfig(k=3, d=2, embedding=3, hidden=4), SYMMETRIES["verbs"])
    world = SYMMETRIES["verbs"]

    def broken(words):
        table = model.translator(words).clone()
        table[..., world.members[1][0][0]] += 0.1  # one word of the class is preferred
        return table

    assert_equivariant(model.translator, actions=model.translator.actions)
    with pytest.raises(AssertionError, match="the output under"):
        assert_equivariant(broken, actions=model.translator.actions)


def test_the_tolerance_follows_the_type_of_the_numbers():
    model = build(GordonConfig(hidden=3, output_bias="none"), SYMMETRIES["verbs"])
    assert_equivariant(model)
    assert_equivariant(model.float())
    with pytest.raises(AssertionError):
        assert_equivariant(model, tolerance=0.0)


def test_a_layer_that_does_not_know_its_actions_is_refused():
    with pytest.raises(TypeError, match="Linear does not know its actions"):
        assert_equivariant(nn.Linear(2, 2), torch.tensor([EOS]))
