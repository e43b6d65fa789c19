"""Training in memory, without a directory."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Literal

from equitrans import __version__
from equitrans.data import AnyPair, Data, as_pairs, discover, hold_out
from equitrans.errors import ConfigError, DataError, shown
from equitrans.models import ModelConfig, TransducerConfig
from equitrans.paper import LexicalClass, Symmetry
from equitrans.settings import check_pairs, check_seed
from equitrans.training.cards import Origin
from equitrans.training.config import TrainingConfig, usual_training
from equitrans.training.learning import longest_prediction, start
from equitrans.training.trained import Trained


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
    train, valid = hold_out(pairs, fraction=0.1, how="random", seed=seed)
    data = Data(train, valid, (), tuple(classes), "pairs in memory", "")
    learning = start(trained.model, model, training, data, seed=seed)
    for _ in learning:
        pass
    used = asdict(training) if learning.state is not None else {}
    origin = Origin(version=__version__, seed=seed, training=used, figures=learning.figures)
    return replace(trained, model=learning.best_model(), origin=origin)
