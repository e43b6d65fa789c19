"""The paper's model (§4): a translator, an aligner, and a marginal that joins them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.batches import Batch
from equitrans.grammar.learned import Learned
from equitrans.marginals import AnnealedMax, Marginal, Max, Moment, Sum
from equitrans.models.aligner import Aligner, AlignerState
from equitrans.models.base import Autoregressive
from equitrans.models.recursive import RecursiveTransducer
from equitrans.models.seq2seq import closed
from equitrans.models.table import TableTranslator
from equitrans.models.translator import Translator
from equitrans.settings import check_counts, check_settings, check_shares
from equitrans.symmetry import GroupKind, Symmetry
from equitrans.vocabulary import BOS, EOS, PAD

MARGINALS: dict[str, Marginal] = {"sum": Sum(), "max": Max(), "annealed": AnnealedMax()}


@dataclass(frozen=True)
class TransducerConfig:
    """The sizes and choices of a transducer.

    Args:
        aligner: an LSTM, as in the paper, or rules that compose, found in the training pairs
        k: size of the G-embedding (the paper's K)
        d: number of filters (the paper's D)
        embedding: size of the aligner's class embeddings
        hidden: size of the aligner's LSTM states
        translator: the paper's stack of equivariant layers, or a table with one free logit for
            every orbit of a source and a target word
        encoder: one set of weights for both directions, or one for each
        marginal: what is done with the alignments of a word
        group: the group of each class, the paper's cyclic shifts or all permutations
        dropout: share of the aligner's states dropped while training
        forget_bias: how far the LSTMs' forget gates are open at the start, so that they learn to
            count sooner
        warm_start: share of training at its start in which alignments are held uniform, so that
            words are translated before they are aligned

    """

    aligner: Literal["lstm", "recursive"] = "lstm"
    k: int = 32
    d: int = 16
    embedding: int = 32
    hidden: int = 64
    translator: Literal["stack", "table"] = "stack"
    encoder: Literal["tied", "separate"] = "tied"
    marginal: Literal["sum", "max", "annealed"] = "sum"
    group: GroupKind = "cyclic"
    dropout: float = 0.3
    forget_bias: float = 1.0
    warm_start: float = 0.05

    def __post_init__(self) -> None:
        check_settings("model", self)
        check_counts("model", self, "k", "d", "embedding", "hidden")
        check_shares("model", self, "dropout", "warm_start")

    def build_recursive(self, symmetry: Symmetry, learned: Learned) -> RecursiveTransducer:
        """A transducer under a grammar's alignments, its weights yet to be trained."""
        marginal = MARGINALS[self.marginal]
        return RecursiveTransducer(symmetry, self._translator(symmetry), marginal, learned)

    def build(self, symmetry: Symmetry) -> "Transducer":
        """A new transducer with weights from torch's current random state."""
        return Transducer(
            symmetry,
            self._translator(symmetry),
            Aligner(
                symmetry,
                embedding=self.embedding,
                hidden=self.hidden,
                tied=self.encoder == "tied",
                dropout=self.dropout,
                forget_bias=self.forget_bias,
            ),
            MARGINALS[self.marginal],
            warm_start=self.warm_start,
        )

    def _translator(self, symmetry: Symmetry) -> Translator | TableTranslator:
        if self.translator == "table":
            return TableTranslator(symmetry)
        return Translator(symmetry, k=self.k, d=self.d)


class TransducerState(NamedTuple):
    """The aligner's state, and log p(y | x_n) for every source position."""

    aligner: AlignerState
    emitted: Float[Tensor, "b y n"]


class Transducer(Autoregressive):
    """``p(y | x) = Π_m marginal_n p(y_m | x_n) p(a_m = n | ℓ(y_<m), ℓ(x))`` (eq. 5)."""

    def __init__(
        self,
        symmetry: Symmetry,
        translator: Translator | TableTranslator,
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
        # a warm start is IBM's model 1, a sum, whatever comes after it
        marginal = Sum() if warm else self.marginal
        by_word = marginal(self._joint(batch, uniform=warm), moment=moment)
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
    return torch.log_softmax(closed(source, like=like), dim=1)
