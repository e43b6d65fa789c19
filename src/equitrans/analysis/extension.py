"""Words added to a class of a trained model without training (beyond the paper).

Under the symmetric group a class's words are translated by two numbers, one for a word's own
translation and one for any other of the class. A new word needs no third, so its sentences have
exactly the likelihood of its classmates'.
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
    """An extended model, and how far it is from the one before."""

    model: Model
    config: TransducerConfig
    symmetrised: float
    """Largest change of a p(y | x) of the translator by making the group symmetric; at most
    ``in_class``."""
    in_class: float
    """Largest probability of translating a word as one of its classmates."""
    diluted: float
    """Largest loss of log p(y | x) by the added words, per target word of a sentence."""


@torch.no_grad()
def extend_model(
    model: Model, config: ModelConfig, name: str, words: Mapping[str, str]
) -> Extended:
    """Add words, each with its translation, to the class ``name`` of a model."""
    before = model.symmetry
    words_have_no_table = (
        model.translation_table(torch.tensor([EOS], device=next(model.parameters()).device)) is None
    )
    if words_have_no_table or not isinstance(config, TransducerConfig):
        raise SymmetryError("only a transducer can be extended: other models learn each word")
    symmetry = _extended(before, name, words)
    like = next(model.parameters())
    longer = replace(config, translator="table", group="symmetric")
    # rules speak of classes and of known words, so they stay as they are
    new_model = build(longer, symmetry, model.learned).to(like)
    new_model.get_submodule("aligner").load_state_dict(model.get_submodule("aligner").state_dict())

    # the old table under the symmetric group; the new one has the same orbits
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
    """The whole table in float64."""
    exact = deepcopy(translator).cpu().double()
    return exact(torch.arange(len(symmetry.source)))


def _extended(symmetry: Symmetry, name: str, words: Mapping[str, str]) -> Symmetry:
    names = [c.name for c in symmetry.classes]
    if name not in names:
        raise SymmetryError(f"the model has no class {name!r}{nearest(name, names)}")
    if not words:
        raise SymmetryError(f"there are no words to add to class {name!r}")
    if len(set(words.values())) < len(words):
        raise SymmetryError("two of the new words have the same translation; each needs its own")
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
    """The largest probability of a classmate's translation."""
    largest = 0.0
    for sources, targets in zip(*symmetry.members, strict=True):
        block = log_prob[list(sources)][:, [t - EOS for t in targets]].exp()
        others = block - torch.diag(block.diagonal())
        largest = max(largest, float(others.max()))
    return largest
