"""String transduction with exact symmetry: swap words of a lexical class, and the output swaps
with them.

>>> from equitrans import load_split
>>> split = load_split("add_jump")
>>> split.train[0]
Pair(source=('walk',), target=('I_WALK',))
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

try:
    __version__ = version("equitrans")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+source"

if TYPE_CHECKING:
    from equitrans.audit import Audit
    from equitrans.batches import Batch, Rows
    from equitrans.config import RunConfig
    from equitrans.data import DataConfig
    from equitrans.discovery import Discovery, discover
    from equitrans.errors import (
        ConfigError,
        DataError,
        EquitransError,
        RunError,
        SymmetryError,
        VocabularyError,
    )
    from equitrans.estimator import Estimator
    from equitrans.evaluation import Alignment, Prediction, Report
    from equitrans.exporting import export
    from equitrans.extension import Extension, extend
    from equitrans.fitting import fit
    from equitrans.groups import Action, Group, Permutation
    from equitrans.models.attention import AttentionConfig
    from equitrans.models.gordon import GordonConfig
    from equitrans.models.russin import RussinConfig
    from equitrans.models.transducer import Transducer, TransducerConfig
    from equitrans.models.wu import WuConfig
    from equitrans.orbits import Orbits
    from equitrans.pairs import Pair, Split, read_pairs
    from equitrans.runs import Run
    from equitrans.scan import DIRECTIONS, VERBS, load_split
    from equitrans.symmetry import LexicalClass, Symmetry, read_classes
    from equitrans.trained import Trained
    from equitrans.training import Epoch, TrainingConfig
    from equitrans.vocabulary import Vocabulary

__all__ = [
    "Action",
    "Alignment",
    "AttentionConfig",
    "Audit",
    "Batch",
    "ConfigError",
    "DIRECTIONS",
    "DataConfig",
    "DataError",
    "Discovery",
    "Epoch",
    "EquitransError",
    "Estimator",
    "Extension",
    "GordonConfig",
    "Group",
    "LexicalClass",
    "Orbits",
    "Pair",
    "Permutation",
    "Prediction",
    "Report",
    "Rows",
    "Run",
    "RunConfig",
    "RunError",
    "RussinConfig",
    "Split",
    "Symmetry",
    "SymmetryError",
    "Trained",
    "TrainingConfig",
    "Transducer",
    "TransducerConfig",
    "VERBS",
    "Vocabulary",
    "VocabularyError",
    "WuConfig",
    "__version__",
    "discover",
    "export",
    "extend",
    "fit",
    "load_split",
    "read_classes",
    "read_pairs",
]

_ROOMS = {
    "equitrans.audit": "Audit",
    "equitrans.batches": "Batch Rows",
    "equitrans.config": "RunConfig",
    "equitrans.data": "DataConfig",
    "equitrans.discovery": "Discovery discover",
    "equitrans.errors": "ConfigError DataError EquitransError RunError SymmetryError "
    "VocabularyError",
    "equitrans.estimator": "Estimator",
    "equitrans.evaluation": "Alignment Prediction Report",
    "equitrans.exporting": "export",
    "equitrans.extension": "Extension extend",
    "equitrans.fitting": "fit",
    "equitrans.groups": "Action Group Permutation",
    "equitrans.models.attention": "AttentionConfig",
    "equitrans.models.gordon": "GordonConfig",
    "equitrans.models.russin": "RussinConfig",
    "equitrans.models.transducer": "Transducer TransducerConfig",
    "equitrans.models.wu": "WuConfig",
    "equitrans.orbits": "Orbits",
    "equitrans.pairs": "Pair Split read_pairs",
    "equitrans.runs": "Run",
    "equitrans.scan": "DIRECTIONS VERBS load_split",
    "equitrans.symmetry": "LexicalClass Symmetry read_classes",
    "equitrans.trained": "Trained",
    "equitrans.training": "Epoch TrainingConfig",
    "equitrans.vocabulary": "Vocabulary",
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Rooms are opened when something is asked of them: commands that need no torch do not wait
    for it.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
