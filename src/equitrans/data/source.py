"""The data of a training: its settings, and the pairs and classes they describe."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from equitrans.data.classes import read_classes
from equitrans.data.discovery import discover
from equitrans.data.pairs import HoldOut, Pair, hold_out, parse_columns, read_pairs
from equitrans.data.reading import Reading, lower_first_words
from equitrans.data.scan import CLASSES, load_split
from equitrans.errors import ConfigError, nearest, shown
from equitrans.lexical import is_filler
from equitrans.paper import LexicalClass
from equitrans.settings import check_pairs, check_settings

Batching = Literal["forms", "pairs"]
"""Unit of a batch: forms with all their pairs, or pairs."""


@dataclass(frozen=True)
class DataConfig:
    """What a model is trained on.

    Args:
        split: the name of a SCAN split
        scan_dir: folder of the official SCAN files; without it splits come from the grammar
        file: pairs of your own, as TSV or in SCAN's format
        classes: a TOML file of lexical classes; none for no classes; discover to find them in the
            training pairs; with a split also verbs, directions or both (the default of a split)
        characters: words are single characters
        split_words: signs at which target words are read apart, such as . in kitchen.lamp;
            they are written together again
        capitals: the first word of a source is read in lower case if it is also a word in lower
            case and no name: The is the
        columns: the columns of source and target in the file, such as 2,3; null for the first two
        distinct: pairs that are repeated count once
        hold_out: validation pairs are drawn at random, or are those with the longest targets
        validation: the fraction of distinct pairs that is held out for validation

    """

    split: str | None = None
    scan_dir: str | None = None
    file: str | None = None
    classes: str | None = None
    characters: bool = False
    split_words: str | None = None
    capitals: bool = False
    columns: str | None = None
    distinct: bool = False
    hold_out: HoldOut = "random"
    validation: float = 0.1

    def __post_init__(self) -> None:
        check_settings("data", self)
        if (self.split is None) == (self.file is None):
            raise ConfigError("give either --split NAME or --data FILE")
        parse_columns(self.columns)
        if self.columns is not None and self.file is None:
            raise ConfigError("--columns chooses columns of --data FILE; a split has none")
        if self.split_words is not None and not self.split_words.strip():
            raise ConfigError(
                f"data.split_words is {shown(self.split_words)}; it must be one sign or several"
            )
        if not 0 <= self.validation < 1:
            raise ConfigError(f"data.validation is {shown(self.validation)}; it must lie in [0, 1)")


@dataclass(frozen=True)
class Data:
    """Training, validation and test pairs, and their classes. Only SCAN splits have test pairs."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]
    classes: tuple[LexicalClass, ...]
    origin: str
    digest: str
    """SHA-256 of the training and validation pairs, in their order."""
    alike: bool = True
    """Whether validation pairs are drawn like training pairs, so that a miss means a bad start."""
    reading: Reading = field(default_factory=Reading)
    """How the pairs become symbols."""

    @cached_property
    def read(self) -> "Data":
        """The same data in the symbols that a model sees."""
        reading = replace(self.reading, spread=True)
        train, valid, test = map(reading.pairs, (self.train, self.valid, self.test))
        return replace(self, train=train, valid=valid, test=test, reading=Reading())

    @property
    def unseen(self) -> list[str]:
        """Class words in no training or validation pair: misspelled, or known by symmetry only."""
        pairs = self.read.train + self.read.valid
        seen_source = {w for p in pairs for w in p.source}
        seen_target = {w for p in (*pairs, *self.train, *self.valid) for w in p.target}
        return [
            word
            for c in self.classes
            for words, seen in zip(c.words, (seen_source, seen_target), strict=True)
            for word in words
            if word not in seen and not is_filler(word)
        ]


def load_data(
    config: DataConfig, *, seed: int, classes: tuple[LexicalClass, ...] | None = None
) -> Data:
    """The data that the settings describe. ``seed`` decides the validation pairs; ``classes``, if
    given, replace those of the settings.
    """
    if config.split is not None:
        split = load_split(config.split, config.scan_dir)
        pairs, test, origin = split.train, split.test, split.origin
    else:
        assert config.file is not None  # DataConfig checks that split or file is given
        pairs = read_pairs(config.file, characters=config.characters, columns=config.columns)
        test, origin = (), config.file
        check_pairs(pairs)
    if config.distinct:
        pairs = tuple(dict.fromkeys(pairs))
    if config.capitals:
        pairs, test = lower_first_words(pairs), lower_first_words(test)
    train, valid = hold_out(pairs, fraction=config.validation, how=config.hold_out, seed=seed)
    digest = hashlib.sha256(repr((train, valid)).encode()).hexdigest()
    apart = Reading(split=config.split_words)
    if classes is None:
        classes = _choose_classes(config, apart.pairs(pairs))
    reading = replace(apart, classes=classes, characters=config.characters)
    alike = config.hold_out == "random"
    return Data(train, valid, test, classes, origin, digest, alike, reading)


def _choose_classes(config: DataConfig, pairs: Sequence[Pair]) -> tuple[LexicalClass, ...]:
    """The classes of the settings. The default of a split is both; own data have no default."""
    if config.split is not None:
        return load_classes(config.classes or "both", pairs, CLASSES)
    if config.classes is None:
        raise ConfigError(
            "own data need --classes: a TOML file, discover to find them, or none for no symmetry"
        )
    return load_classes(config.classes, pairs, {"none": ()})


def load_classes(
    chosen: str, pairs: Sequence[Pair], named: Mapping[str, tuple[LexicalClass, ...]]
) -> tuple[LexicalClass, ...]:
    """Classes by their name, from a TOML file, or discovered in the pairs."""
    if chosen == "discover":
        return discover(pairs).classes
    if chosen in named:
        return named[chosen]
    if Path(chosen).suffix != ".toml" and not Path(chosen).exists():
        raise ConfigError(
            f"{chosen!r} is neither a name of classes nor a TOML file"
            f"{nearest(chosen, {*named, 'discover'})}"
        )
    return read_classes(chosen)
