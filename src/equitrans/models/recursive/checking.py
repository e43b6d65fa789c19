"""The check of all pairs: what the rules say about each."""

from collections.abc import Sequence

from equitrans.data import Pair, glued
from equitrans.models.recursive.chart import Tree, yield_of
from equitrans.models.recursive.model import RecursiveTransducer
from equitrans.models.recursive.rules import Form


def check(
    model: RecursiveTransducer, groups: Sequence[tuple[Form, Sequence[Pair], bool]]
) -> list[tuple[Tree | None, set[int], list[tuple[int, str]]]]:
    """For each form with its pairs: the best derivation, if asked for, its rules, and the pairs
    that it does not explain, with the reason.
    """
    symmetry, found = model.symmetry, []
    for form, pairs, keep in groups:
        tree = model.aligner.tree(form)
        text = None if tree is None else yield_of(model.aligner.grammar, tree)
        wrong = []
        for k, pair in enumerate(pairs):
            if not isinstance(text, str):
                said = "no derivation" if text is None else f"the rules say: {text} words"
                wrong.append((k, said))
                continue
            words = symmetry.target.decode(
                model.read_off(symmetry.source.encode(pair.source), text)
            )
            if words != pair.target:
                wrong.append((k, f"the rules say: {' '.join(glued(words))}"))
        rules = set() if tree is None else {node.rule for node in tree.nodes()}
        found.append((tree if keep else None, rules, wrong))
    return found
