"""Models in memory: trained on pairs, or made from a trained model by adding words to a class."""

import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from equitrans import __version__, training as room
from equitrans.analysis import Cells, Extended, extend_model
from equitrans.data import (
    AnyPair,
    Data,
    Pair,
    Reading,
    as_pairs,
    check_classes,
    hold_out,
    lower_first_words,
)
from equitrans.errors import ConfigError, DataError, LearningWarning, SymmetryError, shown
from equitrans.models import (
    ModelConfig,
    TransducerConfig,
    has_rules,
    inductions_remembered,
    name_of,
)
from equitrans.paper import LexicalClass, Symmetry
from equitrans.settings import check_iterable, check_pairs, check_seed
from equitrans.training.cards import Origin
from equitrans.training.choosing import classes_for_rules, find_classes
from equitrans.training.config import TrainingConfig, usual_training
from equitrans.training.learners import longest_prediction, start
from equitrans.training.learning import Report
from equitrans.training.misfit import misfit_warning
from equitrans.training.trained import Trained


def fit(
    pairs: Iterable[AnyPair],
    classes: Iterable[LexicalClass] | Literal["auto", "discover"] = "auto",
    *,
    model: ModelConfig | None = None,
    training: TrainingConfig | None = None,
    seed: int = 0,
    characters: bool = False,
    split_words: str | None = None,
    capitals: bool = False,
) -> Trained:
    """Train on pairs in memory, without a directory; return the model of the best epoch.

    Without classes, model and training settings, it does what ``learn`` does, judgement included:
    the result has the rules, and its ``study`` the page, which a notebook shows. With a model or
    training settings, the default is no classes.

    ``classes="discover"`` finds the classes in the pairs; there may be none. The default training
    settings are those of the model's recipe. A model that does not fit its pairs and rules that are
    not to be trusted give a LearningWarning. ``characters`` makes every character of a string a
    word; ``split_words`` are the signs at which target words are read apart; ``capitals`` reads
    the first word of a source in lower case if it is also a word in lower case. Calls in several
    threads run one after the other, because torch has one random generator for all threads.

    >>> walk = [("walk twice", "WALK WALK"), ("walk", "WALK")]
    >>> verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
    >>> fit(walk, [verbs], training=TrainingConfig(updates=600)).predict(["jump twice"])[0].words
    ('JUMP', 'JUMP')
    """
    if classes == "auto" and model is None and training is None:
        sign = split_words or "auto"
        study = room.learn(pairs, seed=seed, characters=characters, split_words=sign)
        for warning in study.warnings:
            warnings.warn(warning, LearningWarning, stacklevel=2)
        return replace(study.trained, study=study)
    trained, told = fitted(
        pairs,
        () if classes == "auto" else classes,
        model=model,
        training=training,
        seed=seed,
        characters=characters,
        split_words=split_words,
        capitals=capitals,
    )
    for warning in told:
        warnings.warn(warning, LearningWarning, stacklevel=2)
    return trained


def fitted(
    pairs: Iterable[AnyPair],
    classes: Iterable[LexicalClass] | Literal["discover"],
    *,
    model: ModelConfig | None = None,
    training: TrainingConfig | None = None,
    seed: int = 0,
    characters: bool = False,
    split_words: str | None = None,
    capitals: bool = False,
    quick: bool = False,
    report: Report | None = None,
) -> tuple[Trained, list[str]]:
    """The model of ``fit`` and its warnings; ``quick`` searches less for rules, and ``report`` gets
    texts about the progress of rules.
    """
    check_seed(seed)
    name_of(model := model or TransducerConfig())
    training = training or usual_training(model)
    if not isinstance(training, TrainingConfig):
        raise ConfigError(f"training is {shown(training)}; expected a TrainingConfig")
    check_iterable("pairs", pairs)
    pairs = as_pairs(pairs, characters=characters)
    if not pairs:
        raise DataError("there are no pairs to learn from")
    check_pairs(pairs)
    if capitals:
        pairs = lower_first_words(pairs)
    with inductions_remembered():
        if classes == "discover":
            reading = Reading((), characters, split_words)
            if has_rules(model):
                classes = classes_for_rules(pairs, reading, quick=quick)
            else:
                classes = find_classes(pairs, reading).classes
        reading = Reading(check_classes(classes), characters, split_words, capitals=capitals)
        with _ONE_AT_A_TIME:
            trained = _fit(pairs, reading, model, training, seed=seed, quick=quick, report=report)
    grammar = () if trained.grammar is None else trained.grammar.warnings
    told = [f"learned rules: {warning}" for warning in grammar]
    if (warning := misfit_warning(trained, pairs, seed=seed)) is not None:
        told.append(warning)
    return trained, told


_ONE_AT_A_TIME = threading.Lock()


def _fit(
    pairs: tuple[Pair, ...],
    reading: Reading,
    model: ModelConfig,
    training: TrainingConfig,
    *,
    seed: int,
    quick: bool,
    report: Report | None = None,
) -> Trained:
    train, valid = hold_out(pairs, fraction=0.1, how="random", seed=seed)
    data = Data(train, valid, (), reading.classes, "pairs in memory", "", reading=reading)
    read = reading.pairs(pairs)
    trained = Trained.new(
        model,
        Symmetry.of(reading.classes, read, model.group),
        max_length=longest_prediction(read, model),
        characters=reading.characters,
        split=reading.split,
        capitals=reading.capitals,
        seed=seed,
    )
    learning = start(trained.model, model, training, data, seed=seed, quick=quick)
    learning.report = report
    for _ in learning:
        pass
    origin = Origin(__version__, seed, training=learning.settings, figures=learning.figures)
    return replace(trained, model=learning.best_model(), origin=origin)


@dataclass(frozen=True)
class Extension(Extended):
    """A trained model with added words, and how far it is from the one before."""

    trained: Trained


def extend(trained: Trained, name: str, words: Mapping[Cells, Cells]) -> Extension:
    """Add words, each with its translation, to the class ``name``, without training. In a class
    with several columns, a word is a tuple of its forms.

    >>> verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
    >>> trained = Trained.new(TransducerConfig(), Symmetry.of([verbs], []), max_length=3)
    >>> extend(trained, "verbs", {"blick": "BLICK"}).trained.symmetry.source.words
    ('walk', 'jump', 'blick')
    """
    if not isinstance(trained, Trained):
        raise ConfigError(f"{shown(trained)} is not a trained model; Trained.load gives one")
    cells = [*words, *words.values()] if isinstance(words, Mapping) else [None]
    forms = [word for cell in cells for word in (cell if isinstance(cell, tuple) else (cell,))]
    if not isinstance(name, str) or not all(isinstance(word, str) for word in forms):
        wrong = f"class {shown(name)}, words {shown(words)}"
        raise ConfigError(f"{wrong}; expected a name, and a translation for each word")
    if trained.characters:
        for word in forms:
            if len(word) != 1:
                raise SymmetryError(
                    f"{word!r} is not a character; the words of this model are single characters"
                )
    found = extend_model(trained.model, trained.config, name, words)
    extended = replace(trained, model=found.model, config=found.config, origin=Origin(), study=None)
    return Extension(**vars(found), trained=extended)
