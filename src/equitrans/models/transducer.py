"""The paper's model (§4): an equivariant translator, an invariant aligner, and a marginal that
joins them.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equitrans.batches import Batch
from equitrans.errors import ConfigError
from equitrans.glayers import GConv, GDecode, GEmbed
from equitrans.groups import Group
from equitrans.lstm import LSTM
from equitrans.marginals import AnnealedMax, Marginal, Max, Moment, Sum
from equitrans.models.base import Autoregressive
from equitrans.symmetry import GroupKind, Symmetry
from equitrans.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True)
class TransducerConfig:
    """The sizes and choices of a transducer.

    Args:
        k: size of the G-embedding (the paper's K)
        d: number of filters (the paper's D)
        embedding: size of the aligner's class embeddings
        hidden: size of the aligner's LSTM states
        encoder: one set of weights for both directions, or one for each
        marginal: what is done with the alignments of a word
        group: the group of each class, the paper's cyclic shifts or all permutations
        dropout: share of the aligner's states dropped while training
        forget_bias: how far the LSTMs' forget gates are open at the start, so that they learn to
            count sooner
        warm_start: share of training at its start in which alignments are held uniform, so that
            words are translated before they are aligned

    """

    k: int = 32
    d: int = 16
    embedding: int = 32
    hidden: int = 64
    encoder: Literal["tied", "separate"] = "tied"
    marginal: Literal["sum", "max", "annealed"] = "sum"
    group: GroupKind = "cyclic"
    dropout: float = 0.3
    forget_bias: float = 1.0
    warm_start: float = 0.05

    def __post_init__(self) -> None:
        for name in ("k", "d", "embedding", "hidden"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("dropout", "warm_start"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"model.{name} is {getattr(self, name)}; it must lie in [0, 1)")

    def build(self, symmetry: Symmetry) -> "Transducer":
        """A new transducer with weights from torch's current random state."""
        marginals: dict[str, Marginal] = {"sum": Sum(), "max": Max(), "annealed": AnnealedMax()}
        return Transducer(
            symmetry,
            Translator(symmetry, k=self.k, d=self.d),
            Aligner(
                symmetry,
                embedding=self.embedding,
                hidden=self.hidden,
                tied=self.encoder == "tied",
                dropout=self.dropout,
                forget_bias=self.forget_bias,
            ),
            marginals[self.marginal],
            warm_start=self.warm_start,
        )


class Factor(nn.Module):
    """One class and its factor of the group: the paper's stack on the words of the class."""

    def __init__(self, group: Group, *, k: int, d: int) -> None:
        super().__init__()
        moves = group.generators
        self.embed = GEmbed(moves, moves, k=k)
        self.conv = GConv(moves, k=k, d=d)
        self.decode = GDecode(moves, moves, d=d)

    def forward(self) -> Float[Tensor, "g d"]:
        """φ of the class's first word; any other word's is the same, moved."""
        first = torch.zeros(1, dtype=torch.long, device=self.embed.omega.device)
        return torch.tanh(self.conv(torch.tanh(self.embed(first))))[0]

    def fixed(self, embedded: Float[Tensor, "x k"]) -> Float[Tensor, "x d"]:
        """Σ_h φ(h) of words that the group does not move: their features are the same
        everywhere.
        """
        phi = torch.tanh(embedded @ self.conv.psi[self.conv.shared[0]].sum(0))
        return phi * len(self.conv.shared)

    def mean_rho(self) -> Float[Tensor, " d"]:
        """ρ of any word of the class as seen by words that this factor does not move."""
        return self.decode.rho[self.decode.shared[:, 0]].mean(0)


class Translator(nn.Module):
    """log p(y | x) for single words: G-Embed, tanh, G-Conv, tanh, G-Decode, softmax (§4.2).

    A word is moved by its own class's factor of the group only, so features live on the factors
    side by side and the product group is never listed: a word of class c has features on factor c,
    a word of no class the same features everywhere on all. Towards words of another class it sees
    the mean of their ρ. With one class this is the paper's translator, parameter for parameter.

    All rows of a class are one row moved, so the table below has one row per class and per word of
    no class.
    """

    row: Int[Tensor, " x"]
    source_class: Int[Tensor, " x"]
    source_place: Int[Tensor, " x"]
    target_class: Int[Tensor, " y"]
    target_place: Int[Tensor, " y"]
    filter: Int[Tensor, " y"]
    member: Int[Tensor, " p"]
    member_class: Int[Tensor, " p"]
    start: Int[Tensor, " c"]
    size: Int[Tensor, " c"]

    def __init__(self, symmetry: Symmetry, *, k: int, d: int) -> None:
        super().__init__()
        # without classes EOS is made one of its own: a class of one word moves nothing
        sources = [symmetry.source.encode(c.source) for c in symmetry.classes] or [(EOS,)]
        targets = [symmetry.target.encode(c.target) for c in symmetry.classes] or [(EOS,)]
        self.factors = nn.ModuleList(
            Factor(group, k=k, d=d) for group in symmetry.factors or [Group.trivial()]
        )
        self.symmetric = symmetry.kind == "symmetric"
        row, source_class, source_place = _numbers(len(symmetry.source), sources, none=-1)
        filters, target_class, target_place = _numbers(len(symmetry.target), targets, none=-2)
        n = len(sources)
        self.omega = nn.Parameter(torch.empty(max(row) + 1 - n, k).uniform_(-0.5, 0.5))
        self.rho = nn.Parameter(torch.empty(max(filters) + 1 - n, d).uniform_(-0.5, 0.5))
        for name, numbers in (
            ("row", row),
            ("source_class", source_class),
            ("source_place", source_place),
            ("target_class", target_class),
            ("target_place", target_place),
            ("filter", filters),
            ("member", [word for words in targets for word in words]),
            ("member_class", [c for c, words in enumerate(targets) for _ in words]),
            ("start", [sum(map(len, targets[:c])) for c in range(n)]),
            ("size", [len(words) for words in targets]),
        ):
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.long), persistent=False)

    def forward(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"]:
        """Rows of the table of log-probabilities; PAD and BOS are never emitted."""
        factors = cast(list[Factor], list(self.factors))
        n = len(factors)
        every_class = torch.arange(n, device=words.device)
        rows, at = torch.unique(torch.cat([every_class, self.row[words]]), return_inverse=True)
        phis = [factor() for factor in factors]
        embedded = torch.tanh(self.omega[rows[n:] - n])
        fixed = torch.stack([factor.fixed(embedded) for factor in factors]).sum(0)
        pooled = torch.cat([torch.stack([phi.sum(0) for phi in phis]), fixed])
        means = torch.stack([factor.mean_rho() for factor in factors])
        logits = pooled @ torch.cat([means, self.rho])[self.filter].T
        own = torch.cat([f.decode(phi) for f, phi in zip(factors, phis, strict=True)])
        logits = logits.index_put((self.member_class, self.member), own)
        logits = torch.cat([logits.new_full((len(rows), EOS), -math.inf), logits[:, EOS:]], dim=1)
        return torch.log_softmax(logits, dim=1)[at[n:]].gather(1, self._columns(words))

    def _columns(self, words: Int[Tensor, " x"]) -> Int[Tensor, "x y"]:
        """Where in its class's row the entry for each target word stands: at g⁻¹∘y, if g moved the
        first word of the class to x.
        """
        kind, y = self.source_class[words], torch.arange(len(self.filter), device=words.device)
        moved = (self.target_place - self.source_place[words, None]) % self.size[kind, None]
        if self.symmetric:
            moved = moved.clamp(max=1)  # same or other
        # the remainder lies beyond the class for words of another one, whose columns are not used
        column = self.member[(self.start[kind, None] + moved).clamp(max=len(self.member) - 1)]
        return torch.where(kind[:, None] == self.target_class, column, y)


def _numbers(
    size: int, classes: list[tuple[int, ...]], *, none: int
) -> tuple[list[int], list[int], list[int]]:
    """For every word: its row (classes first, then words of no class), its class or none, its
    place in it.

    PAD has no row of its own; where padding is looked up it reads that of EOS.
    """
    row, kind, place = [0] * size, [none] * size, [0] * size
    for c, words in enumerate(classes):
        for i, word in enumerate(words):
            row[word], kind[word], place[word] = c, c, i
    others = [word for word in range(size) if kind[word] < 0 and word != PAD]
    for i, word in enumerate(others, start=len(classes)):
        row[word] = i
    row[PAD] = row[EOS]
    return row, kind, place


class AlignerState(NamedTuple):
    """What the aligner knows of a source and of the target so far."""

    keys: Float[Tensor, "b n s"]
    closed: Float[Tensor, "b n"]
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]


