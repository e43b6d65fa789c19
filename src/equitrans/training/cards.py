"""The origin of a model, and the model card with it: a README.md in the format of the Hugging Face
hub. Unknown facts are left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any

from equitrans.errors import ConfigError, nearest, shown
from equitrans.paper import LexicalClass, Symmetry
from equitrans.settings import check_seed, check_settings, from_dict

SHOWN = 8
"""Largest number of words of a class on a card."""


@dataclass(frozen=True)
class Figures:
    """The results of a training; None for an unknown figure.

    Args:
        train_pairs: number of training pairs
        valid_pairs: number of validation pairs
        epochs: number of epochs
        best_epoch: number of the epoch of the weights
        seconds: time of training
        valid_loss: mean −log p per validation pair at the best epoch
        valid_accuracy: share of validation pairs that greedy decoding predicts exactly then
        test_set: name of the test pairs
        test_pairs: number of test pairs
        test_right: number of test pairs that are predicted exactly
        test_refused: number of test pairs that the model refuses
        test_loss: mean −log p per test pair
        width: beam width of the predictions

    """

    train_pairs: int | None = None
    valid_pairs: int | None = None
    epochs: int | None = None
    best_epoch: int | None = None
    seconds: float | None = None
    valid_loss: float | None = None
    valid_accuracy: float | None = None
    test_set: str | None = None
    test_pairs: int | None = None
    test_right: int | None = None
    test_refused: int | None = None
    test_loss: float | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        check_settings("figures", self)

    @property
    def exact_match(self) -> float | None:
        """The share of test pairs predicted exactly."""
        if self.test_right is None or not self.test_pairs:
            return None
        return self.test_right / self.test_pairs


@dataclass(frozen=True)
class Origin:
    """The known facts about the training of a model."""

    version: str | None = None
    seed: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> "Origin":
        """The origin in a config.json: the table ``origin`` of an exported model, or the settings
        of a run.

        >>> Origin.of_config({"seed": 3, "data": {"split": "length"}, "training": {}}).split
        'length'
        """
        content = config.get("origin")
        if content is None and "training" in config:
            content = {name: config.get(name) for name in ("version", "seed", "data", "training")}
        if content is None:
            return cls()
        if not isinstance(content, dict):
            raise ConfigError(f"origin is {shown(content)}; expected a table")
        for name in content:
            if name not in (known := ("version", "seed", "data", "training", "figures")):
                raise ConfigError(f"{shown(name)} is no part of origin{nearest(name, known)}")
        for part in ("data", "training"):
            if not _is_flat(content.get(part, {})):
                raise ConfigError(
                    f"origin.{part} is {shown(content[part])}; expected a table of plain values"
                )
        for name in ("split", "scan_dir"):
            if not isinstance(found := content.get("data", {}).get(name), str | None):
                raise ConfigError(f"data.{name} is {shown(found)}; expected a text")
        if not isinstance(content.get("version"), str | None):
            raise ConfigError(f"origin.version is {shown(content['version'])}; expected a text")
        if content.get("seed") is not None:
            check_seed(content["seed"])
        figures = from_dict(Figures, content.get("figures", {}))
        return cls(**{**content, "figures": figures})

    @property
    def split(self) -> str | None:
        """The SCAN split that the model was trained on, or None."""
        return self.data.get("split")

    @property
    def scan_dir(self) -> str | None:
        """The folder of the official SCAN files on the training machine, or None."""
        return self.data.get("scan_dir")

    def to_json(self) -> dict[str, Any]:
        """The origin without folder names, which are private, and without unknown facts."""
        data = {name: value for name, value in self.data.items() if name != "scan_dir"}
        for name in ("file", "classes"):
            if isinstance(data.get(name), str):
                data[name] = PurePath(data[name]).name
        known = {name: value for name, value in asdict(self.figures).items() if value is not None}
        content = {"version": self.version, "seed": self.seed, "data": data}
        content |= {"training": dict(self.training), "figures": known}
        return {name: value for name, value in content.items() if value not in (None, {})}


def _is_flat(content: object) -> bool:
    return isinstance(content, dict) and all(
        isinstance(value, str | int | float | None) for value in content.values()
    )


def model_card(
    name: str,
    config: Mapping[str, Any],
    origin: Origin,
    symmetry: Symmetry,
    *,
    parameters: int,
) -> str:
    """The text of a model card: only known facts."""
    name, known = _cell(name), origin.to_json()
    # JSON values are YAML values
    head = "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in _front_matter(name, known, origin).items()
    )
    parts = [
        f"---\n{head}---",
        f"# {name}",
        f"A string transducer saved by equitrans {config['version']}: {config['kind']}, "
        f"{parameters} parameters, {len(symmetry.source.words)} source words and "
        f"{len(symmetry.target.words)} target words.",
        "## Use",
        "```python\nfrom equitrans import Trained\n\n"
        f"model = Trained.from_pretrained({name!r})  # or the folder of these files\n"
        'model.predict(["…"])[0].words\n```',
        "## Lexical classes",
        _classes(symmetry.classes, symmetry.kind) if symmetry.classes else "None.",
    ]
    if origin.figures != Figures():
        parts += ["## Figures", _table(_figures(origin.figures))]
    trained = {"version": known.get("version"), "seed": known.get("seed")}
    trained |= {f"data.{k}": v for k, v in known.get("data", {}).items()}
    trained |= {f"model.{k}": v for k, v in config["model"].items()}
    trained |= {f"training.{k}": v for k, v in known.get("training", {}).items()}
    parts += ["## Settings", _table((k, v) for k, v in trained.items() if v is not None)]
    return "\n\n".join(parts) + "\n"


def _front_matter(name: str, known: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """The YAML header that the hub reads, with results in its model-index."""
    head: dict[str, Any] = {
        "library_name": "equitrans",
        "tags": ["equitrans", "string-transduction", "equivariance"],
    }
    figures = origin.figures
    if origin.split is not None:
        head["datasets"] = ["scan"]
    if figures.exact_match is not None:
        data = "scan" if figures.test_set and "SCAN" in figures.test_set else "pairs"
        result = {
            "task": {"type": "text2text-generation", "name": "string transduction"},
            "dataset": {"type": data, "name": figures.test_set or "test pairs"},
            "metrics": [
                {"type": "exact_match", "name": "exact match", "value": figures.exact_match}
            ],
        }
        head["model-index"] = [{"name": name, "results": [result]}]
    if known:
        head["equitrans"] = dict(known)
    return head


def _figures(figures: Figures) -> Iterator[tuple[str, object]]:
    if figures.exact_match is not None:
        where = f"exact match on {figures.test_set}" if figures.test_set else "exact match"
        yield (
            where,
            f"{100 * figures.exact_match:.2f} % ({figures.test_right} of {figures.test_pairs})",
        )
    labels = {
        "test_refused": "refused test pairs",
        "test_loss": "−log p of a test pair",
        "width": "beam width",
        "valid_accuracy": "share of validation pairs right, greedily",
        "valid_loss": "−log p of a validation pair",
        "train_pairs": "training pairs",
        "valid_pairs": "validation pairs",
        "epochs": "epochs",
        "best_epoch": "best epoch",
        "seconds": "seconds of training",
    }
    for name, label in labels.items():
        value = getattr(figures, name)
        if value is not None:
            yield label, f"{value:.4g}" if isinstance(value, float) else value


def _table(rows: Iterable[tuple[str, object]]) -> str:
    """A Markdown table of two columns; values are escaped."""
    lines = (f"| {_cell(label)} | {_cell(value)} |" for label, value in rows)
    return "\n".join(["| what | value |", "| --- | --- |", *lines])


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def _classes(classes: Iterable[LexicalClass], kind: str) -> str:
    """Classes as an indented block, so that no word is read as Markdown."""
    lines = [f"Words of a class can be exchanged, with their translations ({kind} group):", ""]
    for c in classes:
        pairs = [f"{' / '.join(s)} → {' / '.join(t)}" for s, t in c.rows]
        if c.is_open:
            pairs.append("new words → themselves" if c.pattern is None else f"{c.pattern} → itself")
        more = f", and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
        text = f"{c.name}: {', '.join(pairs[:SHOWN])}{more}"
        lines.append("    " + " ".join(text.split()))
    return "\n".join(lines)
