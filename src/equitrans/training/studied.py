"""The page of a study: as text, as HTML for notebooks, and as plain values."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equitrans.data import Pair
from equitrans.lexical import LexicalClass
from equitrans.notebook import line, part, table

if TYPE_CHECKING:
    from equitrans.training.study import Held, Study
    from equitrans.training.trained import Trained

SHOWN = 12
"""Number of rules and pairs of each kind on a page; ``to_dict`` has all."""

WORDS = 6
"""Number of words of a class on a page."""

THIN = 1
"""Number of pairs up to which the support of a rule is thin."""

FEW_FORMS = 10
"""Number of forms below which the page warns that the judgement says little."""

CAREFUL = 0.1
"""Share of wrong answers to held-out pairs above which the page warns."""

SAID = "the rules say:"
"""Begins the target that rules give a pair which they do not explain."""

LONELY = "only 1 pair supports "
"""Begins the warning about a rule that one pair supports."""

SEARCHED = 1000
"""Number of pairs among which the pair of such a rule is looked for."""

Row = tuple[str, ...]


def page(study: "Study") -> str:
    """The page as text: understood, judged, unexplained, what to write next."""
    lines = []
    for title, about, rows in _parts(study):
        lines += ["", title, *(f"  {text}" for text in about)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))] if rows else []
        for row in rows[:SHOWN]:
            cells = (f"{text:{width}}" for text, width in zip(row, widths, strict=True))
            lines.append(f"    {'  '.join(cells)}".rstrip())
        if len(rows) > SHOWN:
            lines.append(f"    and {len(rows) - SHOWN} more")
    return "\n".join(lines[1:])


def html(study: "Study") -> str:
    """The page as HTML."""
    return "".join(
        part(title, *map(line, about), *([table([""] * len(rows[0]), rows)] if rows else []))
        for title, about, rows in _parts(study)
    )


def _parts(study: "Study") -> Iterator[tuple[str, list[str], list[Row]]]:
    """Each part of the page: its title, sentences, and rows of equal length."""
    grammar, text = study.grammar, study.trained.text
    classes = study.trained.symmetry.classes
    yield (
        "Classes",
        [] if classes else ["none: no words can be exchanged"],
        [(c.name, _words(c)) for c in classes],
    )
    explained = grammar.pairs - len(grammar.exceptions)
    rules = sorted(zip(grammar.support, grammar.texts, strict=True), key=lambda row: -row[0])
    yield (
        "Rules",
        [f"{_rules(len(rules))} {explained} of {_pairs(grammar.pairs)}"],
        [(rule, _pairs(n) + (", thin" if n <= THIN else "")) for n, rule in rules],
    )
    yield _judged(study)
    if study.held is not None and study.held.wrong:
        yield (
            "Wrong answers to held-out pairs",
            ["if an expected target is the mistake, correct the file"],
            [
                (text(pair.source), f"→ {text(p.words)}", f"expected {text(pair.target)}")
                for pair, p, right in zip(
                    study.held.report.pairs,
                    study.held.report.predictions,
                    study.held.report.right,
                    strict=True,
                )
                if not (right or p.refused)
            ],
        )
    if grammar.exceptions:
        yield (
            f"Unexplained: {_pairs(len(grammar.exceptions))}",
            _cure(study),
            [
                (f"{text(pair.source)} → {text(pair.target)}", reason)
                for pair, reason in study.unexplained
            ],
        )
    if study.warnings:
        yield "Warnings", [], [(warning,) for warning in study.warnings]
    yield (
        "Write next",
        [
            "their targets would teach the most; leave out what is no sentence of your language"
            if study.suggestions
            else "no question about these rules is open: write sentences of kinds that no pair has"
        ],
        [(text(each.source), "; ".join(each.reasons)) for each in study.suggestions],
    )


def unexplained(trained: "Trained", most: int | None = None) -> tuple[tuple[Pair, str], ...]:
    """The first pairs that the rules of a model do not explain, each with the reason and, where the
    rules give another target, that target.
    """
    assert trained.grammar is not None
    found = trained.grammar.exceptions[:most]
    says = trained.predict([pair.source for pair, _ in found])
    return tuple(
        (pair, reason if p.refused or SAID in reason else f"{reason}; {SAID} {text}")
        for (pair, reason), p in zip(found, says, strict=True)
        for text in [trained.text(p.words)]
    )


def with_pairs(
    warnings: Sequence[str], trained: "Trained", pairs: Sequence[Pair]
) -> tuple[str, ...]:
    """Warnings; those about a rule that one pair supports name the pair."""
    wanted = {text.removeprefix(LONELY): text for text in warnings if text.startswith(LONELY)}
    named = {text: text for text in warnings}
    for pair in dict.fromkeys(pairs[:SEARCHED]) if wanted else ():
        derived = trained.derive(pair.source)
        for rule in set() if derived is None else {node.rule for _, node in derived.root.walk()}:
            if (text := wanted.pop(rule, None)) is not None:
                sides = f"{trained.text(pair.source)} → {trained.text(pair.target)}"
                named[text] = f"{text}: {sides}"
        if not wanted:
            break
    return tuple(named.values())


def _judged(study: "Study") -> tuple[str, list[str], list[Row]]:
    held = study.held
    if held is None:
        return (
            "Held-out pairs",
            ["not judged: no folds, or all pairs have one form"],
            [],
        )
    total, (sure, sure_right) = len(held.report.pairs), held.sure
    answered = total - held.report.refused
    some = f"{held.folds} of {held.planned} folds over forms"
    if held.folds < held.planned:
        some += f" (the time was over; --folds {held.planned} judges all)"
    about = [
        f"{some}: the models that answer have seen no sentence of the same form",
        "their search for rules is shorter than that of the model itself",
        f"right {held.right} of {total} ({100 * held.right / total:.0f} %), "
        f"refused {held.report.refused}, wrong {held.wrong}",
        f"sure answers (odds above 9 to 1): {sure}, of which {sure_right} are right",
    ]
    if held.wrong > CAREFUL * answered:
        about.append(
            f"be careful: {held.wrong} of {answered} answers are wrong; write more pairs, or "
            "look at the margin of an answer before you use it"
        )
    forms = len(set(held.report.templates))
    if held.folds == held.planned and forms < FEW_FORMS:
        about.append(
            f"there are only {forms} forms: words that stand in one form only are unknown when it "
            "is held out"
        )
    if study.second is not None:
        said, right = held.second
        about.append(f"the second model answers {said} of the refused, {right} of them rightly")
    rows: list[Row] = [(f"refused {n}", text, reason) for n, text, reason in _refusals(study, held)]
    return "Held-out pairs", about, rows


def _refusals(study: "Study", held: "Held") -> list[tuple[int, str, str]]:
    """The refused pairs, as forms: how many, a sentence, and why; the most frequent first. Forms
    that are refused for the same reason are one.
    """
    report, numbers = held.report, Counter[str]()
    first: dict[tuple[str, ...], str] = {}
    examples: dict[str, str] = {}
    for pair, p, form in zip(report.pairs, report.predictions, report.templates, strict=True):
        if p.reason is not None:
            reason = first.setdefault(form, p.reason.partition("; ")[0])
            numbers[reason] += 1
            examples.setdefault(reason, study.trained.text(pair.source))
    return [(n, examples[reason], reason) for reason, n in numbers.most_common()]


def _cure(study: "Study") -> list[str]:
    second = "" if study.second is None else "; the second model answers what the rules refuse"
    if 2 * len(study.grammar.exceptions) > study.grammar.pairs:
        return [f"most pairs: rules may be the wrong model here, try equitrans train{second}"]
    return [f"correct those that are wrong{second}"]


def _words(c: LexicalClass) -> str:
    """The first words of a class with their translations, and the number of the others."""
    rows = [f"{source[0]} → {target[0]}" for source, target in c.rows]
    if c.is_open:
        rows.append("new words → themselves" if c.pattern is None else f"{c.pattern} → itself")
    more = f" and {len(rows) - WORDS} more" if len(rows) > WORDS else ""
    return ", ".join(rows[:WORDS]) + more


def _rules(n: int) -> str:
    return f"{n} rule explains" if n == 1 else f"{n} rules explain"


def _pairs(n: int) -> str:
    return f"{n} pair" if n == 1 else f"{n} pairs"


def trained_html(trained: "Trained") -> str:
    """A model for a notebook: its page, or its size, classes, figures and rules."""
    if trained.study is not None:
        return html(trained.study)
    symmetry, figures = trained.symmetry, trained.origin.to_json().get("figures", {})
    size = sum(weights.numel() for weights in trained.model.parameters())
    about = (
        f"{len(symmetry.source.words)} source words, {len(symmetry.target.words)} target words, "
        f"{size:,} weights"
    )
    parts = [line(about)]
    if symmetry.classes:
        parts.append(table(["class", "words"], [(c.name, _words(c)) for c in symmetry.classes]))
    if figures:
        rows = [(name.replace("_", " "), value) for name, value in figures.items()]
        parts.append(table(["figure", "value"], rows))
    if trained.grammar is not None:
        parts.append(trained.grammar._repr_html_())
    return part(type(trained.model).__name__, *parts)


def to_dict(study: "Study") -> dict[str, Any]:
    """All parts of a study as plain values."""
    grammar, text, held = study.grammar, study.trained.text, study.held
    found: dict[str, Any] = {
        "pairs": grammar.pairs,
        "explained": grammar.pairs - len(grammar.exceptions),
        "classes": {c.name: [[*s, *t] for s, t in c.rows] for c in study.trained.symmetry.classes},
        "rules": [
            {"rule": rule, "support": n}
            for rule, n in zip(grammar.texts, grammar.support, strict=True)
        ],
        "unexplained": [
            {"source": text(pair.source), "target": text(pair.target), "reason": reason}
            for pair, reason in study.unexplained
        ],
        "warnings": list(study.warnings),
        "suggestions": [
            {"source": text(each.source), "reasons": list(each.reasons), "worth": each.worth}
            for each in study.suggestions
        ],
        "seconds": study.seconds,
        "held_out": None,
    }
    if held is not None:
        report = held.report
        found["held_out"] = {
            "folds": held.folds,
            "planned": held.planned,
            "pairs": len(report.pairs),
            "right": held.right,
            "refused": report.refused,
            "wrong": held.wrong,
            "sure": held.sure[0],
            "sure_right": held.sure[1],
            "second_answered": held.second[0],
            "second_right": held.second[1],
            "answers": [
                {
                    "source": text(pair.source),
                    "target": text(pair.target),
                    "answer": None if p.refused else text(p.words),
                    "reason": p.reason,
                    "margin": p.margin,
                    "right": right,
                }
                for pair, p, right in zip(
                    report.pairs, report.predictions, report.right, strict=True
                )
            ],
        }
    return found
