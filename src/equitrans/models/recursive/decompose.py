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
from equitrans.models.recursive.drafts import Aligned, Draft, Drafter, Key
from equitrans.models.recursive.licences import ROOT, Step
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.typed import TypedGrammar, WalkedLicences
from equitrans.paper import Symmetry

SMOOTHING = 0.5
"""Weight of the walk in the distribution of a place, as a number of uses."""

WRONG = 0.003
"""Share of the uses of a left side that wrong pairs may have in common."""

CLOSED = -100.0
"""The weight of a rule in a place that does not accept it."""


@dataclass(frozen=True)
class Decomposition:
    """A grammar, and how often each rule stands in each place."""

    grammar: TypedGrammar
    licences: WalkedLicences
    steps: Counter[Step]
    """How often each rule stands in each place."""
    words: Counter[Step]
    """How often each word stands in each place, also if it is a constituent by itself."""

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
    """The rules that the brackets of the targets show; None if targets have no brackets, or if they
    show nothing.
    """
    sources = [symmetry.source.encode(pair.source) for pair in pairs]
    targets = [symmetry.target.encode(pair.target) for pair in pairs]
    brackets = find_brackets(targets)
    if brackets is None:
        return None
    constants = {brackets.open, brackets.close, *brackets.others}
    found = find_translations(sources, targets, _known(symmetry), constants)
    translations = set(found.values())
    aligned: list[Aligned] = []
    for source, target in zip(sources, targets, strict=True):
        root = parse_target(target, brackets, translations)
        if root is not None and align_parts(root, source, target, found, translations):
            aligned.append(Aligned(source, target, root))
    drafter = Drafter(symmetry, found, brackets.open)
    drafter.choose_sides(aligned)
    drafts = [draft for one in aligned if (draft := drafter.draft(one)) is not None]
    doubtful = _doubtful(Counter(key for draft in drafts for key in _rules_of(draft)))
    counts: Counter[tuple[Key | None, int, Key]] = Counter()
    words: Counter[tuple[Key | None, int, Key]] = Counter()
    support: Counter[Key] = Counter()
    for draft in drafts:
        rules_here = _rules_of(draft)
        if rules_here & doubtful:
            continue
        counts[None, 0, draft.key] += 1
        support.update(rules_here)
        for node in draft.walk():
            for k, child in enumerate(node.inside):
                counts[node.key, k, child.key] += 1
                # a word by itself stands where the constituent stands that it is
                word = child.inside[0] if child.key[0] == (HOLE,) else child
                if not word.inside and node.key[0] != (HOLE,):
                    words[node.key, k, word.key] += 1
    if not support:
        return None
    keys = sorted(support, key=lambda key: (HOLE not in key[0], -support[key], key))
    number = {key: r for r, key in enumerate(keys)}

    def numbered(found: Counter[tuple[Key | None, int, Key]]) -> Counter[Step]:
        return Counter(
            {
                (*(ROOT if key is None else (number[key], k)), number[child]): n
                for (key, k, child), n in found.items()
            }
        )

    steps = numbered(counts)
    rules = [Rule(*key) for key in keys]
    licences = WalkedLicences(Grammar(rules), frozenset(steps))
    grammar = TypedGrammar(rules, licences.accepted)
    return Decomposition(grammar, licences, steps, numbered(words))


def _rules_of(draft: Draft) -> set[Key]:
    return {node.key for node in draft.walk()}


def _doubtful(support: Counter[Key]) -> set[Key]:
    """The rules that are so much rarer than another one of the same left side that wrong pairs
    explain them.
    """
    most: Counter[tuple[int, ...]] = Counter()
    for (left, _), n in support.items():
        most[left] = max(most[left], n)
    return {key for key, n in support.items() if n < WRONG * most[key[0]]}


def _known(symmetry: Symmetry) -> dict[int, int]:
    """The translations of the words of classes: those of the same row, in the first column."""
    owners = symmetry.owners[1]
    columns = {c: symmetry.members[1][owners.index(c)] for c in set(owners)}
    return {word: columns[at.c][at.row] for word, at in symmetry.homes[0].items()}
