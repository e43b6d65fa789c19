"""A plain implementation of the paper's equations: the oracle of tests, the baseline of benchmarks.

Pairs are padded and packed. The G-stack runs at every position of every sentence, with the group of
each class listed in full, and pairs share nothing. The weights are those of the fast model.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from equitrans.paper.aligner import LSTM
from equitrans.paper.transducer import Transducer
from equitrans.paper.vocabulary import BOS, EOS, PAD
from listed import inverse


class PlainTransducer(nn.Module):
    """The sum over alignments, pair by pair, with the weights of a cyclic ``Transducer``."""

    def __init__(self, model: Transducer) -> None:
        super().__init__()
        self.model = model
        self.symmetry = symmetry = model.symmetry
        assert symmetry.kind == "cyclic"
        self.n_source, self.n_target = len(symmetry.source), len(symmetry.target)
        self.encoder = _torch_lstm(model.aligner.encoder)
        tied = model.aligner.backward_encoder is None
        self.backward_encoder = (
            self.encoder if tied else _torch_lstm(model.aligner.backward_encoder)
        )
        self.decoder = _torch_lstm(model.aligner.decoder)
        self.source_embedding = model.aligner.encoder.embedding
        self.backward_embedding = (
            self.source_embedding if tied else model.aligner.backward_encoder.embedding
        )
        self.target_embedding = model.aligner.decoder.embedding
        self._list_groups()

    def _list_groups(self) -> None:
        """For every class: g⁻¹∘x and h⁻¹∘y as places in the class, g⁻¹∘h as an element number."""
        self.tables = []
        for c, group in enumerate(self.symmetry.factors):
            sources, targets = self.symmetry.classes[c].columns
            source = [self.symmetry.source.encode(words) for _, words in sources]
            target = [self.symmetry.target.encode(words) for _, words in targets]
            elements = group.elements
            number = {g: i for i, g in enumerate(elements)}
            quotient = [
                [number[tuple(inverse(g)[i] for i in h)] for h in elements] for g in elements
            ]
            back = [[inverse(g)[i] for i in range(group.degree)] for g in elements]
            self.tables.append((source, target, torch.tensor(quotient), torch.tensor(back)))

    def translate(self, source: Tensor) -> Tensor:
        """log p(y | x) at every position: b n → b n y."""
        translator = self.model.translator
        if not self.tables:
            return self._translate_without_classes(source)
        others_source = [w for w in range(BOS, self.n_source) if translator.source[1, w] < 0]
        others_target = [w for w in range(BOS, self.n_target) if translator.target[1, w] < 0]
        plain = torch.zeros(self.n_source, translator.omega.shape[1])
        plain = plain.index_put((torch.tensor(others_source),), translator.omega)
        logits = torch.zeros(*source.shape, self.n_target)
        for factor, (words, targets, quotient, back) in zip(
            translator.factors, self.tables, strict=True
        ):
            g = len(quotient)
            # ω of every word x at every g: that of g⁻¹∘x for class words, that of x for others
            omega = plain[:, None].expand(-1, g, -1)
            for column, weights in zip(words, factor.omega.chunk(len(words)), strict=True):
                omega = omega.index_put((torch.tensor(column),), weights[back.T])
            lives = torch.zeros(self.n_source)
            lives[torch.tensor([*(w for column in words for w in column), *others_source])] = 1.0
            f = torch.tanh(omega[source])
            phi = torch.tanh(torch.einsum("bnhk,ghkd->bngd", f, factor.psi[quotient]))
            phi = phi * lives[source][:, :, None, None]
            rho = torch.zeros(g, self.n_target, phi.shape[-1])
            rho[:, others_target] = translator.rho
            for column, weights in zip(targets, factor.rho.chunk(len(targets)), strict=True):
                rho[:, column] = weights[back]
            for other, (_, theirs, _, _) in zip(translator.factors, self.tables, strict=True):
                if other is not factor:
                    for column, weights in zip(theirs, other.rho.chunk(len(theirs)), strict=True):
                        rho[:, column] = weights.mean(0)
            logits = logits + torch.einsum("bnhd,hyd->bny", phi, rho)
        logits = logits.masked_fill(torch.arange(self.n_target) < EOS, -torch.inf)
        return torch.log_softmax(logits, dim=-1)

    def _translate_without_classes(self, source: Tensor) -> Tensor:
        translator = self.model.translator
        (factor,) = translator.factors
        others = [w for w in range(BOS, self.n_source) if w != EOS]
        omega = torch.zeros(self.n_source, translator.omega.shape[1])
        omega = omega.index_put((torch.tensor(others),), translator.omega)
        omega = omega.index_put((torch.tensor([EOS]),), factor.omega)
        rho = torch.zeros(self.n_target, translator.rho.shape[1])
        targets = [w for w in range(BOS, self.n_target) if w != EOS]
        rho = rho.index_put((torch.tensor(targets),), translator.rho)
        rho = rho.index_put((torch.tensor([EOS]),), factor.rho)
        phi = torch.tanh(torch.tanh(omega[source]) @ factor.psi[0])
        logits = (phi @ rho.T).masked_fill(torch.arange(self.n_target) < EOS, -torch.inf)
        return torch.log_softmax(logits, dim=-1)

    def align(self, source: Tensor, target: Tensor) -> Tensor:
        """log p(a_m = n): b m n."""
        aligner = self.model.aligner
        lengths = (source != PAD).sum(1)
        forward, last = self._read(self.encoder, self.source_embedding, source, lengths)
        mirrored = _mirror(source, lengths)
        backward, _ = self._read(self.backward_encoder, self.backward_embedding, mirrored, lengths)
        states = torch.cat([forward, _mirror(backward, lengths)], dim=-1)
        previous = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        queries, _ = self.decoder(
            _embedded(self.target_embedding, aligner.target_classes[previous]), last
        )
        scores = torch.einsum("bms,st,bnt->bmn", queries, aligner.bilinear, states)
        scores = scores.masked_fill((source == PAD)[:, None], -torch.inf)
        return torch.log_softmax(scores, dim=-1)

    def _read(
        self, lstm: nn.LSTM, embedding: Tensor, source: Tensor, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        embedded = _embedded(embedding, self.model.aligner.source_classes[source])
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, last = lstm(packed)
        return pad_packed_sequence(states, batch_first=True)[0], last

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """−log p(y | x) of each pair."""
        emitted = self.translate(source)
        gold = target.masked_fill(target == PAD, EOS)
        emitted = emitted.gather(2, gold[:, None].expand(-1, source.shape[1], -1)).transpose(1, 2)
        joint = emitted + self.align(source, target)
        by_word = torch.logsumexp(joint, dim=-1)
        return -by_word.masked_fill(target == PAD, 0.0).sum(1)

    @torch.no_grad()
    def search(
        self, sentence: list[int], *, width: int, max_length: int
    ) -> tuple[list[int], float]:
        """Beam search for one source: the best target and its log p."""
        aligner = self.model.aligner
        source = torch.tensor([[BOS, *sentence, EOS]])
        emitted = self.translate(source)[0]
        lengths = torch.tensor([source.shape[1]])
        forward, state = self._read(self.encoder, self.source_embedding, source, lengths)
        backward, _ = self._read(
            self.backward_encoder, self.backward_embedding, source.flip(1), lengths
        )
        keys = torch.cat([forward, backward.flip(1)], dim=-1)[0] @ aligner.bilinear.T
        beams: list[tuple[list[int], float]] = [([], 0.0)]
        for _ in range(max_length):
            live = [i for i, (words, _) in enumerate(beams) if words[-1:] != [EOS]]
            if not live or any(
                total / len(words) > max(beams[i][1] for i in live) / max_length
                for words, total in beams
                if words[-1:] == [EOS]
            ):
                break
            previous = torch.tensor([[(beams[i][0] or [BOS])[-1]] for i in live])
            embedded = _embedded(self.target_embedding, aligner.target_classes[previous])
            query, state = self.decoder(embedded, state)
            aligned = torch.log_softmax(query[:, 0] @ keys.T, dim=-1)
            scores = torch.logsumexp(aligned[:, :, None] + emitted, dim=1)
            best, next_words = scores.topk(min(width, scores.shape[1] - EOS))
            grown = [(*beam, -1) for i, beam in enumerate(beams) if i not in live]
            for row, i in enumerate(live):
                words, total = beams[i]
                for log_prob, word in zip(
                    best[row].tolist(), next_words[row].tolist(), strict=True
                ):
                    grown.append(([*words, word], total + log_prob, row))
            grown.sort(key=lambda beam: -beam[1] / len(beam[0]))
            beams = [(words, total) for words, total, _ in grown[:width]]
            rows = [row for words, _, row in grown[:width] if words[-1] != EOS]
            state = (state[0][:, rows].contiguous(), state[1][:, rows].contiguous())
        words, total = beams[0]
        return [word for word in words if word != EOS], total


def _embedded(embedding: Tensor, classes: Tensor) -> Tensor:
    """Vectors of classes, counted from BOS. Padding has the vector of BOS, which is never used."""
    return embedding[(classes - BOS).clamp(min=0)]


def _mirror(sequence: Tensor, lengths: Tensor) -> Tensor:
    """Each row reversed within its true length."""
    position = torch.arange(sequence.shape[1]).expand(sequence.shape[:2])
    mirrored = torch.where(position < lengths[:, None], lengths[:, None] - 1 - position, position)
    if sequence.dim() == 3:
        mirrored = mirrored[:, :, None].expand_as(sequence)
    return sequence.gather(1, mirrored)


def _torch_lstm(lstm: LSTM) -> nn.LSTM:
    """A module of torch with the same weights."""
    e, s = lstm.weight_in.shape[1], lstm.weight_hidden.shape[1]
    out = nn.LSTM(e, s, batch_first=True).to(lstm.bias.dtype)
    with torch.no_grad():
        out.weight_ih_l0.copy_(lstm.weight_in)
        out.weight_hh_l0.copy_(lstm.weight_hidden)
        out.bias_ih_l0.copy_(lstm.bias)
        out.bias_hh_l0.zero_()
    return out
