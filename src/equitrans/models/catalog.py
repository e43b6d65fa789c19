"""Build models from their settings, and check the limits of their size."""

from dataclasses import fields
from math import prod

from equitrans.errors import ConfigError, SymmetryError, VocabularyError
from equitrans.models.backoff import Backoff
from equitrans.models.baselines import (
    Gordon,
    HardAttention,
    Lane,
    SoftAttention,
    SyntacticAttention,
)
from equitrans.models.configs import (
    BackoffConfig,
    GordonConfig,
    LaneConfig,
    ModelConfig,
    RussinConfig,
    TransducerConfig,
    TreesConfig,
    WuConfig,
)
from equitrans.models.recursive import Learned, RecursiveTransducer
from equitrans.models.table import TableTranslator
from equitrans.models.trees import Trees
from equitrans.paper import (
    MARGINALS,
    Aligner,
    Model,
    Symmetry,
    Transducer,
    Translator,
)
from equitrans.settings import (
    LARGEST_CLASS,
    LARGEST_GROUP,
    LARGEST_SIZE,
    LARGEST_TABLE,
    LARGEST_VOCABULARY,
    MOST_CLASSES,
)


def build(config: ModelConfig, symmetry: Symmetry, learned: Learned | None = None) -> Model:
    """A new model with random weights from torch's generator. Rules are those of ``learned``, or
    none.
    """
    if isinstance(config, TransducerConfig):
        return _transducer(config, symmetry, learned)
    if isinstance(config, BackoffConfig):
        second = build(config.backing, symmetry)
        rules = build(config.rules, symmetry, learned)
        assert isinstance(rules, RecursiveTransducer)
        return Backoff(symmetry, second, rules)
    if isinstance(config, GordonConfig):
        return Gordon(
            symmetry,
            hidden=config.hidden,
            output_bias=config.output_bias,
            teacher_forcing=config.teacher_forcing,
        )
    if isinstance(config, RussinConfig):
        return SyntacticAttention(
            symmetry, semantics=config.semantics, syntax=config.syntax, dropout=config.dropout
        )
    if isinstance(config, LaneConfig):
        return Lane(
            symmetry,
            size=config.size,
            longest=config.longest,
            dropout=config.dropout,
            samples=config.samples,
            simplicity=config.simplicity,
            baseline=config.baseline,
            composer_rate=config.composer_rate,
        )
    if isinstance(config, TreesConfig):
        return Trees(symmetry, empty=config.empty, draws=config.draws)
    if isinstance(config, WuConfig):
        return HardAttention(
            symmetry, embedding=config.embedding, hidden=config.hidden, dropout=config.dropout
        )
    return SoftAttention(
        symmetry,
        embedding=config.embedding,
        hidden=config.hidden,
        context=config.context,
        dropout=config.dropout,
    )


def _transducer(
    config: TransducerConfig, symmetry: Symmetry, learned: Learned | None
) -> Transducer | RecursiveTransducer:
    marginal = MARGINALS[config.marginal]
    if config.translator == "table":
        translator: TableTranslator | Translator = TableTranslator(symmetry)
    else:
        translator = Translator(symmetry, k=config.k, d=config.d, scaled=config.scaled)
    if config.aligner == "recursive":
        return RecursiveTransducer(symmetry, translator, marginal, learned or Learned.nothing())
    aligner = Aligner(
        symmetry,
        embedding=config.embedding,
        hidden=config.hidden,
        tied=config.encoder == "tied",
        dropout=config.dropout,
        forget_bias=config.forget_bias,
    )
    return Transducer(symmetry, translator, aligner, marginal, warm_start=config.warm_start)


def check_limits(config: ModelConfig, symmetry: Symmetry) -> None:
    """Raise an error if the vocabularies, classes or sizes of a model exceed a limit."""
    for side, vocabulary in (("source", symmetry.source), ("target", symmetry.target)):
        if len(vocabulary.words) > LARGEST_VOCABULARY:
            raise VocabularyError(
                f"{len(vocabulary.words)} {side} words; the limit is {LARGEST_VOCABULARY}"
            )
    if len(symmetry.classes) > MOST_CLASSES:
        raise SymmetryError(f"{len(symmetry.classes)} classes; the limit is {MOST_CLASSES}")
    for c in symmetry.classes:
        if len(c.source) > LARGEST_CLASS:
            raise SymmetryError(
                f"class {c.name!r} has {len(c.source)} words; the limit is {LARGEST_CLASS}"
            )
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, int) and value > LARGEST_SIZE:
            raise ConfigError(f"model.{field.name} is {value}; the limit is {LARGEST_SIZE}")
    order = prod(len(c.source) for c in symmetry.classes)  # of the product of cyclic groups
    if isinstance(config, GordonConfig) and order > LARGEST_GROUP:
        raise ConfigError(
            f"the group of the classes has {order} elements; the model 'gordon' has weights for "
            f"each element, and the limit is {LARGEST_GROUP}"
        )
    entries = len(symmetry.source) * len(symmetry.target)
    table = isinstance(config, TransducerConfig) and config.translator == "table"
    table |= isinstance(config, TreesConfig) or (
        isinstance(config, BackoffConfig) and config.second == "trees"
    )
    if table and entries > LARGEST_TABLE:
        raise ConfigError(
            f"a table of {len(symmetry.source)} × {len(symmetry.target)} words is too large; "
            f"choose model.translator stack, or at most {LARGEST_TABLE} entries"
        )
