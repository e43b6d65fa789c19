"""The systems that the paper is compared with."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.models.baselines.attention import SoftAttention
    from equitrans.models.baselines.common import unshared
    from equitrans.models.baselines.gordon import Gordon
    from equitrans.models.baselines.lane.lane import Lane
    from equitrans.models.baselines.russin import SyntacticAttention
    from equitrans.models.baselines.wu import HardAttention

__getattr__, __dir__, __all__ = face(__name__)
