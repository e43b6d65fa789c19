"""Response models: what each request returns as JSON."""

from dataclasses import dataclass
from typing import Literal

from equitrans.analysis import Words

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Problem:
    """An error message."""

    error: str


@dataclass(frozen=True)
class Column:
    """A source column of a class: its name, its words, and the translation of each."""

    name: str
    source: Words
    target: Words


@dataclass(frozen=True)
class Model:
    """A model at a glance, and which views it has."""

    name: str
    kind: str
    about: str
    parameters: int
    classes: tuple[Column, ...]
    words: Words
    equivariant: bool
    has_table: bool
    has_derivations: bool
    has_data: bool
    characters: bool
    recorded: str | None


@dataclass(frozen=True)
class Models:
    """All models of the page."""

    models: tuple[Model, ...]


@dataclass(frozen=True)
class Suggestions:
    """Commands to choose from."""

    commands: tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """A word of a command, the name of its class or None, and whether the model knows the word."""

    text: str
    home: str | None
    known: bool


@dataclass(frozen=True)
class Guess:
    """A target of a command, its probability, and ``by`` which part of the model it was written."""

    words: Words
    log_prob: float
    prob: float
    finished: bool
    by: str | None


@dataclass(frozen=True)
class Answer:
    """A command and its best targets, or the reason why there are none."""

    command: str
    words: tuple[Word, ...]
    template: str
    best: tuple[Guess, ...]
    reason: str | None


@dataclass(frozen=True)
class Aligned:
    """``posterior[m][n]`` is p(a_m = n | x, y), or attention if ``soft``; ``prior`` is p(a_m = n)
    before y_m is seen, and ``emitted`` is p(y_m | x_n).
    """

    source: Words
    target: Words
    posterior: Matrix
    prior: Matrix | None
    emitted: Matrix | None
    soft: bool


@dataclass(frozen=True)
class Block:
    """The rectangle of a class in a table."""

    name: str
    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class Table:
    """p(y | x) of the translator; the last column is EOS. ``missing`` says why there is none."""

    sources: Words
    targets: Words
    prob: Matrix
    blocks: tuple[Block, ...]
    left_out: int
    missing: str | None


@dataclass(frozen=True)
class Member:
    """A pair of a family, and the numbers of its two orbits."""

    source: str
    target: str
    loss: float | None
    theoretical: int
    observed: int


@dataclass(frozen=True)
class Family:
    """All pairs of a command's form; ``promised`` if the model is equivariant by construction."""

    members: tuple[Member, ...]
    promised: bool
    missing: str | None


@dataclass(frozen=True)
class Moment:
    """A family after an epoch: the orbit and −log p of every member."""

    epoch: int
    observed: tuple[int, ...]
    losses: tuple[float | None, ...]


@dataclass(frozen=True)
class Recorded:
    """A family through training; ``missing`` says why there is no record."""

    sentence: str | None
    sources: tuple[str, ...]
    theoretical: tuple[int, ...]
    moments: tuple[Moment, ...]
    missing: str | None


@dataclass(frozen=True)
class Node:
    """A rule of a derivation, over the words from ``start`` to before ``stop``."""

    depth: int
    start: int
    stop: int
    rule: str
    support: int


@dataclass(frozen=True)
class Derivation:
    """The likeliest derivation, root first; ``missing`` says why there is none."""

    words: Words
    nodes: tuple[Node, ...]
    alignments: int
    missing: str | None


@dataclass(frozen=True)
class Supported:
    """A rule, and the number of training pairs that use it."""

    rule: str
    support: int


@dataclass(frozen=True)
class Unexplained:
    """A training pair that no rule explains, and why."""

    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class Suggested:
    """A sentence whose target would teach much, and why."""

    source: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """What is known about a model, and a command to begin with."""

    figures: tuple[str, ...]
    rules: tuple[Supported, ...]
    pairs: int
    unexplained: int
    exceptions: tuple[Unexplained, ...]
    warnings: tuple[str, ...]
    suggestions: tuple[Suggested, ...]
    example: str | None


@dataclass(frozen=True)
class Fact:
    """A quantity before and after a swap; ``promised`` if it provably stays the same."""

    what: str
    before: str
    after: str
    same: bool
    promised: bool
    why: str


@dataclass(frozen=True)
class Swap:
    """Two commands of one form, the positions where they differ, and what stays the same."""

    before: Answer
    after: Answer
    source_changes: tuple[int, ...]
    target_changes: tuple[int, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Added:
    """The classes of an extended model, and how far it is from the one before: see
    ``equitrans.training.Extension``.
    """

    classes: tuple[Column, ...]
    symmetrised: float
    in_class: float
    diluted: float


@dataclass(frozen=True)
class Mistake:
    """A pair and a wrong prediction for it, or the reason why there is none."""

    command: str
    template: str
    target: Words
    predicted: Words
    reason: str | None


@dataclass(frozen=True)
class Template:
    """The number of pairs of a template, and of right predictions among them."""

    template: str
    right: int
    pairs: int


@dataclass(frozen=True)
class Errors:
    """The progress of an evaluation, and one page of the mistakes found so far; ``missing`` says
    why there is no evaluation, or why it has failed.
    """

    state: Literal["missing", "working", "done", "failed"]
    which: Literal["test", "validation", "training"] | None
    done: int
    of: int
    right: int
    templates: tuple[Template, ...]
    mistakes: tuple[Mistake, ...]
    matching: int
    page: int
    pages: int
    missing: str | None


@dataclass(frozen=True)
class Changed:
    """A sentence, and the answers of two models, or the reasons why they have none."""

    command: str
    before: str
    after: str


@dataclass(frozen=True)
class Relearned:
    """What changed when rules were learned again with answers; ``name`` is the new model."""

    state: Literal["working", "done", "failed"]
    problem: str | None = None
    name: str | None = None
    classes_gained: tuple[str, ...] = ()
    classes_lost: tuple[str, ...] = ()
    rules_gained: tuple[str, ...] = ()
    rules_lost: tuple[str, ...] = ()
    unexplained: tuple[int, int] = (0, 0)
    """Number of unexplained pairs before and after."""
    asked: int = 0
    """Number of sentences that both models were asked."""
    differing: int = 0
    changed: tuple[Changed, ...] = ()
