"""Pairs that rules derive and weights get wrong: other grammars, or rules for whole forms."""

import random

import pytest

from equitrans.data.pairs import Pair
from equitrans.lexical import LexicalClass
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive import learn
from equitrans.training.fitting import fit

CLASSES = [LexicalClass(name, tuple(name), tuple(name)) for name in ("bcdfg", "ao")]


def forms(count, seed, sizes=(1, 1, 2, 3)):
    """Words with an ending; the last letter of a word of one syllable is doubled before it."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        size = draw.choice(sizes)
        word = [letter for _ in range(size) for letter in (draw.choice("bcdfg"), draw.choice("ao"))]
        word.append(draw.choice("bcdfg"))
        if long := draw.random() < 0.4:
            word.append(draw.choice("bcdfg"))
        doubled = word[-1:] if size == 1 and not long else []
        found.append(Pair(tuple(word), (*word, *doubled, "t", "e")))
    return found


@pytest.mark.parametrize("others", [0, learn.OTHERS])
def test_what_weights_cannot_decide_is_decided_by_rules(monkeypatch, others):
    monkeypatch.setattr(learn, "OTHERS", others)
    trained = fit(forms(40, 0), CLASSES, model=TransducerConfig(aligner="recursive"))
    assert not trained.grammar.exceptions
    assert trained.score(forms(60, 9)) == 1.0
    assert trained.score(forms(60, 9, (4, 5))) == 1.0
