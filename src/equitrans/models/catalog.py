"""The models of the project by name, and how one is made from its settings."""

from typing import TypeGuard

from equitrans.errors import ConfigError, nearest, shown
from equitrans.grammar.learned import Learned
from equitrans.models.attention import AttentionConfig
from equitrans.models.base import Model
from equitrans.models.gordon import GordonConfig
from equitrans.models.russin import RussinConfig
from equitrans.models.transducer import TransducerConfig
from equitrans.models.wu import WuConfig
from equitrans.symmetry import Symmetry

ModelConfig = TransducerConfig | GordonConfig | RussinConfig | WuConfig | AttentionConfig

MODELS: dict[str, type[ModelConfig]] = {
    "transducer": TransducerConfig,
    "gordon": GordonConfig,
    "russin": RussinConfig,
    "wu": WuConfig,
    "attention": AttentionConfig,
}


def find_model(name: object) -> type[ModelConfig]:
    """The settings of the model of that name, which may come from a file and be anything."""
    if not isinstance(name, str) or name not in MODELS:
        named = name if isinstance(name, str) else shown(name)
        raise ConfigError(f"unknown model {shown(name)}{nearest(named, MODELS)}")
    return MODELS[name]


def name_of(config: ModelConfig) -> str:
    """The name of the model that some settings are for."""
    return next(name for name, kind in MODELS.items() if type(config) is kind)


def is_recursive(config: ModelConfig) -> TypeGuard[TransducerConfig]:
    """Whether the model is a transducer whose aligner is a grammar, learned in a way of its own."""
    return isinstance(config, TransducerConfig) and config.aligner == "recursive"


def build(config: ModelConfig, symmetry: Symmetry, learned: Learned | None = None) -> Model:
    """A new model with weights from torch's current random state; a recursive aligner has the
    rules given, or none.
    """
    if is_recursive(config):
        return config.build_recursive(symmetry, learned or Learned.nothing())
    return config.build(symmetry)
