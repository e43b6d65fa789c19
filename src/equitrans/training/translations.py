"""A start of the translator: one target word for each source word, found in the training pairs.

The translator knows a source word and not its neighbours, so a word that writes two target words is
never sure of either. A good lexicon therefore gives each source word one target word, and each
target word of a pair some source word that writes it. Gradient descent from random weights misses
such a lexicon if pairs are few: any word that is in a pair can write any of its target words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from equitrans.data import Pair
from equitrans.models import TableTranslator
from equitrans.paper import BOS, EOS, PAD, Model, Symmetry, WordTranslator

PAIRS = 2000
"""Largest number of pairs that decide the lexicon."""

ENTRIES = 1_000_000
"""Largest number of (source word, target word); larger translators start at random."""

SURE = 0.8
"""Probability of a word's translation at the start. The rest is shared by all target words, so that
training can still choose another."""

STEPS, RATE = 100, 0.03
"""Updates and learning rate with which layers learn the lexicon."""

Item = tuple[int, int]
"""The number of a pair, and one of its target words."""


def start_translator(model: Model, pairs: Iterable[Pair]) -> None:
    """Give the translator of a model, if it has one, the lexicon of some pairs."""
    translator, symmetry = getattr(model, "translator", None), model.symmetry
    if not isinstance(translator, WordTranslator):
        return
    if len(symmetry.source) * len(symmetry.target) > ENTRIES:
        return
    table = first_translations(symmetry, pairs).to(next(model.parameters()).device)
    if isinstance(translator, TableTranslator):
        translator.fill(table.log())
        return
    words, wanted = torch.arange(BOS, len(table), device=table.device), table[BOS:, EOS:].float()
    optimizer = torch.optim.Adam(translator.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (-(wanted * translator(words)[:, EOS:]).sum(1).mean()).backward()
        optimizer.step()
    optimizer.zero_grad()


def first_translations(symmetry: Symmetry, pairs: Iterable[Pair]) -> Float[Tensor, "x y"]:
    """P(y | x) in which each source word has one likely target word, and the end has the end."""
    orbit = TableTranslator(symmetry).shared
    chosen = _covering(symmetry, list(dict.fromkeys(pairs))[:PAIRS], orbit.tolist())
    table = torch.zeros(orbit.shape, dtype=torch.double)
    table[:, EOS:] = (1 - SURE) / (len(symmetry.target) - EOS)
    table[EOS, EOS] += SURE
    for word, row in enumerate(orbit):
        if word != EOS and (kind := int(row[EOS])) in chosen:
            table[word, row == chosen[kind]] += SURE
    table[PAD] = table[EOS]  # a translator has one row for both
    return table / table.sum(1, keepdim=True)


def _covering(symmetry: Symmetry, pairs: list[Pair], orbit: list[list[int]]) -> dict[int, int]:
    """For kinds of source words, the orbit of (source word, target word) that they write; a kind is
    named by the orbit of its words and EOS.

    Orbits whose words are in the same pairs come first. A kind writes one orbit, and only one that
    covers a target word of a pair which no other kind covers: so ``the`` is free for a target word
    that has no source word of its own.
    """
    covers: defaultdict[tuple[int, int], set[Item]] = defaultdict(set)
    with_kind: Counter[int] = Counter()
    with_column: Counter[int] = Counter()
    for number, pair in enumerate(pairs):
        source = {BOS, *symmetry.source.encode(pair.source)}
        target = set(symmetry.target.encode(pair.target))
        with_kind.update({orbit[word][EOS] for word in source})
        with_column.update(symmetry.target_classes[y] for y in target)
        for row in (orbit[word] for word in sorted(source)):
            for y in sorted(target):
                if row.count(row[y]) == 1:  # else the word writes one of several words by chance
                    covers[row[EOS], row[y]].add((number, y))

    def apart(link: tuple[int, int]) -> float:
        """The share of pairs that have only one of the two words."""
        both, (_, y) = len(covers[link]), next(iter(covers[link]))
        return 1 - both / (with_kind[link[0]] + with_column[symmetry.target_classes[y]] - both)

    chosen: dict[int, int] = {}
    covered: set[Item] = set()
    for kind, written in sorted(covers, key=lambda link: (apart(link), link)):
        if kind not in chosen and not covered.issuperset(covers[kind, written]):
            chosen[kind] = written
            covered |= covers[kind, written]
    return chosen
