"""From a run to a model that travels: one directory, and a card with the figures that there are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from equitrans.data import Pair
from equitrans.errors import EquitransError
from equitrans.files import refuse_used
from equitrans.training.cards import Figures
from equitrans.training.runs import Run
from equitrans.training.trained import Trained


@dataclass(frozen=True)
class TestSet:
    """Pairs to judge a model by, and what they are called."""

    __test__ = False  # pytest, this is not for you
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
    """Write the model of a run, or of another model's directory, and give it as it was written."""
    refuse_used(out)
    trained = Trained.load(path, device=device)
    figures = _known(Path(path), trained)
    if test is not None:
        figures = _judged(figures, trained, test, width=width)
    origin = replace(trained.origin, figures=figures)
    if trained.config.learner != "gradient":
        origin = replace(origin, training={})  # these settings were not used
    trained = replace(trained, origin=origin)
    trained.save_pretrained(out)
    return trained


def _known(path: Path, trained: Trained) -> Figures:
    """The figures that a run has left; a model that is no run has those that it came with."""
    if not trained.origin.data or trained.origin.figures != Figures():
        return trained.origin.figures
    run = Run.open(path)
    figures = run.figures()
    try:
        data = run.load_data()
    except (EquitransError, OSError):  # the pairs no longer exist, so their number is unknown
        return figures
    if trained.config.learner == "rules":  # from all pairs at once
        return replace(figures, train_pairs=len(data.train) + len(data.valid))
    return replace(figures, train_pairs=len(data.train), valid_pairs=len(data.valid))


def _judged(figures: Figures, trained: Trained, test: TestSet, *, width: int) -> Figures:
    report = trained.evaluate(test.pairs, width=width)
    return replace(
        figures,
        test_set=test.name,
        test_pairs=len(report.pairs),
        test_right=sum(report.right),
        test_refused=report.refused,
        test_loss=report.loss,
        width=width,
    )
