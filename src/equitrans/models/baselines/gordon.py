"""The permutation-equivariant sequence-to-sequence model of Gordon et al. (2020).

Every state is a function on the group, ``|G| × K`` numbers, and every layer commutes with it, so
that one g for a whole sentence moves the output with the input: global equivariance, where the
transducer's is word by word. What the paper leaves unsaid is done as in the code that was released
with it, but for BOS, which could be emitted there and cannot here. All weights are written out as
plain matrices once per batch; what remains is an ordinary LSTM with attention.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from equitrans.models.baselines.attentive import Memory, Previous, Reading, attend
from equitrans.models.baselines.common import Baseline, unshared
from equitrans.models.baselines.glayers import GEmbed, regular
from equitrans.models.baselines.glstm import GCell, GCombine, OutputBias, Readout, every_word, moves
from equitrans.models.baselines.recurrence import mirrored, recurrence
from equitrans.paper import (
    EOS,
    PAD,
    Batch,
    Moment,
    Symmetry,
    lengths,
    padding_mask,
    previous_words,
)


@dataclass(frozen=True)
class Weights:
    """All weights as matrices, made once for many positions."""

    source: Float[Tensor, "x gates"]
    """What a source word adds to the encoder's gates."""
    encoder: Float[Tensor, "s gates"]
    target: Float[Tensor, "y d"]
    """What a target word adds to the decoder's input, before tanh."""
    context: Float[Tensor, "d d"]
    """What the context adds to it."""
    decoder: Float[Tensor, "dd decoder_gates"]
    decoder_bias: Float[Tensor, " decoder_gates"]
    readout: Float[Tensor, "d y"]
    readout_bias: Float[Tensor, " y"]


class GordonState(NamedTuple):
    """The source as read, the decoder's state, and the weights that it was read with."""

    memory: Memory
    h: Float[Tensor, "b s"]
    c: Float[Tensor, "b s"]
    weights: Weights


