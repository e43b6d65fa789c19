"""What the page shows, as values that are ready for JSON."""

from dataclasses import dataclass

from equitrans.analysis import Words

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Class:
    """A lexical class; the i-th words of both sides belong together."""

    name: str
    source: Words
    target: Words


@dataclass(frozen=True)
class Model:
    """A model at a glance, and what there is to be seen of it."""

    name: str
    kind: str
    about: str
    parameters: int
    classes: tuple[Class, ...]
    words: Words
    equivariant: bool
    has_table: bool
    has_derivations: bool
    has_data: bool
    characters: bool
    recorded: str | None


@dataclass(frozen=True)
class Word:
    """A word of a command, and the name of its class if it has one."""

    text: str
    home: str | None


@dataclass(frozen=True)
class Guess:
    """A target of a command, with its probability."""

    words: Words
    log_prob: float
    prob: float
    finished: bool


@dataclass(frozen=True)
class Answer:
    """A command and its best targets; none if a recursive aligner does not derive it."""

    command: str
    words: tuple[Word, ...]
    template: str
    best: tuple[Guess, ...]


@dataclass(frozen=True)
class Aligned:
    """``posterior[m][n]`` is p(a_m = n | x, y), or attention where it is ``soft``; ``prior`` is
    p(a_m = n) before y_m is seen, and ``emitted`` p(y_m | x_n).
    """

    source: Words
    target: Words
    posterior: Matrix
    prior: Matrix | None
    emitted: Matrix | None
    soft: bool


@dataclass(frozen=True)
class Block:
    """Where a class lies in a table."""

    name: str
    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class Table:
    """p(y | x) of the translator; EOS is its last column. What is missing has a reason."""

    sources: Words
    targets: Words
    prob: Matrix
    blocks: tuple[Block, ...]
    left_out: int
    missing: str | None


@dataclass(frozen=True)
class Member:
    """A pair of a family, and the numbers of its orbits."""

    source: str
    target: str
    loss: float | None
    theoretical: int
    observed: int


@dataclass(frozen=True)
class Family:
    """All pairs of a command's form; ``promised`` if theory speaks of this model."""

    members: tuple[Member, ...]
    promised: bool
    missing: str | None


@dataclass(frozen=True)
class Moment:
    """A family after some epoch: the orbit and −log p of every member."""

    epoch: int
    observed: tuple[int, ...]
    losses: tuple[float | None, ...]


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a family through training; what is missing has a reason."""

    sentence: str | None
    sources: tuple[str, ...]
    theoretical: tuple[int, ...]
    moments: tuple[Moment, ...]
    missing: str | None


@dataclass(frozen=True)
class Node:
    """A step of a derivation, over the words from ``start`` to before ``stop``."""

    depth: int
    start: int
    stop: int
    rule: str
    support: int


@dataclass(frozen=True)
class Derivation:
    """The likeliest derivation, root first; no nodes, and a reason, where there is none."""

    words: Words
    nodes: tuple[Node, ...]
    alignments: int
    missing: str | None


@dataclass(frozen=True)
class Fact:
    """Something that a swap leaves as it is or not; ``promised`` if it must stay, by proof."""

    what: str
    before: str
    after: str
    same: bool
    promised: bool
    why: str


@dataclass(frozen=True)
class Swap:
    """Two commands of one form: where they differ, and what follows."""

    before: Answer
    after: Answer
    source_changes: tuple[int, ...]
    target_changes: tuple[int, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Added:
    """What it takes to add a word: see ``extension.Extension``."""

    classes: tuple[Class, ...]
    symmetrised: float
    in_class: float
    diluted: float
