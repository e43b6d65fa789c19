"""String transduction with exact symmetry: swap words of a lexical class, and the output swaps
with them.

>>> from equitrans import load_split
>>> split = load_split("add_jump")
>>> split.train[0]
Pair(source=('walk',), target=('I_WALK',))
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("equitrans")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+source"

from equitrans.batches import Batch, Rows
from equitrans.config import RunConfig
from equitrans.data import DataConfig
from equitrans.errors import (
    ConfigError,
    DataError,
    EquitransError,
    RunError,
    SymmetryError,
    VocabularyError,
)
from equitrans.evaluation import Alignment, Prediction, Report
from equitrans.groups import Action, Group, Permutation
from equitrans.models.transducer import Transducer, TransducerConfig
from equitrans.pairs import Pair, Split, read_pairs
from equitrans.runs import Run, fit
from equitrans.scan import DIRECTIONS, VERBS, load_split
from equitrans.symmetry import LexicalClass, Symmetry, read_classes
from equitrans.trained import Trained
from equitrans.training import Epoch, TrainingConfig
from equitrans.vocabulary import Vocabulary

__all__ = [
    "Action",
    "Alignment",
    "Batch",
    "ConfigError",
    "DIRECTIONS",
    "DataConfig",
    "DataError",
    "Epoch",
    "EquitransError",
    "Group",
    "LexicalClass",
    "Pair",
    "Permutation",
    "Prediction",
    "Report",
    "Rows",
    "Run",
    "RunConfig",
    "RunError",
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
    "__version__",
    "fit",
    "load_split",
    "read_classes",
    "read_pairs",
]
