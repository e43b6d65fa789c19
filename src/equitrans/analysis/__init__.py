"""Analysis of any model: decoding, evaluation, audits, orbits, extension, plots."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.analysis.audits import Audit, audit, move
    from equitrans.analysis.decoding import beam_search, decode
    from equitrans.analysis.differences import Difference, bootstrap_interval, paired_difference
    from equitrans.analysis.evaluation import (
        align,
        evaluate,
        in_parts,
        judge,
        losses,
        mean_loss,
        predict,
        report,
        stuck_classes,
    )
    from equitrans.analysis.extension import Cells, Extended, extend_model
    from equitrans.analysis.families import (
        Orbits,
        family,
        is_plain,
        observed_orbits,
        orbits,
        sharpness,
        theoretical_orbits,
    )
    from equitrans.analysis.refusals import Unreadable, known_pairs, unknown_targets
    from equitrans.analysis.reports import Alignment, Prediction, Report, Tally, Words

__getattr__, __dir__, __all__ = face(__name__)
