"""A trained model: sentences in, predictions out. On disk it is a directory:

config.json        settings, version, and the known facts about its training
vocabulary.json    words and classes
grammar.json       the rules of a recursive aligner
model.safetensors  the weights
README.md          a model card, if the model was exported

A training run has the same files, and some more.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from equitrans import __version__, analysis, models, settings
from equitrans.analysis import Alignment, Audit, Orbits, Prediction, Report, Words
from equitrans.data import (
    AnyPair,
    Pair,
    Read,
    Reading,
    as_pairs,
    check_classes,
    glued,
    join_words,
    split_words,
)
from equitrans.errors import ConfigError, DataError, RunError, SymmetryError, shown
from equitrans.files import FORMAT, as_path, find_file, read_part, refuse_links
from equitrans.models import Derivation, Learned, ModelConfig, RecursiveTransducer, Suggestion
from equitrans.paper import LexicalClass, Model, Symmetry
from equitrans.settings import check_count, check_iterable, check_pairs, check_sentence
from equitrans.training import hub, spelled, studied
from equitrans.training.cards import Origin, model_card
from equitrans.training.directories import (
    GRAMMAR,
    WEIGHTS,
    describing,
    read_description,
    write_description,
    write_model,
)
from equitrans.training.tensors import Budget, load_weights, read_header

if TYPE_CHECKING:
    from equitrans.training.study import Study

FILES = ("config.json", "vocabulary.json", GRAMMAR, WEIGHTS)
"""The files from which a model is loaded."""


@dataclass(frozen=True)
class Trained:
    """A trained model: vocabularies, classes, weights, and how sentences are split into words.

    >>> from equitrans import TransducerConfig
    >>> trained = Trained.new(TransducerConfig(), Symmetry.of([], [(("a",), ("A",))]), max_length=3)
    >>> len(trained.predict(["a a"])[0].words) <= 3
    True
    """

    model: Model
    config: ModelConfig
    max_length: int
    """Largest number of words of a prediction."""
    characters: bool = False
    """Whether words are single characters."""
    origin: Origin = field(default_factory=Origin)
    split: str | None = None
    """A character at which target words are read apart."""
    capitals: bool = False
    """Whether the first word of a source is read in lower case, if it is known only so."""
    study: "Study | None" = field(default=None, compare=False, repr=False)
    """How the model was judged, if ``fit`` learned it from pairs alone."""

    @classmethod
    def new(
        cls,
        config: ModelConfig,
        symmetry: Symmetry,
        *,
        max_length: int,
        characters: bool = False,
        split: str | None = None,
        capitals: bool = False,
        seed: int = 0,
        learned: Learned | None = None,
        budget: Budget | None = None,
    ) -> "Trained":
        """A model with random weights by the seed; its rules are those of ``learned``, or none."""
        models.name_of(config)
        models.check_limits(config, symmetry)
        with (
            torch.random.fork_rng(devices=[]),
            budget or Budget(settings.MOST_WEIGHTS, "the model would have more than {} weights"),
        ):
            torch.manual_seed(seed)
            model = models.build(config, symmetry, learned)
        return cls(model, config, max_length, characters, split=split, capitals=capitals)

    @property
    def symmetry(self) -> Symmetry:
        """The classes and vocabularies of the model."""
        return self.model.symmetry

    @property
    def grammar(self) -> Learned | None:
        """The learned rules with their evidence, or None; ``print`` shows them."""
        return self.model.learned

    def _repr_html_(self) -> str:
        return studied.trained_html(self)

    def derive(self, sentence: str | Sequence[str]) -> Derivation | None:
        """The likeliest derivation of a sentence, or None; raise ConfigError without rules."""
        read = self.reading.source(self.words(sentence))
        return self._rules().derivation(read.symbols)

    def suggest(self, n: int = 10) -> list[Suggestion]:
        """Up to ``n`` sentences whose targets would settle the most, best first."""
        check_count("n", n)
        return models.suggest(self._rules(), n)

    def _rules(self) -> RecursiveTransducer:
        model = self.model.rules if isinstance(self.model, models.Backoff) else self.model
        if not isinstance(model, RecursiveTransducer):
            raise ConfigError("the model has no rules; learn it with aligner='recursive'")
        return model

    def words(self, sentence: str | Sequence[str]) -> Words:
        """The words of a source sentence; raise DataError if there are none or too many."""
        words = self._split(sentence)
        if not words:
            raise DataError(f"{sentence!r} has no words")
        check_sentence(words)
        return words

    @cached_property
    def reading(self) -> Reading:
        """How words become the symbols of the model, and symbols words."""
        known = frozenset(self.symmetry.source.index)
        how = (self.symmetry.classes, self.characters, self.split, known)
        return Reading(*how, capitals=self.capitals)

    def text(self, words: Iterable[str]) -> str:
        """The sentence of some words."""
        return join_words(glued(words), characters=self.characters)

    # --- questions to the model

    def predict(
        self, sentences: Iterable[str | Sequence[str]], *, width: int = 3, lenient: bool = False
    ) -> list[Prediction]:
        """The best target of each sentence, by beam search; width 1 is greedy. A sentence without
        a target, for example one with an unknown word, has ``refused`` and a ``reason``. A sentence
        whose rules combine in a way that no training pair suggests is refused too; ``lenient``
        answers it with a ``remark``.
        """
        return [best[0] for best in self.n_best(sentences, n=1, width=width, lenient=lenient)]

    def n_best(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        n: int,
        width: int = 3,
        lenient: bool = False,
    ) -> list[list[Prediction]]:
        """Up to n targets of each sentence, best first."""
        check_iterable("sentences", sentences)
        check_count("n", n)
        check_count("width", width)
        asked = [self.reading.attempt(self._split(sentence)) for sentence in sentences]
        symbols = [read.symbols for read in asked if isinstance(read, Read)]
        found = iter(self.decode(symbols, n=n, width=width, lenient=lenient))
        return [
            spelled.spell_predictions(next(found), self.reading, read)
            if isinstance(read, Read)
            else [Prediction.refusal(read)]
            for read in asked
        ]

    def decode(
        self, sentences: Sequence[Words], *, n: int, width: int, lenient: bool = False
    ) -> list[list[Prediction]]:
        """Up to n targets of each sentence, best first, all in symbols."""
        options = {"max_length": self.max_length, "n_best": n, "width": max(width, n)}
        return analysis.predict(self.model, sentences, lenient=lenient, **options)

    def evaluate(self, pairs: Iterable[AnyPair], *, width: int = 3) -> Report:
        """Exact match over pairs, with errors, by length and by template; refusals are errors."""
        pairs = self._pairs(pairs)
        if not pairs:
            raise DataError("nothing to evaluate: there are no pairs")
        best = self.predict([pair.source for pair in pairs], width=width)
        templates = [self.template(pair.source) for pair in pairs]
        return analysis.report(self.model, pairs, best, templates, self.reading.readable(pairs))

    def score(self, pairs: Iterable[AnyPair], *, width: int = 3) -> float:
        """The share of pairs predicted exactly."""
        return self.evaluate(pairs, width=width).exact_match

    def align(self, pair: AnyPair) -> Alignment:
        """Which source word each target word comes from."""
        (given,) = self._pairs([pair])
        return spelled.align(self.model, self.reading, given)

    def audit(
        self,
        pairs: Iterable[AnyPair],
        classes: Iterable[LexicalClass] | None = None,
        *,
        tolerance: float = 1e-5,
        width: int = 3,
    ) -> Audit:
        """How equivariant the model is on some pairs, under its own or the given classes."""
        own = self.symmetry
        symmetry = own if classes is None else replace(own, classes=check_classes(classes))
        if not symmetry.classes:
            raise SymmetryError("the model has no classes; give the classes for the audit")
        options = {"width": width, "max_length": self.max_length}
        read = self.reading.pairs(self._pairs(pairs))
        return analysis.audit(self.model, read, symmetry, tolerance=tolerance, **options)

    def orbits(
        self, sentence: str | Sequence[str], target: str | Sequence[str] | None = None
    ) -> Orbits:
        """The family of a sentence, or raise DataError; the default target is the prediction."""
        source = self.words(sentence)
        if target is None:
            (best,) = self.predict([source])
            if best.refused:
                raise DataError(f"{shown(self.text(source))} has no family: {best.reason}")
            target = best.words
        (given,) = self._pairs([(source, target)])
        return spelled.orbits(self.model, self.reading, given)

    def template(self, words: Words) -> Words:
        """A source in which the names of classes replace their words."""
        read = self.reading.attempt(words)
        return self.symmetry.template(read.symbols if isinstance(read, Read) else words)

    def _split(self, sentence: str | Sequence[str]) -> Words:
        """The words of a sentence, which may be none."""
        if isinstance(sentence, str):
            return split_words(sentence, characters=self.characters)
        if not isinstance(sentence, Sequence) or not all(isinstance(w, str) for w in sentence):
            raise DataError(f"{shown(sentence)} is not a sentence; expected a string or words")
        return tuple(sentence)

    def _pairs(self, pairs: Iterable[AnyPair]) -> tuple[Pair, ...]:
        """Pairs from all that has two sides; raise DataError if a sentence is too long."""
        check_iterable("pairs", pairs)
        made = as_pairs(pairs, characters=self.characters)
        check_pairs(made)
        return made

    # --- directories and the hub

    def save_pretrained(self, directory: Path | str, *, name: str | None = None) -> None:
        """Write a complete model directory with a model card."""
        directory = as_path(directory)
        size = sum(p.numel() for p in self.model.parameters())
        name = name or os.path.basename(os.path.realpath(directory))
        card = model_card(name, self._config(), self.origin, self.symmetry, parameters=size)
        write_model(directory, self._config(), self.model, card=card)

    @classmethod
    def from_pretrained(
        cls, name: Path | str, *, revision: str | None = None, device: str | torch.device = "cpu"
    ) -> "Trained":
        """Load a model from a folder, or by its name ``owner/name`` from the Hugging Face hub."""
        with hub.fetched(name, FILES, revision=revision) as folder:
            return cls.load(folder, device=device)

    def push_to_hub(self, name: str, *, private: bool = False, revision: str | None = None) -> str:
        """Upload the model to the Hugging Face hub as ``owner/name``; return its address."""
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder, name=name)
            return hub.push(Path(folder), name, private=private, revision=revision)

    def save(self, directory: Path | str) -> None:
        """Write a model directory without a card. An error leaves the old model, or none."""
        write_model(as_path(directory), self._config(), self.model)

    def save_description(self, directory: Path, **more: Any) -> None:
        """Write config.json, with ``more`` entries, and vocabulary.json."""
        write_description(directory, self._config() | more, self.symmetry)

    def _config(self) -> dict[str, Any]:
        config = {
            "format": FORMAT,
            "version": __version__,
            "max_length": self.max_length,
            "characters": self.characters,
            **({} if self.split is None else {"split_words": self.split}),
            **({"capitals": True} if self.capitals else {}),
            "kind": models.name_of(self.config),
            "model": asdict(self.config),
        }
        origin = self.origin.to_json()
        return config | {"origin": origin} if origin else config

    @classmethod
    def load(cls, directory: Path | str, *, device: str | torch.device = "cpu") -> "Trained":
        """Load the model of a model directory or of a training run."""
        directory = as_path(directory)
        refuse_links(directory)
        read_part(directory / "config.json")  # a missing model or an unknown format comes first
        find_file(directory / "vocabulary.json")
        path = directory / WEIGHTS
        if not path.is_file():
            raise RunError(
                f"{path} is missing: training ended before its first checkpoint; "
                f"equitrans train --resume {directory} continues it"
            )
        header = read_header(path)
        # building a model allocates some weights twice
        budget = Budget(2 * header.numbers + 1_000_000, f"it has more weights than {path}")
        trained = cls.load_description(directory, budget=budget)
        load_weights(path, header, trained.model)
        trained.model.to(device).eval()
        return trained

    @classmethod
    def load_description(
        cls, directory: Path, *, seed: int = 0, budget: Budget | None = None
    ) -> "Trained":
        """The model that a directory describes, with random weights."""
        found = read_description(directory)
        with describing(directory):
            trained = cls.new(
                found.model,
                found.symmetry,
                max_length=found.max_length,
                characters=found.characters,
                split=found.split,
                capitals=found.capitals,
                seed=seed,
                learned=found.learned,
                budget=budget,
            )
        return replace(trained, origin=found.origin)