class Aligner(nn.Module):
    """``p(a_m = n) ∝ exp(h_mᵀ T [h→_n; h←_n])`` (eqs. 6 and 7), from LSTMs that see classes
    only.
    """

    source_classes: Int[Tensor, " x"]
    target_classes: Int[Tensor, " y"]

    def __init__(
        self,
        symmetry: Symmetry,
        *,
        embedding: int,
        hidden: int,
        tied: bool = True,
        dropout: float = 0.0,
        forget_bias: float = 0.0,
    ) -> None:
        super().__init__()
        # PAD has no parameters: classes are counted from BOS, and padding reads whatever stands
        # first
        for name, classes in (
            ("source_classes", symmetry.source_classes),
            ("target_classes", symmetry.target_classes),
        ):
            numbers = torch.tensor(classes).sub(BOS).clamp(min=0)
            self.register_buffer(name, numbers, persistent=False)
        n, m = (max(c) for c in (symmetry.source_classes, symmetry.target_classes))

        def lstm(symbols: int) -> LSTM:
            return LSTM(symbols, embedding=embedding, hidden=hidden, forget_bias=forget_bias)

        self.encoder, self.decoder = lstm(n), lstm(m)
        self.backward_encoder = None if tied else lstm(n)
        self.bilinear = nn.Parameter(torch.empty(hidden, 2 * hidden).uniform_(-0.5, 0.5))
        self.dropout = nn.Dropout(dropout)

    def start(self, source: Int[Tensor, "b n"]) -> AlignerState:
        """Read a source in both directions."""
        b, n = source.shape
        length = (source != PAD).sum(1)
        position = torch.arange(n, device=source.device).expand(b, n)
        mirrored = torch.where(position < length[:, None], length[:, None] - 1 - position, position)
        classes = self.source_classes[source]
        if self.backward_encoder is None:
            both, cells = self.encoder(torch.cat([classes, classes.gather(1, mirrored)]))
            forward, backward = both[:b], both[b:]
        else:
            forward, cells = self.encoder(classes)
            backward, _ = self.backward_encoder(classes.gather(1, mirrored))
        backward = backward.gather(1, mirrored[:, :, None].expand_as(backward))
        row, last = torch.arange(b, device=source.device), length - 1
        return AlignerState(
            keys=self.dropout(torch.cat([forward, backward], dim=2)) @ self.bilinear.T,
            closed=torch.zeros(b, n, device=source.device, dtype=forward.dtype).masked_fill(
                source == PAD, -math.inf
            ),
            h=forward[row, last],
            c=cells[row, last],
        )

    def advance(
        self, state: AlignerState, previous: Int[Tensor, "b m"]
    ) -> tuple[Float[Tensor, "b m n"], AlignerState]:
        """Log p(a_m = n) after each of the previous words, and the state after the last."""
        states, cells = self.decoder(self.target_classes[previous], state.h, state.c)
        scores = self.dropout(states) @ state.keys.transpose(1, 2) + state.closed[:, None]
        after = state._replace(h=states[:, -1], c=cells[:, -1])
        return torch.log_softmax(scores, dim=2), after


