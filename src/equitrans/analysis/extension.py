"""Add rows to a class of a trained model without training (beyond the paper).

Under the symmetric group two numbers translate the words of a class: one for a word's own
translation and one for every other translation of the class. A new word uses the same two numbers,
so its sentences have exactly the likelihood of its classmates' sentences.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equitrans.errors import SymmetryError, nearest
from equitrans.lexical import Columns, duplicate
from equitrans.models import ModelConfig, TableTranslator, TransducerConfig, build
from equitrans.paper import EOS, Model, Symmetry, Vocabulary

Cells = str | tuple[str, ...]
"""A word, or the words of a row: one for each column, or for the first ones."""


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
    model: Model, config: ModelConfig, name: str, words: Mapping[Cells, Cells]
) -> Extended:
    """Add rows to the class ``name`` of a model: words, or tuples of the words of all columns, each
    with its translation.
    """
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


def _extended(symmetry: Symmetry, name: str, rows: Mapping[Cells, Cells]) -> Symmetry:
    """The symmetric group with new rows in a class; raise SymmetryError if they do not fit."""
    names = [c.name for c in symmetry.classes]
    if name not in names:
        raise SymmetryError(f"the model has no class {name!r}{nearest(name, names)}")
    if not rows:
        raise SymmetryError(f"no words to add to class {name!r}")
    (old,) = (c for c in symmetry.classes if c.name == name)
    vocabularies = symmetry.source, symmetry.target
    sides = [[*rows], [*rows.values()]]
    columns: list[Columns] = []
    for side, cells, known, given in zip(
        ("source", "target"), old.columns, vocabularies, sides, strict=True
    ):
        new = [(row,) if isinstance(row, str) else row for row in given]
        words = [word for row in new for word in row if word]
        if side == "target" and duplicate(words) is not None:
            raise SymmetryError("two new words have the same translation; each needs its own")
        for word in words:
            if word in known.index:
                raise SymmetryError(
                    f"the model knows the {side} word {word!r} already; only new words can join"
                )
        if (most := max(map(len, new))) > len(cells):
            raise SymmetryError(
                f"{most} {side} forms of a word; class {name!r} has {len(cells)} columns"
            )
        columns.append(
            tuple(
                (label, (*column, *(row[k] if k < len(row) else "" for row in new)))
                for k, (label, column) in enumerate(cells)
            )
        )
    (source, *source_forms), (target, *target_forms) = columns
    longer = replace(
        old,
        source=source[1],
        target=target[1],
        source_forms=tuple(source_forms),
        target_forms=tuple(target_forms),
    )
    new_source, new_target = (
        Vocabulary(tuple(dict.fromkeys((*known.words, *words))))
        for known, words in zip(vocabularies, longer.words, strict=True)
    )
    classes = tuple(longer if c.name == name else c for c in symmetry.classes)
    return Symmetry(new_source, new_target, classes, "symmetric")


def _in_class(log_prob: Float[Tensor, "x y"], symmetry: Symmetry) -> float:
    """The largest probability that a word is translated like one of its classmates."""
    largest = 0.0
    (members, others), (homes, there) = symmetry.members, symmetry.owners
    for (c, sources), (owner, targets) in product(
        zip(homes, members, strict=True), zip(there, others, strict=True)
    ):
        if c == owner:
            block = log_prob[list(sources)][:, [t - EOS for t in targets]].exp()
            mates = block - torch.diag(block.diagonal())
            largest = max(largest, float(mates.max()))
    return largest
