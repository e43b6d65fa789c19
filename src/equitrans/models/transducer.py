"""The paper's model (§4): a translator, an aligner, and a marginal that joins them."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.batches import Batch
from equitrans.errors import ConfigError
from equitrans.grammar.learned import Learned
from equitrans.marginals import AnnealedMax, Marginal, Max, Moment, Sum
from equitrans.models.aligner import Aligner, AlignerState
from equitrans.models.base import Autoregressive, Parts
from equitrans.models.recursive import RecursiveTransducer
from equitrans.models.seq2seq import closed, fed
from equitrans.models.table import TableTranslator
from equitrans.models.translator import Translator
from equitrans.settings import check_counts, check_settings, check_shares
from equitrans.symmetry import GroupKind, Symmetry
from equitrans.vocabulary import EOS, PAD

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
        if self.aligner == "recursive":
            raise ConfigError("a recursive aligner has rules: learn them with fit()")
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


@dataclass(frozen=True)
class Shared:
    """What many hypotheses have in common, in rows that they point at.

    By theorem 2 the aligner's state depends on the form of the source and on the classes of the
    words so far, a *prefix*: hypotheses that agree in these share one row, of whatever sources they
    are.
    """

    sources: Float[Tensor, "x y n"]
    """Log p(y | x_n) for every source."""
    forms: AlignerState
    """What the aligner knows before the first word, for every form."""
    form: Int[Tensor, " p"]
    """The form of every prefix."""
    h: Float[Tensor, "p s"]
    c: Float[Tensor, "p s"]
    """The aligner's state after every prefix."""


class TransducerState(NamedTuple):
    """Where each hypothesis stands."""

    source: Int[Tensor, " b"]
    prefix: Int[Tensor, " b"]
    shared: Shared


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
        self.static = isinstance(translator, Translator) and translator.is_small

    def phase(self, moment: Moment) -> Hashable:
        warm = self._is_warm(moment)
        return warm, None if warm else self.marginal.phase(moment)

    def _is_warm(self, moment: Moment) -> bool:
        return moment.done < self.warm_start

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        if moment is not None and self._is_warm(moment):
            # a warm start is IBM's model 1, a sum, whatever comes after it
            uniform = _uniform(batch.source[batch.first], like=self.aligner.bilinear)
            by_word = Sum()(self._joint(batch, uniform[:, None]))
        else:
            by_word = self.marginal(self._joint(batch, self._aligned(batch)), moment=moment)
        return _total(by_word, batch)

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The posterior p(a_m = n | x, y) of each row."""
        return torch.softmax(self._joint(batch, self._aligned(batch)), dim=2)

    def parts(self, batch: Batch) -> Parts:
        return Parts(self._aligned(batch)[batch.form], self._emitted(batch))

    def correct(self, batch: Batch) -> Bool[Tensor, " b"]:
        return self.judge(batch)[1]

    @torch.no_grad()
    def judge(self, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
        aligned = self._aligned(batch)
        loss = _total(self.marginal(self._joint(batch, aligned)), batch)
        # all words of the target are known, so all are judged at once
        scores = self.marginal.over(aligned[batch.form], self.translator(batch.source))
        return loss, ((scores.argmax(2) == batch.target) | (batch.target == PAD)).all(1)

    def _aligned(self, batch: Batch) -> Float[Tensor, "f m n"]:
        """Log p(a_m = n) of every form."""
        source, target = batch.source[batch.first], batch.target[batch.first]
        return self.aligner.advance(self.aligner.start(source), fed(target))[0]

    def _joint(self, batch: Batch, aligned: Float[Tensor, "f m1 n"]) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n) + log p(a_m = n): one alignment per form, one translation per word."""
        return self._emitted(batch) + aligned[batch.form]

    def _emitted(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n)."""
        # padding of the target is looked up as EOS, since PAD is never emitted
        gold = batch.target.masked_fill(batch.target == PAD, EOS)
        return self.translator.pairs(batch.source, gold)

    def start(self, source: Int[Tensor, "b n"]) -> TransducerState:
        classes = self.aligner.source_classes[source]
        forms, form = torch.unique(classes, dim=0, return_inverse=True)
        begun = self.aligner.start(_one_of_each(source, form, kinds=len(forms)))
        every = torch.arange(len(forms), device=source.device)
        emitted = self.translator(source).transpose(1, 2).contiguous()
        row = torch.arange(len(source), device=source.device)
        return TransducerState(row, form, Shared(emitted, begun, every, begun.h, begun.c))

    def step(
        self, state: TransducerState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], TransducerState]:
        shared, classes = state.shared, self.aligner.target_classes
        key = state.prefix * len(classes) + classes[previous]
        longer, prefix = torch.unique(key, return_inverse=True)
        before = longer // len(classes)
        form, forms = shared.form[before], shared.forms
        aligned, after = self.aligner.advance(
            AlignerState(forms.keys[form], forms.closed[form], shared.h[before], shared.c[before]),
            _one_of_each(previous, prefix, kinds=len(longer))[:, None],
        )
        scores = self.marginal(shared.sources[state.source] + aligned[prefix])
        known = replace(shared, form=form, h=after.h, c=after.c)
        return scores, TransducerState(state.source, prefix, known)


def _total(by_word: Float[Tensor, "b m"], batch: Batch) -> Float[Tensor, " b"]:
    """−log p of each row from those of its words."""
    return -by_word.masked_fill(batch.target == PAD, 0.0).sum(1)


def _one_of_each(
    rows: Int[Tensor, "b ..."], kind: Int[Tensor, " b"], *, kinds: int
) -> Int[Tensor, "k ..."]:
    """A row of every kind."""
    which = kind.new_zeros(kinds).scatter_(0, kind, torch.arange(len(kind), device=kind.device))
    return rows[which]


def _uniform(source: Int[Tensor, "b n"], *, like: Tensor) -> Float[Tensor, "b n"]:
    """Every position of a source is as likely as any other."""
    return torch.log_softmax(closed(source, like=like), dim=1)
