"""The summary of a model, on which the page opens."""

from collections.abc import Sequence

from equitrans.explorer.entry import Entry
from equitrans.explorer.schema import Suggested, Summary, Supported, Unexplained
from equitrans.models import Suggestion
from equitrans.training import Figures, sentences_to_ask, unexplained, with_pairs

SHOWN, SUGGESTIONS, TRIED = 50, 5, 30
"""Largest number of rules and of unexplained pairs, of suggestions, and of suggestions that are
tried as an example."""


def summary(entry: Entry) -> Summary:
    """Return what is known about a model: figures, rules, unexplained pairs, warnings."""
    trained, grammar = entry.trained, entry.trained.grammar
    examples = entry.suggest("")
    example: str | None = next(iter(examples), None)
    if grammar is None:
        return Summary(_figures(trained.origin.figures), (), 0, 0, (), (), (), example)
    rules = sorted(zip(grammar.texts, grammar.support, strict=True), key=lambda row: -row[1])
    pairs = () if isinstance(entry.data, str) else entry.data.train
    suggestions: Sequence[Suggestion] = []
    if grammar.texts:
        suggestions = sentences_to_ask(trained, TRIED, pairs) if pairs else trained.suggest(TRIED)
    found = [Suggested(trained.text(each.source), each.reasons) for each in suggestions]
    wrong = {trained.text(source) for (source, _), _ in grammar.exceptions}
    example = next((each for each in examples if each not in wrong), example)
    if example is None:
        answers = zip(found, trained.predict([each.source for each in found]), strict=True)
        example = next((each.source for each, answer in answers if not answer.refused), None)
    return Summary(
        figures=_figures(trained.origin.figures),
        rules=tuple(Supported(*row) for row in rules[:SHOWN]),
        pairs=grammar.pairs,
        unexplained=len(grammar.exceptions),
        exceptions=tuple(
            Unexplained(trained.text(pair.source), trained.text(pair.target), reason)
            for pair, reason in unexplained(trained, SHOWN)
        ),
        warnings=with_pairs(grammar.warnings[:SHOWN], trained, pairs),
        suggestions=tuple(found[:SUGGESTIONS]),
        example=example,
    )


def _figures(figures: Figures) -> tuple[str, ...]:
    """Return the known figures as sentences."""
    found = []
    if figures.exact_match is not None:
        found.append(
            f"exact match {100 * figures.exact_match:.2f} % on {figures.test_set or 'test pairs'} "
            f"({figures.test_right} of {figures.test_pairs}, {figures.test_refused or 0} refused)"
        )
    if figures.valid_accuracy is not None:
        found.append(f"{100 * figures.valid_accuracy:.1f} % of the validation pairs right")
    if figures.train_pairs is not None:
        found.append(f"learned from {figures.train_pairs:,} pairs")
    if figures.exact_match is None and figures.valid_accuracy is None:
        found.append("not tested on pairs that it had not seen")
    return tuple(found)
