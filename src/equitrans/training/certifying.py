"""A certificate of a model: what is proven, what is measured, and what is neither.

A *proven* statement holds for all sentences by construction. It is tried on the test pairs as well,
because a proof says nothing about damaged files and programming errors. A *measured* statement
holds for the test pairs. An *open* statement names what nobody has shown.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from equitrans import __version__
from equitrans.analysis import Report, known_pairs
from equitrans.data import Pair
from equitrans.errors import DataError, shown
from equitrans.files import as_path
from equitrans.models import RecursiveTransducer
from equitrans.training.trained import FILES, Trained

SAMPLE = 200
"""Number of sentences on which a proven statement is tried."""

PROBE = "xqzvk"
"""A word that no language has; numbers are added until the model does not know it."""

Kind = Literal["proven", "measured", "open"]


@dataclass(frozen=True)
class Statement:
    """A statement about a model, and what speaks for it."""

    name: str
    kind: Kind
    text: str
    evidence: str
    passed: bool | None
    """Whether the check passed; None if there is nothing to check."""


@dataclass(frozen=True)
class Certificate:
    """Statements about a model and its test pairs, with the SHA-256 hashes of their files."""

    model: str
    version: str
    files: dict[str, str]
    data: str
    data_hash: str
    statements: tuple[Statement, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(statement.passed is not False for statement in self.statements)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain values, with the hash of all others."""
        content = asdict(self) | {"passed": self.passed}
        content["statements"] = [asdict(each) for each in self.statements]
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        return content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}

    def to_markdown(self) -> str:
        """The certificate as a page."""
        titles = {
            "proven": "Proven, for all sentences",
            "measured": "Measured, on the test pairs",
            "open": "Neither proven nor measured",
        }
        lines = [
            f"# Certificate of {_cell(self.model)}",
            "",
            f"**{'All checks passed' if self.passed else 'A check FAILED'}**, equitrans "
            f"{self.version}, test pairs {_cell(self.data)}.",
        ]
        for kind, title in titles.items():
            lines += ["", f"## {title}", "", "| statement | evidence | check |"]
            lines.append("| --- | --- | --- |")
            for each in self.statements:
                if each.kind == kind:
                    check = {True: "passed", False: "**FAILED**", None: ""}[each.passed]
                    lines.append(f"| {_cell(each.text)} | {_cell(each.evidence)} | {check} |")
        lines += ["", "## Files", "", "| file | SHA-256 |", "| --- | --- |"]
        files = self.files | {self.data: self.data_hash}
        files["this certificate"] = self.to_dict()["sha256"]
        lines += [f"| {_cell(name)} | `{digest}` |" for name, digest in files.items()]
        return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def certify(
    directory: Path | str,
    data: Path | str,
    pairs: Sequence[Pair],
    *,
    least_right: float | None = None,
    most_wrong: float | None = None,
    tolerance: float = 1e-5,
) -> Certificate:
    """Check a model on test pairs, those of the file ``data``.

    The checks of measured statements fail if the share of right answers is below ``least_right`` or
    that of wrong ones above ``most_wrong``.
    """
    directory, data = as_path(directory), as_path(data)
    if not pairs:
        raise DataError("nothing to certify: there are no pairs")
    trained = Trained.load(directory)
    report = trained.evaluate(pairs)
    found = [
        *_equivariance(trained, pairs, tolerance),
        *_unknown_words(trained, pairs),
        *_types(trained, report),
        _deterministic(trained, report),
        *_measured(report, least_right, most_wrong),
        *_open(trained, report),
    ]
    files = {name: _digest(directory / name) for name in FILES if (directory / name).is_file()}
    name = directory.resolve().name
    return Certificate(name, __version__, files, data.name, _digest(data), tuple(found))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _equivariance(trained: Trained, pairs: Sequence[Pair], tolerance: float) -> Iterator[Statement]:
    """Words of a class can be exchanged."""
    classes = trained.symmetry.classes
    if not classes:
        yield Statement(
            "equivariance", "open", "Words can be exchanged.", "the model has no classes", None
        )
        return
    by_construction = bool(trained.model.sharing.classes)
    text = (
        "Exchanging words of a class in a sentence exchanges their translations in the target, and "
        "leaves its probability as it is."
    )
    reading = trained.reading
    known = [p for p in pairs if known_pairs(reading.readable([p]), trained.symmetry)][:SAMPLE]
    seen = {word for pair in known for word in reading.source(pair.source).symbols}
    tried = [c for c in classes if len(c.source) > 1 and not seen.isdisjoint(c.words[0])]
    kind: Kind = "proven" if by_construction else "measured"
    why = "by construction (theorem 3); " if by_construction else ""
    if not tried:
        evidence = f"{why}no test pair has a word of a class"
        yield Statement("equivariance", kind, text, evidence, None)
        return
    found = trained.audit(known, tried, tolerance=tolerance)
    names = ", ".join(c.name for c in tried)
    evidence = (
        f"{why}{found.pairs} pairs under {found.elements} exchanges of {names}: deviation of log p "
        f"{found.max_deviation:.1g} at most, {len(found.mismatches)} predictions do not commute"
    )
    yield Statement("equivariance", kind, text, evidence, found.passed)


