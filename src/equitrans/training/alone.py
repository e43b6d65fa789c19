"""A rule model as plain values, for answers without torch, and as one Python file with them."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from equitrans import __version__
from equitrans.errors import ConfigError, RunError, shown
from equitrans.files import write_atomically
from equitrans.lexical import is_filler
from equitrans.models import RecursiveTransducer
from equitrans.paper import MARGINALS, N_SPECIAL
from equitrans.training.plain import Answerer
from equitrans.training.trained import Trained

SAMPLE = 50
"""Number of suggested sentences on which a file is compared with its model."""


def plain_state(trained: Trained) -> dict[str, Any]:
    """All that answers need, as JSON values; raise ConfigError for a model without rules.

    Words are numbered from 0. The translator's table has one row for each source column, that of
    the column's first word: by equivariance it gives those of the others.
    """
    model = trained.model
    if type(model) is not RecursiveTransducer:
        raise ConfigError("the model is not made of rules; learn it with aligner='recursive'")
    if not model.is_plain:
        raise ConfigError(
            "the rules use parts of what other rules write, which only the model itself can do"
        )
    if trained.capitals:
        raise ConfigError("the model reads capitals, which only the model itself can do")
    symmetry, reading = trained.symmetry, trained.reading
    aligner, grammar = model.aligner, model.aligner.grammar
    (homes, target_homes), (sources, targets) = symmetry.homes, symmetry.members
    weights = aligner.weights()
    with torch.no_grad():
        table = model.spoken(torch.tensor([words[0] for words in sources], dtype=torch.long))
        best = [
            model.spoken(torch.tensor(words)).argmax(1).tolist() if words else []
            for words in sources
        ]
    licences, lost = None, []
    if aligner.licences is not None:
        accepted = aligner.licences.accepted
        licences = [[r, k, sorted(rules)] for (r, k), rules in accepted.items()]
        lost = sorted(aligner.licences.lost)
    open_classes = [
        [
            c.name,
            pattern and pattern.pattern,
            [w for w in c.source if is_filler(w)],
            sorted(reading.before.get(c.name, ())),
        ]
        for c, pattern in reading._open
    ]
    return {
        "characters": trained.characters,
        "max_length": trained.max_length,
        "source": list(symmetry.source.words),
        "target": list(symmetry.target.words),
        "symbols": list(symmetry.source_classes[N_SPECIAL:]),
        "phrases": {w: [[list(p), s] for p, s in some] for w, some in reading._phrases[0].items()},
        "spelled": {symbol: list(words) for symbol, words in reading._spelled.items()},
        "inflected": [[*two, form] for form, two in reading.inflected.items()],
        "listed": sorted(reading._listed),
        "open": open_classes,
        "homes": {w - N_SPECIAL: [home.column, home.row] for w, home in homes.items()},
        "rows": [[c, len(words)] for c, words in zip(symmetry.owners[0], sources, strict=True)],
        "columns": [[y - N_SPECIAL for y in words] for words in best],
        "target_rows": {
            w - N_SPECIAL: [home.c, home.row, home.column] for w, home in target_homes.items()
        },
        "target_columns": [[y - N_SPECIAL for y in words] for words in targets],
        "table": [[round(value, 7) for value in row[N_SPECIAL:]] for row in table.tolist()],
        "noise": float(model.noise),
        "maximum": model.marginal != MARGINALS["sum"],
        "rules": _rules(grammar.rules),
        "weights": {
            "rule": weights.rule,
            "child": weights.child,
            "holds": weights.holds,
            "root": weights.root,
        },
        "classes": list(weights.classes),
        "licences": licences,
        "lost": lost,
        "rivals": [
            {"odds": odds, "rules": _rules(rival.rules)} for odds, rival in model.doubts.close
        ],
    }


def _rules(rules: Iterable[Any]) -> list[list[list[int]]]:
    return [
        [list(rule.left), [k if k >= 0 else ~(~k - N_SPECIAL) for k in rule.right]]
        for rule in rules
    ]


def answerer(trained: Trained) -> Answerer | None:
    """Answers of a model without torch; None unless its rules are plain."""
    model = trained.model
    if type(model) is not RecursiveTransducer or not model.is_plain or trained.capitals:
        return None
    return Answerer(json.loads(json.dumps(plain_state(trained))))


def write_standalone(
    trained: Trained, path: Path | str, *, sentences: Iterable[Sequence[str]] = ()
) -> int:
    """Write one Python file that answers as a rule model does and needs no library; return the
    number of sentences on which both were compared: those given and the model's suggestions.
    """
    state = plain_state(trained)
    compared = [*sentences, *(each.source for each in trained.suggest(SAMPLE))]
    _compare(trained, Answerer(json.loads(json.dumps(state))), compared)
    write_atomically(path, _source(state))
    return len(compared)


def _source(state: dict[str, Any]) -> str:
    """The source of the file: both plain modules, and the state as a JSON text."""
    content = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(content.encode()).hexdigest()
    folder = files("equitrans.training")
    grammar, plain = (
        (folder / name).read_text(encoding="utf-8") for name in ("plain_grammar.py", "plain.py")
    )
    _, _, plain = plain.partition("from __future__ import annotations\n")
    imported = "from equitrans.training.plain_grammar import CONSTANTS, PlainGrammar\n"
    for found in (imported, "STATE = None\n"):
        assert plain.count(found) == 1
    plain = plain.replace(imported, "").replace(
        "STATE = None\n", f"STATE = json.loads({content!r})\n"
    )
    head = (
        f"# A rule model of equitrans {__version__} in one file; Python 3.10 or later runs it.\n"
        f"# SHA-256 of the model: {digest}\n"
        '#   python FILE.py "a sentence"   answers it; without sentences, those of standard input\n'
        '#   Answerer(STATE).answer("a sentence").text   does so in a program\n'
    )
    return head + grammar + plain


def _compare(trained: Trained, plain: Answerer, sentences: Sequence[Sequence[str]]) -> None:
    """Raise RunError if a model and its plain answers differ."""
    for sentence, expected in zip(sentences, trained.predict(sentences), strict=True):
        found = plain.answer(sentence)
        if (found.reason is not None, found.words) != (expected.refused, expected.words):
            raise RunError(
                f"the file would answer {shown(trained.text(sentence))} with {shown(found.text)}; "
                f"the model answers {shown(trained.text(expected.words))}"
            )
