"""The small worlds that the tests live in: vocabularies, classes, models, random pairs."""

import random
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from equitrans.batches import Batch, Rows
from equitrans.grammar.learned import Learned
from equitrans.grammar.rules import Grammar, Rule
from equitrans.groups import Permutation
from equitrans.marginals import Moment
from equitrans.models.recursive import RecursiveTransducer
from equitrans.models.transducer import Transducer, TransducerConfig
from equitrans.pairs import Pair
from equitrans.symmetry import LexicalClass, Symmetry
from equitrans.vocabulary import Vocabulary

VERBS = LexicalClass("verbs", ("walk", "look", "run", "jump"), ("WALK", "LOOK", "RUN", "JUMP"))
TURNS = LexicalClass("turns", ("left", "right"), ("LTURN", "RTURN"))
COLORS = LexicalClass("colors", ("red", "green", "blue"), ("R", "G", "B"))

# words of a class are scattered, and stand in another order on the other side
SOURCE = Vocabulary(
    (
        "and",
        "run",
        "left",
        "jump",
        "twice",
        "red",
        "walk",
        "blue",
        "right",
        "look",
        "green",
        "after",
    )
)
TARGET = Vocabulary(("B", "JUMP", "stop", "LTURN", "R", "WALK", "RUN", "G", "RTURN", "LOOK", "go"))


def symmetry(*classes: LexicalClass, kind: str = "cyclic") -> Symmetry:
    return Symmetry(SOURCE, TARGET, classes, kind)  # type: ignore[arg-type]


SYMMETRIES = {
    "no class": symmetry(),
    "verbs": symmetry(VERBS),
    "turns": symmetry(TURNS),
    "verbs × turns": symmetry(VERBS, TURNS),
    "three classes": symmetry(COLORS, VERBS, TURNS),
    "symmetric verbs": symmetry(VERBS, kind="symmetric"),
    "symmetric verbs × colors": symmetry(VERBS, COLORS, kind="symmetric"),
}


def small(symmetry: Symmetry, seed: int = 0, **settings: object) -> Transducer:
    """A small random model, its weights spread enough for its words to differ."""
    sizes: dict[str, object] = {
        "k": 5,
        "d": 4,
        "embedding": 6,
        "hidden": 7,
        "warm_start": 0.0,
        "dropout": 0.0,
    }
    torch.manual_seed(seed)
    model = TransducerConfig(**(sizes | settings)).build(symmetry)  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model.eval()


def small_recursive(
    symmetry: Symmetry, rules: Iterable[Rule], *, seed: int = 0, noise: float, **settings: object
) -> RecursiveTransducer:
    """A transducer with given rules, random weights and a random translator."""
    torch.manual_seed(seed)
    grammar = Grammar(rules)
    learned = Learned(grammar, (1,) * len(grammar), 1, noise=noise)
    config = TransducerConfig(aligner="recursive", k=5, d=4, **settings)  # type: ignore[arg-type]
    model = config.build_recursive(symmetry, learned)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    return model.eval()


def random_pairs(seed: int, count: int, *, longest: int = 6) -> list[Pair]:
    draw = random.Random(seed)
    return [
        Pair(
            tuple(draw.choices(SOURCE.words, k=draw.randint(1, longest))),
            tuple(draw.choices(TARGET.words, k=draw.randint(0, longest))),
        )
        for _ in range(count)
    ]


def unshared(pairs: Iterable[Pair], symmetry: Symmetry) -> Batch:
    """A batch in which nothing is shared: each pair is a row and a form of its own.

    Sharing would make members of an orbit equal before the model is asked; tests of the theorems
    must not.
    """
    pairs = list(pairs)
    plain = Rows.of(pairs, Symmetry(symmetry.source, symmetry.target))
    rows = plain.row
    return Batch(
        source=plain.source[rows],
        target=plain.target[rows],
        weight=torch.ones(len(rows)),
        form=torch.arange(len(rows)),
        first=torch.arange(len(rows)),
    )


def shared(pairs: Iterable[Pair], symmetry: Symmetry) -> Batch:
    """A batch of all rows of some pairs, with all sharing."""
    rows = Rows.of(pairs, symmetry)
    return rows.batch(torch.arange(len(rows.weight)), rows.weight)


def moved(pairs: Iterable[Pair], g: Permutation, symmetry: Symmetry) -> list[Pair]:
    """g∘(x, y), word by word."""
    return [
        Pair(
            symmetry.source.decode(symmetry.source_action(g, symmetry.source.encode(x))),
            symmetry.target.decode(symmetry.target_action(g, symmetry.target.encode(y))),
        )
        for x, y in pairs
    ]


def at(updates: int | None, done: float = 0.5) -> Moment | None:
    """A moment of training; None stays None, after it."""
    return None if updates is None else Moment(updates, done)


def elements(symmetry: Symmetry) -> Sequence[Permutation]:
    return symmetry.group.elements


def assert_close(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    """Relative agreement in float64, unless said otherwise."""
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
