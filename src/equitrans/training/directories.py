"""The files of a model directory: written whole or not at all, and checked when they are read."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equitrans.data import symmetry_from_json, symmetry_to_json
from equitrans.errors import EquitransError, RunError, printable, shown
from equitrans.files import (
    FORMAT,
    LOCK,
    locked,
    read_part,
    refuse_links,
    remove_leftovers,
    write_atomically,
    write_together,
)
from equitrans.models import (
    Learned,
    ModelConfig,
    find_model,
    learned_from_json,
    learned_to_json,
)
from equitrans.paper import Model, Symmetry
from equitrans.settings import LONGEST_PREDICTION, from_dict
from equitrans.training.cards import Origin
from equitrans.training.tensors import pack

WEIGHTS = "model.safetensors"
GRAMMAR = "grammar.json"
CARD = "README.md"
PAIRS = "pairs.tsv"
"""The pairs that equitrans learn has learned from."""


def write_model(
    directory: Path, config: Mapping[str, Any], model: Model, *, card: str | None = None
) -> None:
    """Write a complete model directory. An error leaves the model that was there, or none."""
    parts = {
        "vocabulary.json": _json(symmetry_to_json(model.symmetry)),
        GRAMMAR: _grammar(model),
        WEIGHTS: pack(model.state_dict()),
    }
    if card is not None:
        parts[CARD] = card
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / LOCK, what=str(directory)):
        remove_leftovers(directory)
        write_together(directory, parts | {"config.json": _json(config)})


def write_description(directory: Path, config: Mapping[str, Any], symmetry: Symmetry) -> None:
    """Write config.json and vocabulary.json, for a model without weights."""
    write_atomically(directory / "vocabulary.json", _json(symmetry_to_json(symmetry)))
    write_atomically(directory / "config.json", _json(config))


def write_grammar(directory: Path, model: Model) -> None:
    """Write the rules of a model, if it has any."""
    if (rules := _grammar(model)) is not None:
        write_atomically(directory / GRAMMAR, rules)


def _grammar(model: Model) -> str | None:
    if model.learned is None:
        return None
    return _json({"format": FORMAT, **learned_to_json(model.learned, model.symmetry)})


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Description:
    """What the files of a model directory say, without the weights."""

    model: ModelConfig
    symmetry: Symmetry
    max_length: int
    characters: bool
    split: str | None
    capitals: bool
    learned: Learned | None
    origin: Origin


def read_description(directory: Path) -> Description:
    """The description of a model; raise RunError if it is not one."""
    refuse_links(directory)
    config = read_part(directory / "config.json")
    words = read_part(directory / "vocabulary.json")
    with describing(directory):
        kind = find_model(config.get("kind", "transducer"))  # old directories have no kind
        model = from_dict(kind, model_settings(config), section="model")
        symmetry = symmetry_from_json(words, model.group)
        length = config["max_length"]
        if type(length) is not int or not 1 <= length <= LONGEST_PREDICTION:
            raise RunError(
                f"max_length is {shown(length)}; it must be from 1 to {LONGEST_PREDICTION}"
            )
        if not isinstance(characters := config["characters"], bool):
            raise RunError(f"characters is {shown(characters)}; it must be true or false")
        if not isinstance(split := config.get("split_words"), str | None):
            raise RunError(f"split_words is {shown(split)}; it must be a text of signs")
        if not isinstance(capitals := config.get("capitals", False), bool):
            raise RunError(f"capitals is {shown(capitals)}; it must be true or false")
        learned = None
        if (directory / GRAMMAR).is_file():
            learned = learned_from_json(read_part(directory / GRAMMAR), symmetry)
        origin = Origin.of_config(config)
        reading = (characters, split, capitals)
        return Description(model, symmetry, length, *reading, learned, origin)


def model_settings(config: dict[str, Any]) -> Any:
    """The settings of a model in config.json; an old transducer has no scaled sums."""
    old = {"scaled": False} if config.get("kind", "transducer") == "transducer" else {}
    settings = config["model"]
    return old | settings if isinstance(settings, dict) else settings


@contextmanager
def describing(directory: Path) -> Iterator[None]:
    """Turn an error in a description into a RunError with the directory."""
    try:
        yield
    except KeyError as missing:
        raise RunError(f"{directory} does not describe a model: no {missing}") from None
    except (TypeError, AttributeError, EquitransError) as error:
        why = printable(str(error), 1000)  # a TypeError quotes names of the file in full
        raise RunError(f"{directory} does not describe a model: {why}") from None
