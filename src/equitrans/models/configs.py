"""The settings of every model. This module does not import torch, so that ``--help`` is fast.

The docstrings of the classes are the help texts of ``equitrans train``.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from equitrans.errors import ConfigError, nearest, shown
from equitrans.paper import GroupKind
from equitrans.settings import check_counts, check_fractions, check_settings, check_shares

Learner = Literal["gradient", "rules", "lessons", "backoff"]
"""Gradient descent with validation pairs, rules induced from all pairs, gradient descent on samples
in lessons of growing sentences, or rules and then a second model by gradient descent."""

OutputBias = Literal["free", "tied", "none"]
"""The output bias of Gordon et al.'s model: one per word, one per orbit of words, or none."""


@dataclass(frozen=True)
class TransducerConfig:
    """Settings of the transducer.

    Args:
        aligner: the LSTM of the paper, or recursive rules learned from the pairs
        k: size of the G-embedding (the paper's K)
        d: number of filters (the paper's D)
        embedding: size of the aligner's class embeddings
        hidden: size of the aligner's LSTM states
        translator: the paper's stack of equivariant layers, or a table with one free logit per
            orbit of (source word, target word)
        encoder: one set of weights for both directions, or one per direction
        marginal: how the alignments of a target word are combined
        group: the group of each class: cyclic shifts as in the paper, or all permutations
        dropout: share of the aligner's states dropped in training
        forget_bias: initial bias of the LSTMs' forget gates; with a larger bias the aligner learns
            to count earlier
        warm_start: share of training, at its start, with uniform alignments; the model then
            learns to translate words before it learns to align them
        scaled: the sums over the words of a class of more than four are scaled to four, so that
            large classes are learned as fast as small ones; false in models of version 0.2

    """

    aligner: Literal["lstm", "recursive"] = "lstm"
    k: int = 32
    d: int = 16
    embedding: int = 32
    hidden: int = 64
    translator: Literal["stack", "table"] = "stack"
    encoder: Literal["tied", "separate"] = "tied"
    marginal: Literal["sum", "max", "annealed"] = "sum"
    group: GroupKind = "cyclic"
    dropout: float = 0.3
    forget_bias: float = 1.0
    warm_start: float = 0.05
    scaled: bool = True

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "k", "d", "embedding", "hidden")
        check_shares("model", self, "dropout", "warm_start")

    @property
    def learner(self) -> Learner:
        return "rules" if self.aligner == "recursive" else "gradient"


@dataclass(frozen=True)
class GordonConfig:
    """Settings of the model of Gordon et al. 2020.

    Args:
        hidden: number of channels of the encoder's states per group element and direction (the
            paper's K); the decoder has twice this number
        output_bias: free has one bias per output word, as in the released code, and is not
            equivariant; tied (one bias per orbit of words) and none are equivariant
        teacher_forcing: share of training pairs whose history is the target; for the others it is
            the words that the model predicts

    """

    hidden: int = 64
    output_bias: OutputBias = "free"
    teacher_forcing: float = 0.5

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "hidden")
        check_fractions("model", self, "teacher_forcing")


@dataclass(frozen=True)
class RussinConfig:
    """Settings of the syntactic attention model of Russin et al. 2019 (defaults: as published).

    Args:
        semantics: size of the semantic embeddings
        syntax: size of the syntactic contexts, an even number; the syntactic embeddings and the
            first LSTM have half this size, the attention and the decoder twice this size
        dropout: share of the semantic and syntactic embeddings dropped in training

    """

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    semantics: int = 120
    syntax: int = 200
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "semantics", "syntax")
        check_shares("model", self, "dropout")
        if self.syntax < 2 or self.syntax % 2:
            raise ConfigError(f"model.syntax is {self.syntax}; it must be even and 2 or more")


@dataclass(frozen=True)
class WuConfig:
    """Settings of the hard attention model of Wu et al. 2018 (defaults: the small published sizes).

    Args:
        embedding: size of the word embeddings
        hidden: size of the decoder's states, and of the encoder's states in each direction
        dropout: share of the embeddings and of the decoder's states dropped in training

    """

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    embedding: int = 100
    hidden: int = 200
    dropout: float = 0.2

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "embedding", "hidden")
        check_shares("model", self, "dropout")


@dataclass(frozen=True)
class AttentionConfig:
    """Settings of the LSTM with soft attention.

    Args:
        embedding: size of the word embeddings
        hidden: size of the states of decoder, encoder (each direction) and attention
        dropout: share of the embeddings and of the output layer's inputs dropped in training
        context: the decoder reads the source before a step of its LSTM, or after it

    """

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    embedding: int = 64
    hidden: int = 128
    dropout: float = 0.1
    context: Literal["before", "after"] = "before"

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "embedding", "hidden")
        check_shares("model", self, "dropout")


@dataclass(frozen=True)
class TreesConfig:
    """Settings of hybrid trees, for bracketed targets and few pairs.

    Args:
        empty: largest number of nodes in a row that have one span and write no word of it
        draws: number of derivations that are drawn to find the likeliest target; the draws are the
            same in every call, and 50 miss a target of probability 0.2 once in 70,000 searches

    """

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    empty: int = 4
    draws: int = 50

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "empty", "draws")


