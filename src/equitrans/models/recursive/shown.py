"""Grammars and derivations as HTML for notebooks."""

from typing import TYPE_CHECKING

from equitrans.notebook import line, part, table

if TYPE_CHECKING:
    from equitrans.models.recursive.io import Derivation, Learned


def grammar_html(learned: "Learned") -> str:
    """The rules with their support, the pairs that they do not explain, and the warnings."""
    explained = learned.pairs - len(learned.exceptions)
    rules = sorted(zip(learned.texts, learned.support, strict=True), key=lambda row: -row[1])
    parts = [
        line(f"{explained:,} of {learned.pairs:,} pairs explained, {learned.bits:,.0f} bits"),
        table(["rule", "pairs"], rules),
        line(
            "□ is a part that another rule reads (a name after it is the kind of part that fits), "
            "<name> a word of that class; the numbers after an arrow are places before it, counted "
            "from 0, and 'words' are written as they are."
        ),
    ]
    if learned.exceptions:
        rows = [(" ".join(x), " ".join(y), reason) for (x, y), reason in learned.exceptions]
        parts.append(table(["unexplained source", "target", "reason"], rows))
    parts += [line(f"warning: {warning}") for warning in learned.warnings]
    return part(f"{len(rules)} rule{'' if len(rules) == 1 else 's'}", *parts)


def derivation_html(derivation: "Derivation") -> str:
    """The rules of a derivation, root first, each with the words that it covers."""
    rows = [
        (f"{'· ' * depth}{' '.join(derivation.source[n.start : n.stop])}", n.rule, n.support)
        for depth, n in derivation.root.walk()
    ]
    return part(" ".join(derivation.source), table(["words", "rule", "pairs"], rows))
