"""Words added to a class of a trained model, with no training (beyond the paper).

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

from equitrans.cards import Origin
from equitrans.errors import SymmetryError, nearest
from equitrans.models.recursive import RecursiveTransducer
from equitrans.models.table import TableTranslator
from equitrans.models.transducer import Transducer, TransducerConfig
from equitrans.symmetry import LexicalClass, Symmetry
from equitrans.trained import Trained
from equitrans.vocabulary import EOS, Vocabulary


@dataclass(frozen=True)
class Extension:
    """An extended model, and how far it is from the one before.

    ``symmetrised`` is the largest change of a p(y | x) of the translator through making the group
    symmetric, and is no larger than ``in_class``, the largest probability with which a word is
    translated as one of its classmates. ``diluted`` is the largest loss of log p(y | x) through the
    words that were added, for every target word of a sentence at most.
    """

    trained: Trained
    symmetrised: float
    in_class: float
    diluted: float


@torch.no_grad()
def extend(trained: Trained, name: str, words: Mapping[str, str]) -> Extension:
    """Add words, each with its translation, to the class of that name."""
    if trained.characters:
        for word in (*words, *words.values()):
            if len(word) != 1:
                raise SymmetryError(
                    f"{word!r} is not a single character, as this model's words are"
                )
    if not isinstance(trained.config, TransducerConfig) or not isinstance(
        trained.model, Transducer | RecursiveTransducer
    ):
        raise SymmetryError("words can be added to a transducer only: other models learn each word")
    before = trained.symmetry
    symmetry = _extended(before, name, words)
    config = replace(trained.config, translator="table", group="symmetric")
    like = next(trained.model.parameters())
    model: Transducer | RecursiveTransducer
    if isinstance(trained.model, RecursiveTransducer):
        # rules speak of classes and of words that are there already, so they stay as they are
        model = config.build_recursive(symmetry, trained.model.learned).to(like)
    else:
        model = config.build(symmetry).to(like)
    model.aligner.load_state_dict(trained.model.aligner.state_dict())

    # the old table under the symmetric group; the new one has the same orbits
    old = _log_prob(trained.model.translator, before)
    table = TableTranslator(replace(before, kind="symmetric")).to(like.dtype)
    if trained.config.translator == "table" and before.kind == "symmetric":
        table.load_state_dict(trained.model.translator.state_dict())
    else:
        table.fill(old)
    model.translator.load_state_dict(table.state_dict())
    same, new = (_log_prob(translator, before) for translator in (table, model.translator))
    old, same, new = (rows[:, EOS : len(before.target)] for rows in (old, same, new))
    return Extension(
        replace(trained, model=model.eval(), config=config, origin=Origin()),
        symmetrised=float((old.exp() - same.exp()).abs().max()),
        in_class=_in_class(old, before),
        diluted=float((same - new).max()),
    )


def _log_prob(translator: nn.Module, symmetry: Symmetry) -> Float[Tensor, "x y"]:
    """The whole table, as exact as it can be."""
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
