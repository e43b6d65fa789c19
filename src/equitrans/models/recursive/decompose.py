"""A grammar from bracketed targets: every constituent of a target gives one rule.

Its holes are typed by what stands in them, and the weights are the relative frequencies.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.data import Pair
from equitrans.models.recursive.aligner import RecursiveAligner
from equitrans.models.recursive.brackets import (
    align_parts,
    find_brackets,
    parse_target,
)
from equitrans.models.recursive.cooccurrence import find_translations
from equitrans.models.recursive.drafts import Aligned, Drafter, Key
from equitrans.models.recursive.licences import ROOT, Step
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.typed import TypedGrammar, WalkedLicences
from equitrans.paper import Symmetry

SMOOTHING = 0.5
"""Weight of the walk in the distribution of a place, as a number of uses."""

CLOSED = -100.0
"""The weight of a rule in a place that does not accept it."""


@dataclass(frozen=True)
class Decomposition:
    """A grammar, how often each rule stands in each place, and the pairs that gave no rules."""

    grammar: TypedGrammar
    licences: WalkedLicences
    steps: Counter[Step]
    """How often each rule stands in each place."""
    support: tuple[int, ...]
    """The number of pairs that use each rule."""
    lost: tuple[Pair, ...]

    def weights(self, aligner: RecursiveAligner) -> Float[Tensor, " f"]:
        """The weights of an aligner of the grammar: log p(rule | place), in which relative
        frequencies are smoothed by what the walk finds.

        The walk goes from a place to a rule that stands there, to a place of that rule, and to a
        rule that stands there. ``SMOOTHING`` is the number of such walks added to the uses.
        """
        places = sorted({step[:2] for step in self.steps})
        number = {place: p for p, place in enumerate(places)}
        counts = torch.zeros(len(places), len(self.grammar), dtype=torch.float64)
        for (r, k, rule), n in self.steps.items():
            counts[number[r, k], rule] = n
        totals = counts.sum(1, keepdim=True)
        share = counts / totals
        walked = share @ (counts / counts.sum(0)).T @ share
        logs = ((counts + SMOOTHING * walked) / (totals + SMOOTHING)).log()
        logs = logs.clamp(min=CLOSED).to(aligner.rule.dtype)
        child, root = torch.zeros_like(aligner.child), torch.zeros_like(aligner.root)
        for (r, k), p in number.items():
            (root if (r, k) == ROOT else child[r, k]).copy_(logs[p])
        return torch.cat(
            [aligner.rule.detach(), child.flatten(), aligner.holds.detach().flatten(), root]
        )


def decompose(pairs: Sequence[Pair], symmetry: Symmetry) -> Decomposition | None:
    """The rules that the brackets of the targets show; None if targets have no brackets."""
    sources = [symmetry.source.encode(pair.source) for pair in pairs]
    targets = [symmetry.target.encode(pair.target) for pair in pairs]
    brackets = find_brackets(targets)
    if brackets is None:
        return None
    constants = {brackets.open, brackets.close, *brackets.others}
    found = find_translations(sources, targets, _known(symmetry), constants)
    translations = set(found.values())
    aligned: list[Aligned] = []
    lost: list[Pair] = []
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        root = parse_target(target, brackets, translations)
        if root is not None and align_parts(root, source, target, found, translations):
            aligned.append(Aligned(pair, source, target, root))
        else:
            lost.append(pair)
    drafter = Drafter(symmetry, found, brackets.open)
    drafter.choose_sides(aligned)
    counts: Counter[tuple[Key | None, int, Key]] = Counter()
    support: Counter[Key] = Counter()
    for one in aligned:
        draft = drafter.draft(one)
        if draft is None:
            lost.append(one.pair)
            continue
        counts[None, 0, draft.key] += 1
        inside = draft.walk()
        support.update({node.key for node in inside})
        for node in inside:
            for k, child in enumerate(node.inside):
                counts[node.key, k, child.key] += 1
    keys = sorted(support, key=lambda key: (HOLE not in key[0], -support[key], key))
    number = {key: r for r, key in enumerate(keys)}
    steps = Counter(
        {
            (*(ROOT if key is None else (number[key], k)), number[child]): n
            for (key, k, child), n in counts.items()
        }
    )
    rules = [Rule(*key) for key in keys]
    licences = WalkedLicences(Grammar(rules), frozenset(steps))
    grammar = TypedGrammar(rules, licences.accepted)
    return Decomposition(grammar, licences, steps, tuple(support[k] for k in keys), tuple(lost))


def _known(symmetry: Symmetry) -> dict[int, int]:
    """The translations of the words of classes: those of the same row, in the first column."""
    owners = symmetry.owners[1]
    columns = {c: symmetry.members[1][owners.index(c)] for c in set(owners)}
    return {word: columns[at.c][at.row] for word, at in symmetry.homes[0].items()}
