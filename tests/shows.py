"""Small runs for the explorer to show."""

import random
from pathlib import Path

import torch

from equitrans.pairs import Pair
from equitrans.scan import CLASSES, everything
from equitrans.symmetry import format_classes
from equitrans.trained import Trained
from tiny import SETTINGS

SENTENCE = "walk and run"
LEFT_OUT = {"after", "around", "opposite", "turn"}
"""Few rules are soon learned."""


def make_runs(folder: Path) -> Path:
    """Train runs of a second each, with the command that a user has."""
    from equitrans.cli.main import main

    pairs = [
        pair for pair in everything() if len(pair.target) <= 4 and not LEFT_OUT & {*pair.source}
    ]
    random.Random(0).shuffle(pairs)
    pairs = [*pairs[:80], Pair(("walk", "and", "run"), ("I_WALK", "I_RUN"))]
    lines = [f"{' '.join(x)}\t{' '.join(y)}\n" for x, y in dict.fromkeys(pairs)]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "classes.toml").write_text(format_classes(CLASSES["both"]), encoding="utf-8")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        for name, options in {
            "jump": [*_settings(), "--orbits", SENTENCE, "--orbits-every", "10"],
            "rules": ["--model.aligner", "recursive"],
            "attention": ["--model", "attention", "--training.epochs", "1"],
        }.items():
            data = ["--data", folder / "pairs.tsv", "--classes", folder / "classes.toml"]
            data += ["--validation", "0.3", "--quiet"]
            command = ["train", *data, "--out", folder / name, *options]
            assert main([str(part) for part in command]) == 0
        Trained.load(folder / "jump").save(folder / "bare")
    finally:
        torch.set_default_dtype(before)
    return folder


def _settings() -> list[str]:
    settings = SETTINGS | {"training.epochs": 30, "training.learning_rate": 0.02}
    settings |= {"model.hidden": 24, "model.embedding": 8, "model.k": 8, "model.dropout": 0.0}
    return [part for name, value in settings.items() for part in (f"--{name}", str(value))]
