"""The paper's model (§4): a translator, an aligner, and a marginal that joins them."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equitrans.paper.aligner import Aligner, AlignerState
from equitrans.paper.base import Autoregressive, Batch, Moment, Parts, padding_mask, previous_words
from equitrans.paper.marginals import Marginal, Sum
from equitrans.paper.symmetry import Symmetry
from equitrans.paper.translator import WordTranslator
from equitrans.paper.vocabulary import EOS, PAD


@dataclass(frozen=True)
class Shared:
    """Rows that hypotheses share. By theorem 2 the aligner's state depends only on the classes of
    the source, its *form*, and on the classes of the target words so far, the *prefix*.
    """

    sources: Float[Tensor, "x y n"]  # log p(y | x_n) for every source
    forms: AlignerState  # the aligner's state before the first word, for every form
    form: Int[Tensor, " p"]  # the form of every prefix
    h: Float[Tensor, "p s"]  # the aligner's state after every prefix
    c: Float[Tensor, "p s"]


class TransducerState(NamedTuple):
    """The row numbers of each hypothesis in ``shared``."""

    source: Int[Tensor, " b"]
    prefix: Int[Tensor, " b"]
    shared: Shared


class Transducer(Autoregressive):
    """``p(y | x) = Π_m marginal_n p(y_m | x_n) p(a_m = n | ℓ(y_<m), ℓ(x))`` (eq. 5)."""

    def __init__(
        self,
        symmetry: Symmetry,
        translator: WordTranslator,
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
        self.static = translator.is_small

    def phase(self, moment: Moment) -> Hashable:
        warm = self._is_warm(moment)
        return warm, None if warm else self.marginal.phase(moment)

    def _is_warm(self, moment: Moment) -> bool:
        return moment.done < self.warm_start

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        if moment is not None and self._is_warm(moment):
            # a warm start is IBM Model 1, which is a sum for every marginal
            mask = padding_mask(batch.source[batch.first], like=self.aligner.bilinear)
            by_word = Sum()(self._joint(batch, torch.log_softmax(mask, dim=1)[:, None]))
        else:
            by_word = self.marginal(self._joint(batch, self._aligned(batch)), moment=moment)
        return _total(by_word, batch)

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The posterior p(a_m = n | x, y) of each row."""
        return torch.softmax(self._joint(batch, self._aligned(batch)), dim=2)

    def parts(self, batch: Batch) -> Parts:
        return Parts(self._aligned(batch)[batch.form], self._emitted(batch))

    def translation_table(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"]:
        return self.translator(words)

    @torch.no_grad()
    def score_words(self, batch: Batch) -> tuple[Float[Tensor, " b"], Float[Tensor, "b m y"]]:
        aligned = self._aligned(batch)
        loss = _total(self.marginal(self._joint(batch, aligned)), batch)
        # the target is given, so all its words are scored at once
        return loss, self.marginal.over(aligned[batch.form], self.translator(batch.source))

    def _aligned(self, batch: Batch) -> Float[Tensor, "f m n"]:
        """Log p(a_m = n) for every form."""
        source, target = batch.source[batch.first], batch.target[batch.first]
        return self.aligner.advance(self.aligner.start(source), previous_words(target))[0]

    def _joint(self, batch: Batch, aligned: Float[Tensor, "f m1 n"]) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n) + log p(a_m = n), from alignments of forms to rows."""
        return self._emitted(batch) + aligned[batch.form]

    def _emitted(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """Log p(y_m | x_n)."""
        # PAD has no probability, so padding of the target is looked up as EOS
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
            AlignerState(forms.keys[form], forms.mask[form], shared.h[before], shared.c[before]),
            _one_of_each(previous, prefix, kinds=len(longer))[:, None],
        )
        scores = self.marginal(shared.sources[state.source] + aligned[prefix])
        known = replace(shared, form=form, h=after.h, c=after.c)
        return scores, TransducerState(state.source, prefix, known)


def _total(by_word: Float[Tensor, "b m"], batch: Batch) -> Float[Tensor, " b"]:
    """−log p of each row from log p of its words."""
    return -by_word.masked_fill(batch.target == PAD, 0.0).sum(1)


def _one_of_each(
    rows: Int[Tensor, "b ..."], kind: Int[Tensor, " b"], *, kinds: int
) -> Int[Tensor, "k ..."]:
    """One row of every kind."""
    which = kind.new_zeros(kinds).scatter_(0, kind, torch.arange(len(kind), device=kind.device))
    return rows[which]
