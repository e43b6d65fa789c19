"""The transducer with a recursive aligner: the paper's translator with a grammar's alignments.

Where a derivation yields a source position, the translator translates the word there; where it
yields a constant, the constant is the target word. Rules depend on classes only and constants are
outside all classes, so theorems 2 and 3 hold as with any invariant aligner.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equitrans.data import Pair
from equitrans.errors import shown
from equitrans.models.direct import Answer, Direct, Hypothesis
from equitrans.models.recursive.aligner import RecursiveAligner
from equitrans.models.recursive.chart import Tree, origins_of, parse
from equitrans.models.recursive.doubts import Doubts
from equitrans.models.recursive.io import Derivation, Learned, Names, Node
from equitrans.models.recursive.licences import Licences
from equitrans.models.recursive.ranking import ranked, translated
from equitrans.models.recursive.refusals import no_derivation, unlicensed
from equitrans.models.recursive.rules import CONSTANTS, Form, Grammar, constant_word
from equitrans.paper import (
    EOS,
    N_SPECIAL,
    PAD,
    Batch,
    Marginal,
    Moment,
    Parts,
    Symmetry,
    WordTranslator,
)

TIE = 1e-5
"""Largest difference of log-probabilities at which two translations of a word are a tie."""


class RecursiveTransducer(Direct):
    """``p(y | x) = (1 − ε) Σ_a p(a | ℓ(x)) Π_m p(y_m | x_{a_m}) + ε u(y)``.

    ε is the share of wrong pairs, or more where a form raises doubts. u gives each word of the
    vocabulary and the end the same probability. So a pair that no derivation explains has a
    positive likelihood, p(y | x) sums to one, and the theorems hold. A source without a derivation
    has p = u and no prediction.
    """

    noise: Float[Tensor, ""]

    def __init__(
        self,
        symmetry: Symmetry,
        translator: WordTranslator,
        marginal: Marginal,
        learned: Learned,
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        self.translator = translator
        self.marginal = marginal
        self.learned = learned
        classes = tuple(symmetry.source_classes[words[0]] for words in symmetry.members[0])
        self.aligner = RecursiveAligner(learned.grammar, classes, learned.licences)
        self.register_buffer("noise", torch.tensor(learned.noise), persistent=False)

    def take(self, learned: Learned) -> None:
        """Replace all but the rules, which must be the same."""
        self.learned = learned
        self.aligner.licences = learned.licences
        self.aligner.forget()
        for name in ("_unexplained", "_turned", "doubts"):
            vars(self).pop(name, None)
        self.noise.fill_(learned.noise)

    @property
    def is_plain(self) -> bool:
        """Whether rules use their parts whole or by primitives, in any licensed place."""
        grammar, licences = self.aligner.grammar, self.aligner.licences
        return (
            type(grammar) is Grammar
            and (licences is None or type(licences) is Licences)
            and all(use.primitives for rule in grammar.rules for use in rule.uses)
        )

    def form(self, source: Sequence[int]) -> Form:
        """ℓ_Σ of a source's words without special symbols."""
        classes = self.symmetry.source_classes
        return tuple(classes[word] for word in source if word >= N_SPECIAL)

    def noise_of(self, form: Form) -> float:
        """ε of a form: the share of wrong pairs, or the probability that no derivation is right."""
        return max(float(self.noise), self.doubts.share(form))

    @cached_property
    def doubts(self) -> Doubts:
        """Reasons to doubt all derivations of a form."""
        return Doubts(self.aligner.grammar, self.aligner.licences, self.learned.rivals)

    def derivation(self, source: Sequence[str]) -> Derivation | None:
        """The likeliest derivation of a sentence; None if there is none."""
        form = self.form(self.symmetry.source.encode(source))
        tree = self.aligner.tree(form)
        if tree is None:
            return None
        names, rules = Names(self.symmetry), self.aligner.grammar.rules
        support = self.learned.support or (0,) * len(rules)

        def node(tree: Tree, below: dict[int, Node]) -> Node:
            return Node(
                names.rule(rules[tree.rule]),
                support[tree.rule],
                *tree.span,
                children=tuple(below.values()),
            )

        return Derivation(tuple(source), tree.fold(node), len(self.aligner.alignments(form)))

    def refusal(self, words: Sequence[str], *, max_length: int | None = None) -> str:
        form = self.form(self.symmetry.source.encode(words))
        grammar = self.aligner.grammar
        found = self.aligner.alignments(form)
        if found and not self.aligner.is_licensed(form):
            tree, licences = self.aligner.tree(form), self.aligner.licences
            assert tree is not None
            assert licences is not None
            return unlicensed(grammar, licences, tree, words, Names(self.symmetry))
        if found:
            limit = "more than the limit" if max_length is None else f"the limit is {max_length}"
            return f"the target would have {shown(found[0].length)} words; {limit}"
        if grammar.has_too_many(form) or (0, len(form)) in grammar.analyses(form):
            return "the sentence has too many derivations"
        reason = no_derivation(grammar, form, words, Names(self.symmetry))
        if (pair := self._unexplained.get(form)) is not None:
            source, target = (shown(" ".join(side)) for side in pair)
            reason += f"; unexplained training pair of this form: {source} → {target}"
        return reason

    @cached_property
    def _unexplained(self) -> dict[Form, Pair]:
        """For each form, the first training pair that the rules do not explain."""
        known = self.symmetry.source.index.keys()
        pairs = [pair for pair, _ in self.learned.exceptions if known >= set(pair.source)]
        return {self.form(self.symmetry.source.encode(p.source)): p for p in reversed(pairs)}

    def read_off(self, source: Sequence[int], text: str) -> tuple[int, ...]:
        """The target of an alignment, with class words translated within their rows."""
        (home, _), (_, members) = self.symmetry.homes, self.symmetry.members
        out = []
        for atom in text:
            word = constant_word(atom)
            if word is None:
                at = home[source[ord(atom)]]
                word = members[self._turned[at.column]][at.row]
            out.append(word)
        return tuple(out)

    @cached_property
    def _turned(self) -> list[int]:
        """For each source column, the target column that the translator prefers in the same row."""
        (sources, targets), (owners, others) = self.symmetry.members, self.symmetry.owners
        with torch.no_grad():
            rows = self.spoken(torch.tensor([words[0] for words in sources]))
        return [
            max((t for t, o in enumerate(others) if o == c), key=lambda t: row[targets[t][0]])
            for c, row in zip(owners, rows.tolist(), strict=True)
        ]

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        out = (batch.target != PAD).sum(1).to(self.noise.dtype) * self._word_share
        for rows, joint in self.joint(batch):
            noise = out.new_tensor(self.noise_of(self.form(batch.source[rows[0]].tolist())))
            likely = self.marginal(joint, moment=moment)
            mixed = torch.logaddexp(torch.log1p(-noise) + likely, noise.log() + out[rows])
            out = out.index_put((rows,), mixed)
        return -out

    @property
    def _word_share(self) -> float:
        """Log u of one word, or of the end."""
        return -math.log(len(self.symmetry.target) - N_SPECIAL + 1)

    def translation_table(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"]:
        return self.spoken(words)

    def spoken(self, words: Int[Tensor, " x"]) -> Float[Tensor, "x y"]:
        """Log p(y | x, y is a word). EOS is excluded, because a target ends with its alignment."""
        table = self.translator(words)
        ends = torch.arange(table.shape[1], device=table.device) == EOS
        return torch.log_softmax(table.masked_fill(ends, -math.inf), dim=1)

    def joint(self, batch: Batch) -> list[tuple[Int[Tensor, " r"], Float[Tensor, "r a"]]]:
        """For each form: its rows, and log p(y, a | x) for every alignment a of the form."""
        words, at = torch.unique(batch.source, return_inverse=True)
        table = self.spoken(words)
        found = []
        for f, first in enumerate(batch.first.tolist()):
            ranked = self.aligner.alignments(self.form(batch.source[first].tolist()))
            rows = (batch.form == f).nonzero().squeeze(1)
            if not ranked:
                continue
            target = batch.target[rows]
            length = int((target[0] != PAD).sum()) - 1
            columns = []
            for a in ranked:
                if isinstance(a.text, int) or len(a.text) != length:
                    columns.append(table.new_full((len(rows),), -math.inf))
                    continue
                total = table.new_full((len(rows),), a.log_prob)
                emits = [m for m, c in enumerate(a.text) if ord(c) < CONSTANTS]
                if emits:
                    # position n of the yield is column n + 1 of the source, after BOS
                    places = torch.tensor([ord(a.text[m]) + 1 for m in emits], device=table.device)
                    spoken = table[at[rows][:, places], target[:, emits]]
                    total = total + spoken.sum(1)
                fixed = [(m, constant_word(c)) for m, c in enumerate(a.text) if ord(c) >= CONSTANTS]
                if fixed:
                    expected = torch.tensor([word for _, word in fixed], device=table.device)
                    same = (target[:, [m for m, _ in fixed]] == expected).all(1)
                    total = total.masked_fill(~same, -math.inf)
                columns.append(total)
            found.append((rows, torch.stack(columns, dim=1)))
        return found

    @torch.no_grad()
    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The posterior p(a_m = n | x, y); uniform for a row without an explanation."""
        b, m, n = len(batch.source), batch.target.shape[1], batch.source.shape[1]
        real = (batch.source != PAD).to(self.noise.dtype)
        prob = (real / real.sum(1, keepdim=True))[:, None].repeat(1, m, 1)
        for rows, joint in self.joint(batch):
            form = self.form(batch.source[rows[0]].tolist())
            origins = [
                [] if isinstance(a.text, int) else self.origins(form, a.text)
                for a in self.aligner.alignments(form)
            ]
            for row, scores in zip(rows.tolist(), joint, strict=True):
                if bool((scores > -math.inf).any()):
                    prob[row] = 0
                    for share, places in zip(
                        torch.softmax(scores, 0).tolist(), origins, strict=True
                    ):
                        if share > 0:
                            for word, place in enumerate(places):
                                prob[row, word, place + 1] += share
        ends = (
            torch.arange(n, device=prob.device)[None]
            == (batch.source == EOS).long().argmax(1)[:, None]
        )
        last = batch.target == EOS
        return torch.where(last[:, :, None], ends[:, None].to(prob.dtype).expand(b, m, n), prob)

    @torch.no_grad()
    def parts(self, batch: Batch) -> Parts:
        """Log p(a_m = n | ℓ(x)) among the alignments of the target's length, and log p(y_m | x_n).

        EOS is aligned with EOS only. Without an alignment of that length, all positions have
        probability 0.
        """
        words, at = torch.unique(batch.source, return_inverse=True)
        gold = batch.target[:, :, None].expand(-1, -1, batch.source.shape[1])
        emitted = self.spoken(words)[at].transpose(1, 2).gather(1, gold)
        prob = torch.zeros_like(emitted)
        ends = (batch.source == EOS)[:, None]
        for row, (source, target) in enumerate(
            zip(batch.source.tolist(), batch.target.tolist(), strict=True)
        ):
            length = sum(word >= N_SPECIAL for word in target)
            form = self.form(source)
            ranked = [
                (a.text, a.log_prob)
                for a in self.aligner.alignments(form)
                if isinstance(a.text, str) and len(a.text) == length
            ]
            shares = torch.softmax(torch.tensor([log_prob for _, log_prob in ranked]), 0).tolist()
            for share, (text, _) in zip(shares, ranked, strict=True):
                for word, place in enumerate(self.origins(form, text)):
                    prob[row, word, place + 1] += share
        last = (batch.target == EOS)[:, :, None]
        return Parts(
            torch.where(last, ends.to(prob.dtype), prob).log(),
            torch.where(last, torch.where(ends, 0.0, -math.inf).to(emitted.dtype), emitted),
        )

    def origins(self, form: Form, text: str) -> list[int]:
        """The source position of every word of a yield; for a constant, its rule's first word."""
        if all(ord(c) < CONSTANTS for c in text):
            return [ord(c) for c in text]
        tree = parse(self.aligner.grammar, form, tuple(text)).tree()
        assert tree is not None
        return origins_of(self.aligner.grammar, tree)

    @torch.no_grad()
    def predict(
        self, source: Int[Tensor, "b n"], *, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis[int]]]:
        """The translations of the likeliest alignments of up to ``max_length`` words.

        A source without a derivation, or whose likeliest alignment is longer, gets one unfinished
        hypothesis without words and with probability 0.
        """
        words = torch.unique(source)
        rows, numbers = self.spoken(words), words.tolist()
        best, table = (
            dict(zip(numbers, values.tolist(), strict=True)) for values in (rows.argmax(1), rows)
        )
        first, second = rows.topk(2, dim=1).values.unbind(1)
        tied = set(words[first - second <= TIE].tolist()) & self.symmetry.homes[0].keys()
        found: list[list[Hypothesis[int]]] = []
        for row in source.tolist():
            sentence, form = [w for w in row if w >= N_SPECIAL], self.form(row)
            noise, licensed = self.noise_of(form), self.aligner.is_licensed(form)
            targets = self._rank(sentence, best, table, noise, max_length)
            tie = bool(tied & {*row})
            answers = Answer.ranked(targets, noise, tied=tie, licensed=licensed)
            found.append([*answers[:n_best]])
        return found

    def _rank(
        self,
        source: list[int],
        best: dict[int, int],
        table: dict[int, list[float]],
        noise: float,
        max_length: int,
    ) -> list[Hypothesis[int]]:
        """The translations of all alignments of a source, by log p(y | x)."""
        found = self.aligner.alignments(self.form(source))
        if not found or found[0].length > max_length:
            return [Hypothesis((), -math.inf, finished=False)]
        short = [a for a in found if a.length <= max_length]
        fitting = [(a.text, a.log_prob) for a in short if isinstance(a.text, str)]
        targets = translated(fitting, source, best, table, self.marginal)
        return ranked(targets, noise, self._word_share)

    @torch.no_grad()
    def judge(self, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
        best = self.predict(batch.source, max_length=batch.target.shape[1])
        right = [
            h[0].finished
            and not h[0].tied
            and isinstance(h[0], Answer)
            and h[0].licensed
            and (*h[0].words, EOS) == tuple(w for w in row if w != PAD)
            for h, row in zip(best, batch.target.tolist(), strict=True)
        ]
        return self.loss(batch), torch.tensor(right, dtype=torch.bool, device=batch.source.device)