@dataclass(frozen=True)
class LaneConfig:
    """Settings of LANE, the model of Liu et al. 2020 (defaults: as released).

    Args:
        size: size of all embeddings and states
        longest: largest number of symbols that one expression writes
        samples: number of samples per pair in an update
        simplicity: reward of a right target whose expressions write variables only (the paper's α);
            with a part of such expressions it gets a part of the reward
        dropout: share of the decoder's inputs dropped in training
        entropy: weight of the entropy bonus in the first lesson
        entropy_fall: factor of this weight from lesson to lesson
        entropy_floor: smallest weight of the entropy bonus
        baseline: what a reward is compared with: the mean reward of the batch, weighted by
            expressions, or the mean reward of the other samples of the sentence
        composer_rate: learning rate of the Composer, as a factor of that of the Solver
        passing: validation accuracy that ends a lesson, and on all validation pairs the training
        first: number of words of the longest sentences in the first lesson
        last: largest number of epochs of the last lesson; null for no limit but training.epochs
        short: validation pairs with up to this number of words are training pairs too

    """

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "lessons"

    size: int = 128
    longest: int = 10
    samples: int = 10
    simplicity: float = 0.0
    dropout: float = 0.1
    entropy: float = 0.1
    entropy_fall: float = 0.5
    entropy_floor: float = 1e-4
    baseline: Literal["batch", "sentence"] = "batch"
    composer_rate: float = 0.1
    passing: float = 0.99
    first: int = 3
    last: int | None = None
    short: int = 4

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "size", "longest", "samples", "first", "last")
        check_shares("model", self, "dropout")
        if self.short < 0:
            raise ConfigError(f"model.short is {self.short}; it must be 0 or more")
        entropy = ("entropy", "entropy_fall", "entropy_floor")
        check_fractions("model", self, "simplicity", *entropy, "passing")
        if not 0 < self.composer_rate <= 100:
            raise ConfigError(
                f"model.composer_rate is {self.composer_rate}; it must lie in (0, 100]"
            )


@dataclass(frozen=True)
class BackoffConfig:
    """Settings of rules with a second model for sentences that they do not derive.

    Args:
        second: the transducer with an LSTM aligner, which has the same symmetry as the rules, or
            the LSTM with soft attention or hybrid trees, which have none
        k: size of the G-embeddings of the translators
        d: number of filters of the translators
        embedding: size of the second model's embeddings
        hidden: size of the second model's LSTM states
        dropout: share of the second model's states dropped in training
        wrong: share of wrong answers that the second model may give; on validation pairs this
            decides how likely its answer must be, and it refuses the others
        group: the group of each class: cyclic shifts as in the paper, or all permutations

    """

    learner: ClassVar[Learner] = "backoff"

    second: Literal["transducer", "attention", "trees"] = "transducer"
    k: int = 32
    d: int = 16
    embedding: int = 64
    hidden: int = 128
    dropout: float = 0.3
    wrong: float = 0.1
    group: GroupKind = "cyclic"

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "k", "d", "embedding", "hidden")
        check_shares("model", self, "dropout")
        check_fractions("model", self, "wrong")

    @property
    def rules(self) -> TransducerConfig:
        """The settings of the rules."""
        return TransducerConfig(aligner="recursive", k=self.k, d=self.d, group=self.group)

    @property
    def backing(self) -> "TransducerConfig | AttentionConfig | TreesConfig":
        """The settings of the second model."""
        if self.second == "trees":
            return TreesConfig()
        if self.second == "attention":
            return AttentionConfig(self.embedding, self.hidden, self.dropout)
        return replace(
            self.rules,
            aligner="lstm",
            embedding=self.embedding,
            hidden=self.hidden,
            dropout=self.dropout,
        )


ModelConfig = (
    TransducerConfig
    | GordonConfig
    | RussinConfig
    | WuConfig
    | AttentionConfig
    | TreesConfig
    | LaneConfig
    | BackoffConfig
)

MODELS: dict[str, type[ModelConfig]] = {
    "transducer": TransducerConfig,
    "gordon": GordonConfig,
    "russin": RussinConfig,
    "wu": WuConfig,
    "attention": AttentionConfig,
    "trees": TreesConfig,
    "lane": LaneConfig,
    "backoff": BackoffConfig,
}
"""The settings class of each model by its name on the command line."""


def has_rules(config: ModelConfig) -> bool:
    """Whether the model with these settings learns rules."""
    return config.learner in ("rules", "backoff")


def find_model(name: object) -> type[ModelConfig]:
    """The settings class of the model with this name; raises ConfigError for an unknown name."""
    if not isinstance(name, str) or name not in MODELS:
        named = name if isinstance(name, str) else shown(name)
        raise ConfigError(f"unknown model {shown(name)}{nearest(named, MODELS)}")
    return MODELS[name]


def name_of(config: ModelConfig) -> str:
    """The name of the model that these settings belong to; raise ConfigError for anything else."""
    for name, kind in MODELS.items():
        if type(config) is kind:
            return name
    raise ConfigError(f"model is {shown(config)}; expected settings such as GordonConfig()")
