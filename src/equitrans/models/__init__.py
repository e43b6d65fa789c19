"""The other models, behind the same interface, and the one factory."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.models.backoff import Backoff, least_confidence
    from equitrans.models.baselines.lane.lane import Lane
    from equitrans.models.catalog import build, check_limits
    from equitrans.models.configs import (
        MODELS,
        AttentionConfig,
        BackoffConfig,
        GordonConfig,
        LaneConfig,
        ModelConfig,
        RussinConfig,
        TransducerConfig,
        TreesConfig,
        WuConfig,
        find_model,
        has_rules,
        name_of,
    )
    from equitrans.models.direct import Answer, Direct, Hypothesis
    from equitrans.models.recursive import (
        Derivation,
        Learned,
        Names,
        Node,
        RecursiveTransducer,
        Suggestion,
        exchangeable_words,
        inductions_remembered,
        learn_from_brackets,
        learn_rules,
        learned_from_json,
        learned_to_json,
        suggest,
    )
    from equitrans.models.table import TableTranslator
    from equitrans.models.trees import Trees

__getattr__, __dir__, __all__ = face(__name__)