class TransducerState(NamedTuple):
    """The aligner's state, and log p(y | x_n) for every source position."""

    aligner: AlignerState
    emitted: Float[Tensor, "b y n"]


class Transducer(Autoregressive):
    """``p(y | x) = Π_m marginal_n p(y_m | x_n) p(a_m = n | ℓ(y_<m), ℓ(x))`` (eq. 5)."""

    def __init__(
        self,
        symmetry: Symmetry,
        translator: Translator,
        aligner: Aligner,
        marginal: Marginal,
        *,
        warm_start: float = 0.0,
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        self.translator = translator
        self.aligner = aligner
        self.marginal = marginal
        self.warm_start = warm_start

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        warm = moment is not None and moment.done < self.warm_start
        by_word = self.marginal(self._joint(batch, uniform=warm), moment=moment)
        return -by_word.masked_fill(batch.target == PAD, 0.0).sum(1)

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The posterior p(a_m = n | x, y) of each row."""
        return torch.softmax(self._joint(batch, uniform=False), dim=2)

    def _joint(self, batch: Batch, *, uniform: bool) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n) + log p(a_m = n): one alignment per form, one translation per word."""
        source, target = batch.source[batch.first], batch.target[batch.first]
        if uniform:
            aligned = _uniform(source, like=self.aligner.bilinear)[:, None]
        else:
            first = torch.full_like(target[:, :1], BOS)
            state = self.aligner.start(source)
            aligned, _ = self.aligner.advance(state, torch.cat([first, target[:, :-1]], dim=1))
        words, at = torch.unique(batch.source, return_inverse=True)
        table = self.translator(words)
        # padding of the target is looked up as EOS, since PAD is never emitted
        gold = batch.target.masked_fill(batch.target == PAD, EOS)
        entry = at[:, None] * table.shape[1] + gold[:, :, None]
        emitted = table.flatten().gather(0, entry.flatten()).view(entry.shape)
        return emitted + aligned[batch.form]

    def start(self, source: Int[Tensor, "b n"]) -> TransducerState:
        words, at = torch.unique(source, return_inverse=True)
        emitted = self.translator(words)[at].transpose(1, 2).contiguous()
        return TransducerState(self.aligner.start(source), emitted)

    def step(
        self, state: TransducerState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], TransducerState]:
        aligned, after = self.aligner.advance(state.aligner, previous[:, None])
        return self.marginal(state.emitted + aligned), state._replace(aligner=after)


def _uniform(source: Int[Tensor, "b n"], *, like: Tensor) -> Float[Tensor, "b n"]:
    """Every position of a source is as likely as any other."""
    open_ = torch.zeros(source.shape, device=source.device, dtype=like.dtype)
    return torch.log_softmax(open_.masked_fill(source == PAD, -math.inf), dim=1)