class Gordon(Baseline):
    """``p(y | x) = Π_m softmax(readout(h_m))[y_m]``, ``h_m = cell(z_m, h_{m-1})``, ``z_m =
    tanh conv([e(y_{m-1}); Σ_n α_mn H_n])``, ``α_mn ∝ exp⟨h_{m-1}, H_n⟩``.

    H_n holds the states at x_n of one G-LSTM that reads the words forwards and backwards, and EOS
    after them both times. The source has no BOS.
    """

    static = True

    def __init__(
        self,
        symmetry: Symmetry,
        *,
        hidden: int,
        output_bias: OutputBias,
        teacher_forcing: float,
    ) -> None:
        super().__init__()
        self.symmetry = symmetry
        self.teacher_forcing = teacher_forcing
        self._equivariant = output_bias != "free"
        features = regular(symmetry.group)
        self._slots = symmetry.group.order, hidden
        k, d = hidden, 2 * hidden
        self.source_embed = GEmbed(features, moves(symmetry.source_action), k=k)
        self.encoder = GCell(features, k=k)
        self.target_embed = GEmbed(features, moves(symmetry.target_action), k=d)
        self.combine = GCombine(features, k=d)
        self.decoder = GCell(features, k=d)
        self.readout = Readout(symmetry, d=d, output_bias=output_bias)
        for embed in (self.source_embed, self.target_embed):
            nn.init.normal_(embed.omega)

    @property
    def sharing(self) -> Symmetry:
        """A free bias tells the words of a class apart."""
        return self.symmetry if self._equivariant else unshared(self.symmetry)

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row; at a moment of training, the released objective: −log p per
        word up to the first EOS of the target or of the model, after the target or, in other
        rows, after what the model would say.
        """
        state = self.start(batch.source)
        given = previous_words(batch.target).T
        if moment is None:
            previous = _given(given)
        else:
            forced = torch.rand(len(given[0]), device=given.device) < self.teacher_forcing
            previous = _mixed(given, forced, state.weights)
        logits = _logits(self._advance(state, previous, len(given)).states, state.weights)
        target = batch.target.T
        by_word = functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="none"
        ).view(target.shape)
        if moment is None:
            return by_word.sum(0)
        said = logits.detach().argmax(2) == EOS
        counted = (target != PAD) & (said.cumsum(0) - said.long() == 0)
        return (by_word * counted).sum(0) / counted.sum(0)

    def alignments(self, batch: Batch) -> Float[Tensor, "b m n"]:
        """The attention while each row's target is read; BOS, which is not, has none."""
        given = previous_words(batch.target).T
        reading = self._advance(self.start(batch.source), _given(given), len(given))
        return functional.pad(reading.attention.transpose(0, 1), (1, 0))

    def start(self, source: Int[Tensor, "b n"]) -> GordonState:
        """Read a source in both directions."""
        weights, words = self._weights(), source[:, 1:]
        b, n = words.shape
        last = lengths(words) - 1
        mirror = mirrored(last, n)  # EOS, which is last, stays where it is
        read = torch.cat([words, words.gather(1, mirror)])
        inputs = functional.embedding(read.T, weights.source)
        zero = inputs.new_zeros(2 * b, len(weights.encoder))
        states, cells = recurrence(inputs, weights.encoder, zero, zero)
        at_end = last.repeat(2)[None, :, None].expand(1, *zero.shape)
        forward, backward = states.split(b, dim=1)
        backward = backward.gather(0, mirror.T[:, :, None].expand_as(backward))
        keys = self._joined(forward, backward).transpose(0, 1).contiguous()
        h, c = (self._joined(*x.gather(0, at_end)[0].split(b)) for x in (states, cells))
        memory = Memory(keys, keys @ weights.context, padding_mask(words, like=keys))
        return GordonState(memory, h, c, weights)

    def step(
        self, state: GordonState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], GordonState]:
        reading = self._advance(state, _given(previous[None]), 1)
        logits = _logits(reading.states[0], state.weights)
        after = state._replace(h=reading.states[0], c=reading.cell)
        return torch.log_softmax(logits, dim=1), after

    def _advance(self, state: GordonState, previous: Previous, positions: int) -> Reading:
        return attend(
            state.memory,
            state.h,
            state.c,
            previous,
            positions=positions,
            words=state.weights.target,
            weight=state.weights.decoder,
            bias=state.weights.decoder_bias,
        )

    def _joined(
        self, forward: Float[Tensor, "*b s"], backward: Float[Tensor, "*b s"]
    ) -> Float[Tensor, "*b d"]:
        """Both directions side by side for every group element."""
        slots = [x.unflatten(-1, self._slots) for x in (forward, backward)]
        return torch.cat(slots, dim=-1).flatten(-2)

    def _weights(self) -> Weights:
        # the word's part of the combination is made for every target word, and the context's for
        # every source position, before any state is known
        from_source, encoder = self.encoder.convs.matrices()
        from_target, context = self.combine.conv.matrices()
        source, target = every_word(self.source_embed), every_word(self.target_embed)
        return Weights(
            source=torch.addmm(self.encoder.biases(), source, from_source),
            encoder=encoder,
            target=torch.addmm(self.combine.biases(), target, from_target),
            context=context,
            decoder=self.decoder.convs.matrices().flatten(0, 1),
            decoder_bias=self.decoder.biases(),
            readout=self.readout.matrix(),
            readout_bias=self.readout.biases(),
        )


def _logits(states: Float[Tensor, "*b s"], weights: Weights) -> Float[Tensor, "*b y"]:
    return states @ weights.readout + weights.readout_bias


def _given(words: Int[Tensor, "m b"]) -> Previous:
    return lambda n, _: words[n]


def _mixed(words: Int[Tensor, "m b"], forced: Bool[Tensor, " b"], weights: Weights) -> Previous:
    """The words given in rows that are forced, the model's own best words in others."""

    def previous(n: int, h: Tensor) -> Tensor:
        if n == 0:
            return words[0]
        return torch.where(forced, words[n], _logits(h, weights).argmax(1))

    return previous
