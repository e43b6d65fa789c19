"""Rules learned by shards of forms are those learned at once."""

import random
from copy import deepcopy
from functools import partial

import torch

from equitrans import LexicalClass, Pair, Symmetry, TransducerConfig
from equitrans.models import build, learn_rules
from equitrans.shards import Spread, by_shards, spread

VERBS = LexicalClass("verbs", ("walk", "jump", "look"), ("WALK", "JUMP", "LOOK"))


def made(number):
    """Pairs of a grammar with nested orders, a few of them wrong."""
    draw = random.Random(0)
    pairs = []
    for _ in range(number):
        source, target = [], []
        for k in range(draw.randint(1, 3)):
            verb, times = draw.randrange(3), draw.choice((1, 2, 3))
            if k:
                source.append("and")
            source += [VERBS.source[verb], *[["twice"], ["thrice"]][times - 2][: times > 1]]
            target += [VERBS.target[verb]] * times
        if draw.random() < 0.01:
            target.append("LOOK")
        pairs.append(Pair(tuple(source), tuple(target)))
    return pairs


def learned(pairs):
    torch.manual_seed(0)
    symmetry = Symmetry.of([VERBS], pairs, "cyclic")
    new = partial(build, TransducerConfig(aligner="recursive"), symmetry)
    return learn_rules(pairs, symmetry, new)


def elsewhere(work, parts):
    """Work on copies of the shards, as another process does."""
    return [deepcopy(work)(deepcopy(part)) for part in parts]


def said(model):
    """What was learned, as plain data."""
    learned = model.learned
    rivals = [(bits, grammar.rules) for bits, grammar in learned.rivals]
    plain = {k: v for k, v in vars(learned).items() if k not in ("grammar", "licences", "rivals")}
    licences = learned.licences.needed, learned.licences.lost
    return plain, learned.grammar.rules, rivals, licences


def test_the_number_of_shards_does_not_change_what_is_learned():
    pairs = made(150)
    at_once = learned(pairs)
    assert at_once.learned.exceptions
    for shards in (1, 2, 4):
        with spread(Spread(elsewhere, shards, least=2)):
            found = learned(pairs)
        assert said(found) == said(at_once)
        for name, value in at_once.state_dict().items():
            assert torch.equal(value, found.state_dict()[name]), name


def test_few_items_are_not_sent():
    def refuse(work, parts):
        raise AssertionError

    with spread(Spread(refuse, 4, least=10)):
        assert by_shards(lambda items: [n * n for n in items], range(9)) == [
            n * n for n in range(9)
        ]
