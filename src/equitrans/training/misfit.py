"""A warning for a model that does not predict the pairs it was trained on."""

import random
from collections.abc import Sequence

from equitrans.data import Pair
from equitrans.models import LaneConfig
from equitrans.training.runs import Run
from equitrans.training.trained import Trained

SAMPLE = 200
"""Number of training pairs that are predicted after training."""

ENOUGH = 0.95
"""Share of them below which a model has not learned its data."""


def lessons_warning(run: Run) -> str | None:
    """A warning if a run has learned in lessons and did not predict enough validation pairs."""
    if not isinstance(config := run.config.model, LaneConfig):
        return None
    last, accuracy = run.epochs()[-1], run.figures().valid_accuracy
    if accuracy is None or accuracy >= config.passing:
        return None
    return (
        f"the lessons ended without success, with that of {last['lesson']} words: the model "
        f"predicts {100 * accuracy:.1f} % of the validation pairs and needs "
        f"{100 * config.passing:g} %; try another --seed"
    )


def misfit_warning(trained: Trained, pairs: Sequence[Pair], *, seed: int) -> str | None:
    """A warning if the model predicts fewer than 95 % of a sample of its training pairs, with the
    cure; None if all is well.
    """
    distinct = list(dict.fromkeys(pairs))
    # a draw of its own: callers that draw pairs with the same seed do not choose the sample
    sample = random.Random(f"misfit {seed}").sample(distinct, min(SAMPLE, len(distinct)))
    right = sum(trained.evaluate(sample, width=1).right)
    if right >= ENOUGH * len(sample):
        return None
    found = f"the model predicts only {right} of {len(sample)} training pairs"
    if trained.config.learner == "rules":
        return f"{found}: no rules explain the others; 'equitrans grammar' lists them"
    if trained.config.learner == "lessons":
        return f"{found}: the lessons ended without success; try another seed"
    cures = [
        "more updates (training.updates)",
        "'equitrans check' for pairs that contradict others",
    ]
    if trained.symmetry.classes and hasattr(trained.config, "aligner"):
        cures.insert(0, "rules instead of the LSTM (model.aligner recursive)")
    return f"{found}: it has not learned its data; try {', '.join(cures)}"
