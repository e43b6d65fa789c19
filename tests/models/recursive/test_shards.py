"""Rules learned by shards of forms are those learned at once."""

from copy import deepcopy

import torch

from equitrans.shards import Spread, by_shards, spread
from sharded import learned, made, said


def elsewhere(work, parts):
    """Work on copies of the shards, as another process does."""
    return [deepcopy(work)(deepcopy(part)) for part in parts]


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
