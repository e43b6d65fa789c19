"""Hybrid trees (Lu et al. 2008), scored by a conditional random field: for bracketed targets whose
labels have no words of their own, and few pairs.

A target is a tree: ``count ( river ( loc_2 ( x ) ) )``. Each of its nodes has a span of the source
and writes the words at both ends of its span; its children divide the rest. A node may write no
word. So p(y | x) is a sum over the derivations of y, divided by the sum over those of all trees.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from equitrans.models.baselines import unshared
from equitrans.models.direct import Direct, Hypothesis
from equitrans.models.trees.chart import NEVER, Chart, fill_chart
from equitrans.models.trees.draws import Draw
from equitrans.models.trees.targets import ARITY, INSIDE, Signs, Tree, find_signs, flatten, owners
from equitrans.paper import BOS, EOS, N_SPECIAL, PAD, Batch, Moment, Sentence, Symmetry

NOISE = 1e-3
"""Share of the probability that all targets get evenly, also those that are not trees."""

SMOOTHING = 1.0
"""Weight of the frequency of a word in the frequency of a word below another one."""

ROUNDS = 5
"""Rounds of expectation and maximisation that find which node writes a word."""

UNSEEN = 0.5
"""Number of words that a node writes by chance, all words alike."""

ROWS = 32
"""Number of rows, of similar length, that are computed at once."""


class Trees(Direct):
    """``p(y | x) ∝ Σ_d exp score(d)`` over the derivations d of y. The score has a term for each
    (node, word that it writes), each (node, word of the sentence), and each (node, child). Terms
    of the last kind are log-frequencies of the training pairs; those of the first kind start there.
    """

    signs: Float[Tensor, " 3"]
    """The brackets and the separator, as numbers of target words; a model file has floats only."""
    known: Float[Tensor, " labels"]
    """1 for each label of a training target."""
    below: Float[Tensor, "2 y y"]
    """The log-frequency of each word below another one, by slot; of the root, below BOS."""
    usual: Float[Tensor, "x y"]
    """The log-frequency of each source word among those that a node writes."""

    def __init__(self, symmetry: Symmetry, *, empty: int, draws: int) -> None:
        super().__init__()
        self.symmetry, self.empty, self.draws = symmetry, empty, draws
        x, y = len(symmetry.source), len(symmetry.target)
        self.written = nn.Parameter(0.01 * torch.randn(x, y))
        self.present = nn.Parameter(0.01 * torch.randn(x, y))
        self.side = nn.Parameter(torch.zeros(2, y))
        self.layout = nn.Parameter(torch.zeros(y, len(ARITY)))
        known = torch.zeros(y, len(ARITY))
        known[N_SPECIAL:, :INSIDE] = 1
        self.register_buffer("signs", torch.full((3,), -1.0))
        self.register_buffer("known", known.flatten())
        self.register_buffer("below", torch.full((2, y, y), -math.log(2 * y)))
        self.register_buffer("usual", torch.full((x, y), -math.log(max(x - N_SPECIAL, 1))))

    @property
    def sharing(self) -> Symmetry:
        return unshared(self.symmetry)

    @torch.no_grad()
    def observe(self, pairs: Iterable[tuple[Sentence, Sentence]]) -> None:
        """Find the brackets of training targets, their labels, how often each word stands below
        another one, and how often it writes each source word.
        """
        pairs = list(pairs)
        self.signs.copy_(torch.tensor(find_signs([target for _, target in pairs])))
        count = torch.zeros_like(self.below)
        self.known.zero_()
        rows = []
        for source, target in pairs:
            if (tree := self._signs.read(target)) is None:
                continue
            nodes = [node for node, _ in flatten(tree)]
            count[0, BOS, tree.word] += 1
            for node in nodes:
                self.known[node.label] = 1
                for slot, child in enumerate(node.children):
                    count[slot, node.word, child.word] += 1
            words = [word for word in source if word >= N_SPECIAL]
            # BOS writes what no node does
            rows.append((torch.tensor(words), torch.tensor([BOS, *(n.word for n in nodes)])))
        pooled = count.sum((0, 1)) + 0.5
        smooth = count + SMOOTHING * pooled / pooled.sum()
        self.below.copy_((smooth / (count.sum(2, keepdim=True) + SMOOTHING)).log().clamp(min=-12))
        self.usual.copy_(_usual(rows, *self.usual.shape))

    @property
    def _signs(self) -> Signs:
        return Signs(*map(int, self.signs.tolist()))

    # --- scores

    def _emitted(self, source: Int[Tensor, "b n"]) -> Float[Tensor, "2 b n y"]:
        """The score of each word of the source, written by each target word on its left and right
        side.
        """
        return (self.written + self.usual)[source] + self.side[:, None, None]

    def _present(self, source: Int[Tensor, "b n"]) -> Float[Tensor, "b y"]:
        """The score of each target word in the tree, by the set of words of the source."""
        bag = torch.zeros(len(source), len(self.present), device=source.device)
        bag = bag.to(self.present).scatter(1, source, 1.0)
        bag[:, :N_SPECIAL] = 0
        return bag @ self.present

    def _open_chart(
        self, source: Int[Tensor, "b n"]
    ) -> tuple[Chart, Int[Tensor, " l"], Float[Tensor, "b l"], Float[Tensor, "b 2 l l"]]:
        """The chart of all trees, the known labels, the score of each label as root, and that
        of each label below another one.
        """
        labels = self.known.nonzero()[:, 0]
        words = labels // len(ARITY)
        own = self._present(source)[:, words] + self.layout.flatten()[labels]
        root = own + self.below[0, BOS, words]
        between = self.below[:, words][:, :, words]
        arity = torch.tensor(ARITY, device=labels.device)[labels % len(ARITY)]
        emitted = self._emitted(source)[..., words]
        chart = fill_chart(emitted, own, between, arity, self.empty)
        return chart, labels, root, between[None] + own[:, None, None]

    def _log_total(self, source: Int[Tensor, "b n"], length: Int[Tensor, " b"]) -> Tensor:
        """Log-sums over the derivations of all trees."""
        chart, _, root, _ = self._open_chart(source)
        at = [chart.whole[n][b, 0] for b, n in enumerate(length.tolist())]
        return (torch.stack(at) + root).logsumexp(1)

    def _log_tree(
        self,
        source: Int[Tensor, "b n"],
        length: Int[Tensor, " b"],
        trees: Sequence[Tree],
        emitted: Float[Tensor, "2 b n k"] | None = None,
    ) -> Tensor:
        """Log-sums over the derivations of one tree for each source; ``emitted`` are the scores of
        words by node.
        """
        nodes = [flatten(tree) for tree in trees]
        shape = len(trees), max(map(len, nodes))
        labels = torch.zeros(shape, dtype=torch.long)
        arity = torch.full(shape, -1)
        link = torch.zeros(len(trees), 2, shape[1], shape[1], dtype=torch.bool)
        for b, row in enumerate(nodes):
            for i, (tree, children) in enumerate(row):
                labels[b, i], arity[b, i] = tree.label, len(children)
                for slot, child in enumerate(children):
                    link[b, slot, i, child] = True
        labels, arity, link = (part.to(source.device) for part in (labels, arity, link))
        words = labels // len(ARITY)
        own = self._present(source).gather(1, words) + self.layout.flatten()[labels]
        own = own.masked_fill(self.known[labels] == 0, NEVER)
        between = self.below[:, words[:, :, None], words[:, None]].transpose(0, 1)
        below = between.masked_fill(~link, NEVER)
        if emitted is None:
            emitted = self.node_scores(source, words)
        chart = fill_chart(emitted, own, below, arity, self.empty)
        at = [chart.whole[n][b, 0, 0] for b, n in enumerate(length.tolist())]
        return torch.stack(at) + own[:, 0] + self.below[0, BOS, words[:, 0]]

    def node_scores(
        self, source: Int[Tensor, "b n"], words: Int[Tensor, "b k"]
    ) -> Float[Tensor, "2 b n k"]:
        """The score of each word of the source, by node and side."""
        scores = self._emitted(source)
        return scores.gather(3, words[None, :, None].expand(2, -1, source.shape[1], -1))

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        signs, length = self._signs, (batch.source >= N_SPECIAL).sum(1)
        targets = [tuple(w for w in row if w >= N_SPECIAL) for row in batch.target.tolist()]
        words = torch.tensor([len(target) for target in targets]).to(self.side)
        noise = math.log(NOISE) - (words + 1) * math.log(len(self.symmetry.target.words) + 1)
        losses = -noise
        trees = [signs.read(target) for target in targets]
        rows = [i for i, tree in enumerate(trees) if tree is not None]
        rows.sort(key=lambda i: int(length[i]))
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            source = batch.source[some, 1 : 1 + int(length[some].max())]
            read = [tree for i in some if (tree := trees[i]) is not None]
            likely = self._log_tree(source, length[some], read)
            likely = likely - self._log_total(source, length[some])
            total = torch.logaddexp(math.log1p(-NOISE) + likely, noise[some])
            losses = losses.index_put((torch.tensor(some, device=losses.device),), -total)
        return losses

    # --- the likeliest target

    @torch.no_grad()
    def predict(
        self, source: Int[Tensor, "b n"], *, max_length: int, n_best: int = 1
    ) -> list[list[Hypothesis[int]]]:
        """The likeliest of the targets that draws of derivations find."""
        return [self._best(row[row != PAD], max_length)[:n_best] for row in source]

    def _best(self, source: Int[Tensor, " n"], max_length: int) -> list[Hypothesis[int]]:
        drawn = (self._signs.write(tree) for tree in self._draws(source[1:-1]))
        found = [target for target in dict.fromkeys(drawn) if len(target) <= max_length]
        if not found:
            return [Hypothesis((), -math.inf, finished=False)]
        rows = [torch.tensor([*target, EOS]) for target in found]
        target = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        each = torch.arange(len(found))
        batch = Batch(source.expand(len(found), -1), target, torch.ones(len(found)), each, each)
        scores = (-self.loss(batch.to(source.device))).tolist()
        best = sorted(zip(scores, found, strict=True), key=lambda it: (-it[0], it[1]))
        return [Hypothesis(t, p, tied=any(q == p and u != t for q, u in best)) for p, t in best]

    def _draws(self, words: Int[Tensor, " n"]) -> Iterable[Tree]:
        """Trees of derivations, drawn by their probability."""
        if not len(words):
            return
        chart, labels, root, below = self._open_chart(words[None])
        emitted = self._emitted(words[None])[:, 0][..., labels // len(ARITY)]
        draw = Draw(chart, emitted, below[0], labels.tolist(), self.empty)
        for _ in range(self.draws):
            if (tree := draw.tree(root[0])) is not None:
                yield tree

    def judge(self, batch: Batch) -> tuple[Float[Tensor, " b"], Bool[Tensor, " b"]]:
        with torch.no_grad():
            losses = self.loss(batch)
        right = []
        for loss, source, row in zip(losses.tolist(), batch.source, batch.target, strict=True):
            target = tuple(w for w in row.tolist() if w >= N_SPECIAL)
            if loss < math.log(2):  # likelier than all others together
                right.append(True)
                continue
            best = self._best(source[source != PAD], len(target))[0]
            right.append(best.words == target and best.finished and not best.tied)
        return losses, torch.tensor(right, device=losses.device)

    def refusal(self, words: Sequence[str], *, max_length: int | None = None) -> str:
        """The reason why a source has no target."""
        limit = "" if max_length is None else f" of at most {max_length} words"
        return f"no tree{limit} was found"

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The words that the node of each target word writes, by the posterior of derivations; what
        it does not write is at BOS. Brackets have the words of their node.
        """
        signs, found = self._signs, torch.zeros(*batch.target.shape, batch.source.shape[1])
        for b, (source, row) in enumerate(zip(batch.source, batch.target, strict=True)):
            end = int((source != PAD).sum()) - 1
            target = tuple(w for w in row.tolist() if w >= N_SPECIAL)
            found[b, :, 0] = 1
            if (tree := signs.read(target)) is not None:
                counts = self._counts(source[1:end], tree)
                for m, node in enumerate(owners(signs, tree)):
                    found[b, m, 1:end] = counts[:, node] / counts[:, node].sum().clamp(min=1)
                    found[b, m, 0] = 1 - found[b, m, 1:end].sum()
            found[b, len(target) :] = 0
            found[b, len(target) :, end] = 1
        return found.to(self.side)

    def _counts(self, words: Int[Tensor, " n"], tree: Tree) -> Float[Tensor, "n k"]:
        """How often each node of a tree writes each word: the gradient of the log-sum."""
        nodes = torch.tensor([node.word for node, _ in flatten(tree)], device=words.device)
        with torch.enable_grad():
            scores = self.node_scores(words[None], nodes[None]).detach().requires_grad_()
            length = torch.tensor([len(words)])
            total = self._log_tree(words[None], length, [tree], scores)
            (counts,) = torch.autograd.grad(total.sum(), scores)
        return counts.sum(0)[0].cpu()


def _usual(
    rows: Sequence[tuple[Int[Tensor, " _"], Int[Tensor, " _"]]], x: int, y: int
) -> Float[Tensor, "{x} {y}"]:
    """The log-frequency of source words among those that nodes write, from the words of sources and
    nodes: the share of a node in a word is its frequency of that word (IBM's first model).
    """
    share, count = torch.ones(x, y), torch.zeros(x, y)
    for _ in range(ROUNDS):
        count = torch.zeros(x, y)
        for words, nodes in rows:
            part = share[words[:, None], nodes]
            part = part / part.sum(1, keepdim=True).clamp(min=1e-30)
            count.index_put_((words[:, None], nodes), part, accumulate=True)
        share = count / count.sum(0).clamp(min=1e-30)
    chance = UNSEEN / max(x - N_SPECIAL, 1)
    return ((count + chance) / (count.sum(0) + UNSEEN)).log()
