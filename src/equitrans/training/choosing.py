"""Choice between classes that pairs allow, together with the rules that each of them gives.

Discovery names rivals to its classes where pairs are few. Besides, a small class that some pairs
contradict may be a wrong merge, such as that of ``plus`` and ``times``. The best classes have the
shortest description of everything: classes, rules, pairs that the rules do not explain, and
sources. Without the sources, one big class would always win, because targets alone never object to
it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from equitrans.data import Data, DataConfig, Discovery, Pair, Reading, discover, load_data
from equitrans.lexical import written
from equitrans.models import (
    ModelConfig,
    TransducerConfig,
    build,
    exchangeable_words,
    has_rules,
    learn_from_brackets,
    learn_rules,
)
from equitrans.paper import LexicalClass, Symmetry

SMALL = 4
"""Largest number of rows of a class that may be undone."""

MANY = 1000
"""Number of distinct pairs from which no class is undone: then discovery sees contradictions."""

TRIED = 2000
"""Number of pairs that show whether the brackets of targets explain pairs without classes."""


def load_with_best_classes(config: DataConfig, model: ModelConfig, *, seed: int) -> Data:
    """The data that settings describe, with the best classes for a model."""
    later = config.classes == "discover" and has_rules(model)
    data = load_data(config, seed=seed, classes=() if later else None)
    return with_best_classes(data, config, model)


def with_best_classes(data: Data, config: DataConfig, model: ModelConfig) -> Data:
    """The data with the best classes, if their classes were discovered and the model has rules."""
    if config.classes != "discover" or not has_rules(model):
        return data
    classes = classes_for_rules(data.train + data.valid, data.reading)
    return replace(data, classes=classes, reading=replace(data.reading, classes=classes))


def classes_for_rules(
    pairs: Sequence[Pair], reading: Reading, *, quick: bool = False
) -> tuple[LexicalClass, ...]:
    """The classes for a model with rules: those of the brackets of targets if these explain most of
    the pairs, otherwise the discovered ones that have the best rules.
    """
    bracketed = bracket_classes(pairs, reading)
    if bracketed is not None:
        return bracketed
    return best_classes(pairs, find_classes(pairs, reading), reading, quick=quick)


def bracket_classes(pairs: Sequence[Pair], reading: Reading) -> tuple[LexicalClass, ...] | None:
    """The classes that follow from the brackets of targets; None if they do not explain most of the
    pairs.
    """
    pairs = Reading(split=reading.split).pairs(pairs)
    sample = pairs[:: -(-len(pairs) // TRIED)]
    config = TransducerConfig(aligner="recursive")
    symmetry = Symmetry.of((), sample, config.group)
    if learn_from_brackets(sample, symmetry, partial(build, config, symmetry)) is None:
        return None
    return exchangeable_words(pairs)


def find_classes(pairs: Sequence[Pair], reading: Reading) -> Discovery:
    """The discovery of pairs whose target words are read apart as ``reading`` says."""
    return discover(Reading(split=reading.split).pairs(pairs))


def best_classes(
    pairs: Sequence[Pair], found: Discovery, reading: Reading, *, quick: bool = False
) -> tuple[LexicalClass, ...]:
    """The discovered classes, or others if these have a shorter description: their rivals, or
    classes without small ones that some pairs contradict. ``quick`` searches less for their rules.
    """
    doubtful = [
        c
        for c, evidence in zip(found.classes, found.evidence, strict=True)
        if evidence.contradicted and not c.is_open and len(c.source) <= SMALL
    ]
    if len(set(pairs)) >= MANY:
        doubtful = []
    if not found.rivals and not doubtful:
        return found.classes

    def bits(classes: tuple[LexicalClass, ...]) -> float:
        return total_bits(pairs, replace(reading, classes=classes), quick=quick)

    fewest, best = min(
        ((bits(classes), classes) for classes in (found.classes, *found.rivals)),
        key=lambda it: it[0],
    )
    for c in doubtful:
        fewer = without(c, best)
        if fewer != best and (found_bits := bits(fewer)) < fewest:
            fewest, best = found_bits, fewer
    return best


def without(c: LexicalClass, classes: Iterable[LexicalClass]) -> tuple[LexicalClass, ...]:
    """The classes without one of them; where an open class follows it, it follows its words."""
    words = {f"<{c.name}>": written(c.words[0])}
    return tuple(
        replace(other, after=tuple(s for text in other.after for s in words.get(text, (text,))))
        for other in classes
        if other != c
    )


def total_bits(pairs: Sequence[Pair], reading: Reading, *, quick: bool = False) -> float:
    """Bits of the classes of a reading, of the rules that they give, and of the pairs."""
    read = reading.pairs(pairs)
    config = TransducerConfig(aligner="recursive")
    symmetry = Symmetry.of(reading.classes, read, config.group)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        new = partial(build, config, symmetry)
        learned = learn_rules(read, symmetry, new, quick=quick).learned
    word = math.log2(len(symmetry.target))
    wrong = sum((1 + len(pair.target)) * word for pair, _ in learned.exceptions)
    return (
        learned.bits + wrong + class_bits(reading.classes, symmetry) + source_bits(read, symmetry)
    )


def class_bits(classes: Sequence[LexicalClass], symmetry: Symmetry) -> float:
    """Bits that tell the class of every source word."""
    total = len(symmetry.source.words)
    sizes = [len(c.words[0]) for c in classes]
    shares = [n / total for n in (*sizes, total - sum(sizes)) if n]
    return total * -sum(p * math.log2(p) for p in shares) + len(sizes) * math.log2(total + 1)


def source_bits(pairs: Sequence[Pair], symmetry: Symmetry) -> float:
    """Bits of the distinct sources: of each column after the one before, and of words in columns.

    The code learns the shares as it goes.
    """
    after: defaultdict[int, Counter[int]] = defaultdict(Counter)
    words: defaultdict[int, Counter[int]] = defaultdict(Counter)
    columns = symmetry.source_classes
    sizes = Counter(columns)
    for source in dict.fromkeys(pair.source for pair in pairs):
        before = -1
        for word in symmetry.source.encode(source):
            after[before][columns[word]] += 1
            words[columns[word]][word] += 1
            before = columns[word]
        after[before][-1] += 1
    kinds = len(sizes) + 1
    return sum(_bits(counts, kinds) for counts in after.values()) + sum(
        _bits(counts, sizes[column]) for column, counts in words.items()
    )


def _bits(counts: Mapping[int, int], kinds: int) -> float:
    total = math.lgamma(kinds / 2 + sum(counts.values())) - math.lgamma(kinds / 2)
    total -= sum(math.lgamma(0.5 + n) - math.lgamma(0.5) for n in counts.values())
    return total / math.log(2)
