"""A model ready for use: sentences in, predictions out. Knows how it is kept on disk, not how it
was trained.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from equitrans import evaluation
from equitrans.batches import Rows, in_order
from equitrans.errors import EquitransError, RunError, nearest
from equitrans.evaluation import Alignment, Prediction, Report, Words
from equitrans.files import write_atomically
from equitrans.grammar.learned import Learned, from_json, to_json
from equitrans.models.recursive import RecursiveTransducer
from equitrans.models.transducer import Transducer, TransducerConfig
from equitrans.pairs import Pair, join_words, split_words
from equitrans.symmetry import LexicalClass, Symmetry
from equitrans.vocabulary import Vocabulary

FORMAT = 1
"""The format of the files below; a directory of a higher one is refused."""

WEIGHTS = "best.safetensors"
GRAMMAR = "grammar.json"

T = TypeVar("T")


@dataclass(frozen=True)
class Trained:
    """A trained transducer.

    >>> trained = Trained.new(TransducerConfig(), Symmetry.of([], [(("a",), ("A",))]), max_length=3)
    >>> len(trained.predict(["a a"])[0].words) <= 3
    True
    """

    model: Transducer | RecursiveTransducer
    config: TransducerConfig
    max_length: int
    characters: bool = False

    @classmethod
    def new(
        cls,
        config: TransducerConfig,
        symmetry: Symmetry,
        *,
        max_length: int,
        characters: bool = False,
        seed: int = 0,
        learned: Learned | None = None,
    ) -> "Trained":
        """A model with random weights, the same for the same seed; a recursive aligner has the
        rules given, or none.
        """
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model: Transducer | RecursiveTransducer
            if config.aligner == "recursive":
                model = config.build_recursive(symmetry, learned or Learned.nothing())
            else:
                model = config.build(symmetry)
            return cls(model, config, max_length, characters)

    @property
    def symmetry(self) -> Symmetry:
        """The classes and vocabularies of the model."""
        return self.model.symmetry

    def words(self, sentence: str | Sequence[str]) -> Words:
        """A sentence as words."""
        if isinstance(sentence, str):
            return split_words(sentence, characters=self.characters)
        return tuple(sentence)

    def text(self, words: Iterable[str]) -> str:
        """Words as a sentence."""
        return join_words(words, characters=self.characters)

    def predict(
        self, sentences: Iterable[str | Sequence[str]], *, width: int = 3
    ) -> list[Prediction]:
        """The best target of each sentence, by beam search; width 1 is greedy."""
        return [best[0] for best in self.n_best(sentences, n=1, width=width)]

    def n_best(
        self, sentences: Iterable[str | Sequence[str]], *, n: int, width: int = 3
    ) -> list[list[Prediction]]:
        """Up to n targets of each sentence, best first."""
        return evaluation.predict(
            self.model,
            [self.words(s) for s in sentences],
            width=max(width, n),
            max_length=self.max_length,
            n_best=n,
        )

    def evaluate(self, pairs: Sequence[Pair], *, width: int = 3) -> Report:
        """Exact match over pairs, with errors and breakdowns."""
        return evaluation.evaluate(self.model, pairs, width=width, max_length=self.max_length)

    def score(self, pairs: Sequence[Pair], *, width: int = 3) -> float:
        """The share of pairs predicted exactly."""
        return self.evaluate(pairs, width=width).exact_match

    @torch.no_grad()
    def align(self, pair: Pair) -> Alignment:
        """Which source word each target word comes from."""
        self.model.eval()
        symmetry, device = self.symmetry, next(self.model.parameters()).device
        # one pair in a batch of its own: the row may be another member of its orbit, aligned alike
        (batch,) = in_order(Rows.of([pair], symmetry))
        prob = self.model.alignments(batch.to(device))[0].tolist()
        return Alignment(
            source=("BOS", *pair.source, "EOS"),
            target=(*pair.target, "EOS"),
            prob=tuple(tuple(row) for row in prob),
        )

    def save(self, directory: Path | str) -> None:
        """Write ``config.json``, ``vocabulary.json`` and the weights into a directory."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.save_description(directory)
        self.save_grammar(directory)
        write_atomically(directory / WEIGHTS, save(self.model.state_dict()))

    def save_description(self, directory: Path, **more: Any) -> None:
        """Everything but the weights."""
        from equitrans import __version__

        config = {
            "format": FORMAT,
            "version": __version__,
            "max_length": self.max_length,
            "characters": self.characters,
            "model": asdict(self.config),
            **more,
        }
        vocabulary = {
            "source": self.symmetry.source.words,
            "target": self.symmetry.target.words,
            "classes": [asdict(c) for c in self.symmetry.classes],
        }
        write_atomically(directory / "vocabulary.json", _json(vocabulary))
        write_atomically(directory / "config.json", _json(config))

    def save_grammar(self, directory: Path) -> None:
        """The rules of a recursive aligner, where the model has one."""
        if isinstance(self.model, RecursiveTransducer):
            content = {"format": FORMAT, **to_json(self.model.learned, self.symmetry)}
            write_atomically(directory / GRAMMAR, _json(content))

    @classmethod
    def load(cls, directory: Path | str, *, device: str | torch.device = "cpu") -> "Trained":
        """Read what ``save`` or a training run has written."""
        directory = Path(directory)
        trained = cls.load_description(directory)
        path = directory / WEIGHTS
        if not path.is_file():
            raise RunError(
                f"{path} is missing: training ended before its first checkpoint; "
                f"equitrans train --resume {directory} continues it"
            )
        try:
            trained.model.load_state_dict(load_file(path))
        except (SafetensorError, RuntimeError) as error:
            raise RunError(f"{path} does not hold this model's weights: {error}") from None
        trained.model.to(device).eval()
        return trained

    @classmethod
    def load_description(cls, directory: Path) -> "Trained":
        """The model that a directory describes, with weights yet to be filled in."""
        config = read_json(directory / "config.json")
        words = read_json(directory / "vocabulary.json")
        try:
            model = from_dict(TransducerConfig, config["model"])
            symmetry = Symmetry(
                Vocabulary(tuple(words["source"])),
                Vocabulary(tuple(words["target"])),
                tuple(
                    LexicalClass(c["name"], tuple(c["source"]), tuple(c["target"]))
                    for c in words["classes"]
                ),
                model.group,
            )
            learned = None
            if model.aligner == "recursive" and (directory / GRAMMAR).is_file():
                learned = from_json(read_json(directory / GRAMMAR), symmetry)
            return cls.new(
                model,
                symmetry,
                max_length=config["max_length"],
                characters=config["characters"],
                learned=learned,
            )
        except (KeyError, TypeError, EquitransError) as error:
            raise RunError(f"{directory} does not describe a model: {error!r}") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file of a run directory, of a format that this version reads."""
    if not path.parent.is_dir():
        raise RunError(f"{path.parent}: no such run directory")
    if not path.is_file():
        raise RunError(f"{path.parent} is not a complete run directory: {path.name} is missing")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise RunError(f"{path} is damaged: expected an object")
    if content.get("format", FORMAT) > FORMAT:
        raise RunError(
            f"{path.parent} was written by equitrans {content.get('version')} in format "
            f"{content['format']}; this version reads up to {FORMAT}: please upgrade"
        )
    return content


def from_dict(cls: type[T], content: dict[str, Any]) -> T:
    """A settings dataclass from a dictionary; an unknown name is answered with the nearest one."""
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    for name in content:
        if name not in names:
            raise RunError(f"{name!r} is not a setting{nearest(name, names)}")
    return cls(**content)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
