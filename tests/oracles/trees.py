"""A list of all derivations of a form: the brute-force reference for charts and forests."""

import math
from itertools import combinations, product

import torch

from equitrans.models.recursive.aligner import RecursiveAligner
from equitrans.models.recursive.chart import Tree
from equitrans.models.recursive.rules import HOLE, Grammar, Rule

A, B, OP, TWICE, NOT = range(5)
CLASSES = (B, A)
RULES = (
    Rule((A,), (0,)),
    Rule((B,), (0,)),
    Rule((A,), (0, 0)),
    Rule((HOLE, OP, HOLE), (2, 0)),
    Rule((HOLE, TWICE), (0, 0)),
    Rule((NOT, HOLE), (~7, 1)),
    Rule((HOLE, HOLE), (0, 1)),
    Rule((HOLE, OP, HOLE), (0,)),  # drops its second hole
    Rule((HOLE, OP, B), (0,)),
)
RICH = Grammar(RULES)
FORMS = (
    (A,),
    (B, A),
    (A, OP, B),
    (NOT, A, TWICE),
    (A, B, A),
    (B, OP, A, TWICE),
    (A, OP, B, OP, B),
    (B, B, OP, B, A),
)


def derivations(grammar, form, i=0, j=None):
    """Every derivation of a span."""
    j = len(form) if j is None else j
    found = []
    for r, rule in enumerate(grammar.rules):
        for cuts in combinations(range(i + 1, j), len(rule.left) - 1):
            ends = (i, *cuts, j)
            spans = tuple((ends[k], ends[k + 1]) for k in range(len(rule.left)))
            if all(
                s == HOLE or form[p:q] == (s,) for s, (p, q) in zip(rule.left, spans, strict=True)
            ):
                below = [
                    [(hole, tree) for tree in derivations(grammar, form, *spans[hole])]
                    for hole in rule.holes
                ]
                found += [Tree(r, spans, children) for children in product(*below)]
    return found


def score(grammar, weights, form, tree):
    """The sum of the weights of a derivation: the rule at its root, rules, (rule, hole, child),
    (rule, hole, class).
    """
    return weights.root[tree.rule] + _below_root(grammar, weights, form, tree)


def _below_root(grammar, weights, form, tree):
    total = weights.rule[tree.rule]
    for k, (hole, child) in enumerate(tree.children):
        total += weights.child[tree.rule][k][child.rule]
        total += _below_root(grammar, weights, form, child)
        start, stop = tree.spans[hole]
        for c, symbol in enumerate(weights.classes):
            if symbol in form[start:stop]:
                total += weights.holds[tree.rule][k][c]
    return total


def random_aligner(grammar=RICH, seed=0):
    aligner = RecursiveAligner(grammar, CLASSES)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in aligner.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return aligner


def log_sum(scores):
    return math.log(math.fsum(map(math.exp, scores)))
