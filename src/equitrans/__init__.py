"""String transduction with exact symmetry: swap words of a lexical class, and the output swaps
with them.

>>> from equitrans import load_split
>>> split = load_split("add_jump")
>>> split.train[0]
Pair(source=('walk',), target=('I_WALK',))
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    __version__ = version("equitrans")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+source"


def face(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package: the names that its ``__init__``
    imports under TYPE_CHECKING are imported on first use, so that commands without torch do not
    wait for it.
    """
    source = Path(str(sys.modules[room].__file__)).read_text(encoding="utf-8")
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    home = {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    names = sorted(home)
    return getattr_, lambda: names, names


if TYPE_CHECKING:
    from equitrans.analysis import Alignment, Audit, Orbits, Prediction, Report
    from equitrans.data import (
        DIRECTIONS,
        VERBS,
        DataConfig,
        Discovery,
        Finding,
        Inspection,
        Pair,
        Rows,
        Split,
        discover,
        inspect_pairs,
        load_split,
        read_classes,
        read_pairs,
    )
    from equitrans.errors import (
        ConfigError,
        DataError,
        EquitransError,
        RunError,
        SymmetryError,
        VocabularyError,
    )
    from equitrans.models import (
        AttentionConfig,
        BackoffConfig,
        GordonConfig,
        LaneConfig,
        RussinConfig,
        TransducerConfig,
        TreesConfig,
        WuConfig,
    )
    from equitrans.paper import (
        Action,
        Batch,
        Group,
        LexicalClass,
        Permutation,
        Symmetry,
        Transducer,
        Vocabulary,
    )
    from equitrans.training import (
        Certificate,
        Comparison,
        Epoch,
        Estimator,
        Extension,
        Run,
        RunConfig,
        Study,
        Trained,
        TrainingConfig,
        certify,
        compare,
        curve,
        export,
        extend,
        fit,
        learn,
    )

__getattr__, __dir__, __all__ = face(__name__)
__all__.insert(0, "__version__")
