"""Export a run as a model directory, with a card of all figures that are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from equitrans.data import Pair
from equitrans.errors import EquitransError
from equitrans.files import as_path, refuse_used
from equitrans.training.cards import Figures
from equitrans.training.runs import Run
from equitrans.training.trained import Trained


@dataclass(frozen=True)
class TestSet:
    """Pairs for the test figures of a card, and their name."""

    __test__ = False  # the name would make pytest collect it
    name: str
    pairs: Sequence[Pair]


def export(
    path: Path | str,
    out: Path | str,
    *,
    test: TestSet | None = None,
    width: int = 3,
    device: str | torch.device = "cpu",
) -> Trained:
    """Write the model of a run or model directory to ``out``; return the model as written."""
    refuse_used(out)
    trained = Trained.load(path, device=device)
    figures = _training_figures(as_path(path), trained)
    if test is not None:
        report = trained.evaluate(test.pairs, width=width)
        figures = replace(
            figures,
            test_set=test.name,
            test_pairs=len(report.pairs),
            test_right=sum(report.right),
            test_refused=report.refused,
            test_loss=report.loss if report.scored == len(report.pairs) else None,
            width=width,
        )
    origin = replace(trained.origin, figures=figures)
    if trained.config.learner == "rules":
        origin = replace(origin, training={})  # learning rules does not use these settings
    trained = replace(trained, origin=origin)
    trained.save_pretrained(out)
    return trained


def _training_figures(path: Path, trained: Trained) -> Figures:
    """The figures of the run in a directory; an exported model has its figures with it."""
    if not trained.origin.data or trained.origin.figures != Figures():
        return trained.origin.figures
    run = Run.open(path)
    figures = run.figures()
    try:
        data = run.load_data()
    except (EquitransError, OSError):  # the data are gone, so the number of pairs is unknown
        return figures
    if trained.config.learner == "rules":  # rules are learned from all pairs
        return replace(figures, train_pairs=len(data.train) + len(data.valid))
    return replace(figures, train_pairs=len(data.train), valid_pairs=len(data.valid))
