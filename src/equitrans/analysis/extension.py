"""Add words to a class of a trained model without training (beyond the paper).

Under the symmetric group two numbers translate the words of a class: one for a word's own
translation and one for every other translation of the class. A new word uses the same two numbers,
so its sentences have exactly the likelihood of its classmates' sentences.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equitrans.errors import SymmetryError, nearest
from equitrans.models import ModelConfig, TableTranslator, TransducerConfig, build
from equitrans.paper import EOS, LexicalClass, Model, Symmetry, Vocabulary


@dataclass(frozen=True)
class Extended:
    """A model with added words, and how far it is from the one before."""

    model: Model
    config: TransducerConfig
    symmetrised: float
    """Largest change of a translation probability p(y | x) because the group becomes symmetric; at
    most ``in_class``."""
    in_class: float
    """Largest probability that a word is translated like one of its classmates."""
    diluted: float
    """Largest decrease of log p(y | x) per target word because of the added words."""


@torch.no_grad()
def extend_model(
    model: Model, config: ModelConfig, name: str, words: Mapping[str, str]
) -> Extended:
    """Add words, each with its translation, to the class ``name`` of a model."""
    before = model.symmetry
    if not isinstance(config, TransducerConfig):
        raise SymmetryError(
            "only a transducer can be extended; other models have weights for each word"
        )
    symmetry = _extended(before, name, words)
    like = next(model.parameters())
    longer = replace(config, translator="table", group="symmetric")
    # rules contain classes and old words, so they stay valid
    new_model = build(longer, symmetry, model.learned).to(like)
    new_model.get_submodule("aligner").load_state_dict(model.get_submodule("aligner").state_dict())

    # the old table under the symmetric group; the new table has the same orbits
    table = TableTranslator(replace(before, kind="symmetric")).to(like.dtype)
    if config.translator == "table" and before.kind == "symmetric":
        table.load_state_dict(model.get_submodule("translator").state_dict())
    else:
        table.fill(_exact(model.get_submodule("translator"), before))
    new_translator = new_model.get_submodule("translator")
    new_translator.load_state_dict(table.state_dict())
    old, same, new = (
        _exact(translator, before)[:, EOS : len(before.target)]
        for translator in (model.get_submodule("translator"), table, new_translator)
    )
    return Extended(
        new_model.eval(),
        longer,
        symmetrised=float((old.exp() - same.exp()).abs().max()),
        in_class=_in_class(old, before),
        diluted=float((same - new).max()),
    )


def _exact(translator: nn.Module, symmetry: Symmetry) -> Float[Tensor, "x y"]:
    """The table of all words in float64, on the CPU."""
    exact = deepcopy(translator).cpu().double()
    return exact(torch.arange(len(symmetry.source)))


def _extended(symmetry: Symmetry, name: str, words: Mapping[str, str]) -> Symmetry:
    """The symmetric group with new words in a class; raise SymmetryError if they do not fit."""
    names = [c.name for c in symmetry.classes]
    if name not in names:
        raise SymmetryError(f"the model has no class {name!r}{nearest(name, names)}")
    if not words:
        raise SymmetryError(f"no words to add to class {name!r}")
    if len(set(words.values())) < len(words):
        raise SymmetryError("two new words have the same translation; each needs its own")
    for side, vocabulary, added in (
        ("source", symmetry.source, list(words)),
        ("target", symmetry.target, list(words.values())),
    ):
        for word in added:
            if word in vocabulary.index:
                raise SymmetryError(
                    f"the model knows the {side} word {word!r} already; only new words can join"
                )
    return Symmetry(
        Vocabulary((*symmetry.source.words, *words)),
        Vocabulary((*symmetry.target.words, *words.values())),
        tuple(
            LexicalClass(c.name, (*c.source, *words), (*c.target, *words.values()))
            if c.name == name
            else c
            for c in symmetry.classes
        ),
        "symmetric",
    )


def _in_class(log_prob: Float[Tensor, "x y"], symmetry: Symmetry) -> float:
    """The largest probability that a word is translated like one of its classmates."""
    largest = 0.0
    for sources, targets in zip(*symmetry.members, strict=True):
        block = log_prob[list(sources)][:, [t - EOS for t in targets]].exp()
        others = block - torch.diag(block.diagonal())
        largest = max(largest, float(others.max()))
    return largest