def _unknown_words(trained: Trained, pairs: Sequence[Pair]) -> Iterator[Statement]:
    """Unknown words are refused, or copied if a class is open."""
    known = trained.symmetry.source.index
    probe = next(w for n in range(len(known) + 1) if (w := f"{PROBE}{n or ''}") not in known)
    if trained.characters:
        probe = next(chr(c) for c in range(0x3400, 0x4E00) if chr(c) not in known)
    asked = [(*pair.source[:-1], probe) for pair in pairs[:SAMPLE]]
    answers = trained.predict(asked)
    if any(c.open for c in trained.reading.classes):
        good = [p.refused or probe in trained.text(p.words) for p in answers]
        text = "A word that is not known joins an open class and is copied, or refused."
        evidence = f"{sum(good)} of {len(good)} sentences with {probe!r}"
        yield Statement("unknown words", "measured", text, evidence, all(good))
        return
    good = [p.refused for p in answers]
    text = "A sentence with an unknown word is refused; no word is guessed."
    evidence = f"by construction; {sum(good)} of {len(good)} sentences with {probe!r} are refused"
    yield Statement("unknown words", "proven", text, evidence, all(good))


def _types(trained: Trained, report: Report) -> Iterator[Statement]:
    """Rules stand only where training pairs suggest it."""
    text = "An answer combines rules only in ways that training pairs suggest."
    model = trained.model
    if not isinstance(model, RecursiveTransducer) or model.aligner.licences is None:
        yield Statement("types", "open", text, "the model has no rules with typed places", None)
        return
    answered = [
        pair.source
        for pair, p in zip(report.pairs, report.predictions, strict=True)
        if not p.refused
    ][:SAMPLE]
    good = [
        model.aligner.is_licensed(model.form(model.symmetry.source.encode(read.symbols)))
        for read in map(trained.reading.source, answered)
    ]
    evidence = f"by construction; {sum(good)} of {len(good)} answers have licensed derivations"
    yield Statement("types", "proven", text, evidence, all(good))


def _deterministic(trained: Trained, report: Report) -> Statement:
    """One sentence has one answer."""
    asked = [pair.source for pair in report.pairs[:SAMPLE]]
    together = [p.words for p in report.predictions[:SAMPLE]]
    alone = [trained.predict([sentence])[0].words for sentence in asked]
    same = sum(a == b for a, b in zip(alone, together, strict=True))
    return Statement(
        "determinism",
        "proven",
        "A sentence has the same answer each time, alone and together with others.",
        f"nothing is sampled; {same} of {len(asked)} answers are the same",
        same == len(asked),
    )


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson.

    >>> [round(end, 3) for end in interval(48, 50)]
    [0.865, 0.989]
    """
    z = 1.959964
    share, scale = successes / trials, 1 + z**2 / trials
    middle = (share + z**2 / (2 * trials)) / scale
    half = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def _measured(
    report: Report, least_right: float | None, most_wrong: float | None
) -> Iterator[Statement]:
    """Right, wrong and refused answers to the test pairs."""
    total, right = len(report.pairs), sum(report.right)
    wrong = total - right - report.refused
    limits = {"right": least_right, "wrong": most_wrong, "refused": None}
    for name, count in (("right", right), ("wrong", wrong), ("refused", report.refused)):
        low, high = interval(count, total)
        evidence = f"{count} of {total}; 95 % interval {100 * low:.1f} to {100 * high:.1f} %"
        limit, passed = limits[name], None
        if limit is not None:
            passed = count / total >= limit if name == "right" else count / total <= limit
            evidence += f"; {'at least' if name == 'right' else 'at most'} {100 * limit:g} % wanted"
        text = f"{100 * count / total:.2f} % of the answers are {name}."
        yield Statement(name, "measured", text, evidence, passed)
    doubtful = sum(p.doubtful for p in report.predictions)
    if doubtful:
        text = f"{doubtful} answers are doubtful: another target is nearly as likely."
        yield Statement("doubtful", "measured", text, "margin below log 9", None)


def _open(trained: Trained, report: Report) -> Iterator[Statement]:
    """What nobody has shown."""
    forms = len(set(report.templates))
    yield Statement(
        "other sentences",
        "open",
        "Answers to sentences of other kinds than the test pairs are right.",
        f"the test pairs have {forms} forms; figures hold for sentences that are drawn like them",
        None,
    )
    yield Statement(
        "test pairs", "open", "The targets of the test pairs are right.", "they are given", None
    )
    if trained.grammar is None:
        return
    grammar = trained.grammar
    if grammar.exceptions:
        (source, target), reason = grammar.exceptions[0]
        yield Statement(
            "unexplained",
            "open",
            "The training pairs that no rule explains are wrong, and not irregular.",
            f"{len(grammar.exceptions)} pairs, for example {shown(trained.text(source))} → "
            f"{shown(trained.text(target))}: {reason}",
            None,
        )
    thin = [t for t, n in zip(grammar.texts, grammar.support, strict=True) if n <= 1]
    if thin:
        text = "Rules that at most one training pair supports are right."
        yield Statement("thin rules", "open", text, f"{len(thin)} rules, such as {thin[0]}", None)
