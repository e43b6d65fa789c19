"""Training: from settings and data to a model, in memory or in a directory."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.training.alone import answerer, write_standalone
    from equitrans.training.asking import sentences_to_ask
    from equitrans.training.boards import Board, load_tensorboard
    from equitrans.training.cards import Figures, Origin
    from equitrans.training.certifying import Certificate, certify
    from equitrans.training.choosing import load_with_best_classes, with_best_classes
    from equitrans.training.comparing import Comparison, Row, compare, compared
    from equitrans.training.config import (
        RunConfig,
        Settings,
        TrainingConfig,
        default_recipe,
        recipe,
        recipe_names,
    )
    from equitrans.training.curves import curve
    from equitrans.training.directories import PAIRS, WEIGHTS
    from equitrans.training.estimator import Estimator
    from equitrans.training.exporting import TestSet, export
    from equitrans.training.fitting import Extension, extend, fit, fitted
    from equitrans.training.learning import Rules, Step
    from equitrans.training.loop import Epoch
    from equitrans.training.misfit import lessons_warning, misfit_warning
    from equitrans.training.runs import Run
    from equitrans.training.studied import unexplained, with_pairs
    from equitrans.training.study import Held, Study, learn, signs
    from equitrans.training.trained import Trained

__getattr__, __dir__, __all__ = face(__name__)
