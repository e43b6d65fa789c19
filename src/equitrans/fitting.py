"""Models trained in memory, without a directory."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Literal

from equitrans import __version__
from equitrans.batches import Rows
from equitrans.cards import Figures, Origin
from equitrans.config import usual_training
from equitrans.discovery import discover
from equitrans.errors import ConfigError, DataError, shown
from equitrans.limits import check_pairs
from equitrans.models.catalog import ModelConfig, is_recursive
from equitrans.models.transducer import TransducerConfig
from equitrans.pairs import AnyPair, Pair, as_pairs, hold_out
from equitrans.recursion import learn
from equitrans.settings import check_seed
from equitrans.symmetry import LexicalClass, Symmetry
from equitrans.trained import Trained
from equitrans.training import TrainingConfig, TrainState, train


def fit(
    pairs: Iterable[AnyPair],
    classes: Iterable[LexicalClass] | Literal["discover"] = (),
    *,
    model: ModelConfig | None = None,
    training: TrainingConfig | None = None,
    seed: int = 0,
) -> Trained:
    """Train on pairs in memory and keep the best epoch: the short way, without a directory.

    With "discover" for the classes they are found in the pairs, and there may be none. Without
    settings for training, those of the model's own recipe are taken.

    >>> walk = [("walk twice", "WALK WALK"), ("walk", "WALK")]
    >>> verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
    >>> fit(walk, [verbs], training=TrainingConfig(updates=600)).predict(["jump twice"])[0].words
    ('JUMP', 'JUMP')
    """
    check_seed(seed)
    pairs = as_pairs(pairs)
    if not pairs:
        raise DataError("there are no pairs to learn from")
    check_pairs(pairs)
    if classes == "discover":
        classes = discover(pairs).classes
    elif isinstance(classes, str | LexicalClass):
        raise ConfigError(f'classes are {shown(classes)}; give a list of classes, or "discover"')
    model = model or TransducerConfig()
    training = training or usual_training(model)
    trained = Trained.new(
        model,
        Symmetry.of(classes, pairs, model.group),
        max_length=longest_prediction(pairs),
        seed=seed,
    )
    origin = Origin(version=__version__, seed=seed, training=asdict(training))
    if is_recursive(model):
        figures = Figures(train_pairs=len(pairs))
        trained = replace(trained, origin=replace(origin, training={}, figures=figures))
        return learn_rules(trained, pairs, seed=seed)
    learned, held = hold_out(pairs, fraction=0.1, how="random", seed=seed)
    rows = Rows.of(learned, trained.model.sharing)
    valid = Rows.of(held, trained.model.sharing) if held else None
    state = TrainState.new(trained.model, training, seed=seed)
    for _ in train(state, rows, valid, training):
        pass
    trained.model.load_state_dict(state.best)
    figures = Figures(
        train_pairs=len(learned),
        valid_pairs=len(held),
        epochs=state.epoch,
        best_epoch=state.best_epoch,
        seconds=state.seconds,
    )
    return replace(trained, origin=replace(origin, figures=figures))


def learn_rules(trained: Trained, pairs: Sequence[Pair], *, seed: int) -> Trained:
    """The same model with its rules and weights learned."""
    assert is_recursive(trained.config)
    return replace(trained, model=learn(pairs, trained.symmetry, trained.config, seed=seed))


def longest_prediction(pairs: Iterable[Pair]) -> int:
    """How long a target may become: well beyond what was seen, since lengths are to be generalised
    too.
    """
    return 4 * max(len(pair.target) for pair in pairs) + 10
