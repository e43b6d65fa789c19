"""Model directories, as they are written: whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equitrans.data import symmetry_to_json
from equitrans.files import (
    FORMAT,
    LOCK,
    locked,
    remove_leftovers,
    write_atomically,
    write_together,
)
from equitrans.models import learned_to_json
from equitrans.paper import Model, Symmetry
from equitrans.training.tensors import pack

WEIGHTS = "model.safetensors"
GRAMMAR = "grammar.json"
CARD = "README.md"


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
