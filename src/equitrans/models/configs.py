"""The settings of every model, as plain values. No torch: command lines are built from them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from equitrans.errors import ConfigError, nearest, shown
from equitrans.paper import GroupKind
from equitrans.settings import check_counts, check_settings, check_shares

Learner = Literal["gradient", "rules"]
"""How a model learns: gradient descent with validation pairs, or rules induced from all pairs."""

OutputBias = Literal["free", "tied", "none"]


@dataclass(frozen=True)
class TransducerConfig:
    """The sizes and choices of a transducer.

    Args:
        aligner: an LSTM as in the paper, or rules that compose, learned from the pairs
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
        forget_bias: initial bias of the LSTMs' forget gates; a larger one learns to count sooner
        warm_start: share of training at its start with uniform alignments, so that the model
            learns to translate words before it learns to align them

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

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "k", "d", "embedding", "hidden")
        check_shares("model", self, "dropout", "warm_start")

    @property
    def learner(self) -> Learner:
        return "rules" if self.aligner == "recursive" else "gradient"


@dataclass(frozen=True)
class GordonConfig:
    """The size and choices of Gordon et al.'s model.

    Args:
        hidden: channels of the encoder's states in each direction, for every group element (the
            paper's K); the decoder has twice as many
        output_bias: a bias for every output word, as in the released code, which is not quite
            equivariant; or for every orbit of words, or none, which are
        teacher_forcing: share of training pairs that are read with their own target as history,
            not with what the model would have said

    """

    hidden: int = 64
    output_bias: OutputBias = "free"
    teacher_forcing: float = 0.5

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "hidden")
        if not 0 <= self.teacher_forcing <= 1:
            raise ConfigError(
                f"model.teacher_forcing is {self.teacher_forcing}; it must lie in [0, 1]"
            )


@dataclass(frozen=True)
class RussinConfig:
    """The sizes of a syntactic attention model, as published.

    Args:
        semantics: size of a word's meaning
        syntax: size of a word's syntactic context, an even number; embeddings and the first LSTM
            have half of it, attention and the decoder twice as much
        dropout: share of both embeddings dropped in training

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
    """The sizes of a hard attention model; those published as small.

    Args:
        embedding: size of the word embeddings
        hidden: size of the decoder's states, and of the encoder's in each direction
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
    """The sizes of a soft attention model.

    Args:
        embedding: size of the word embeddings
        hidden: size of the decoder's states, of the encoder's in each direction, and of the layer
            that compares them
        dropout: share of the embeddings and of what the output is made from, dropped in
            training

    """

    group: ClassVar[GroupKind] = "cyclic"
    learner: ClassVar[Learner] = "gradient"

    embedding: int = 64
    hidden: int = 128
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "embedding", "hidden")
        check_shares("model", self, "dropout")


ModelConfig = TransducerConfig | GordonConfig | RussinConfig | WuConfig | AttentionConfig

MODELS: dict[str, type[ModelConfig]] = {
    "transducer": TransducerConfig,
    "gordon": GordonConfig,
    "russin": RussinConfig,
    "wu": WuConfig,
    "attention": AttentionConfig,
}


def find_model(name: object) -> type[ModelConfig]:
    """The settings class of a model; an unknown name raises ConfigError."""
    if not isinstance(name, str) or name not in MODELS:
        named = name if isinstance(name, str) else shown(name)
        raise ConfigError(f"unknown model {shown(name)}{nearest(named, MODELS)}")
    return MODELS[name]


def name_of(config: ModelConfig) -> str:
    """The name of the model that some settings are for."""
    return next(name for name, kind in MODELS.items() if type(config) is kind)
