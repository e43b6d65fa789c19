"""The permutation-equivariant sequence-to-sequence model of Gordon et al. (2020).

Every state is a function on the group, ``|G| × K`` numbers, and every layer commutes with the
group. One g for a whole sentence moves the output with the input: equivariance is global, while
that of the transducer holds word by word. Details that the paper does not give follow the released
code, except that BOS is never emitted here. All weights are expanded to plain matrices once per
batch; the rest is an ordinary LSTM with attention.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from equitrans.models.baselines.common import Baseline, lstm_cell, mirrored, unshared
from equitrans.models.baselines.glayers import (
    GCell,
    GCombine,
    GEmbed,
    Readout,
    every_word,
    moves,
    regular,
)
from equitrans.models.configs import OutputBias
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

SHUT = 1e4
"""Gate input whose sigmoid is 0 (negated) or 1 in every floating-point type."""


@dataclass(frozen=True)
class Weights:
    """All weights as matrices, computed once per batch. Gates are in torch's order i, f, g, o."""

    source: Float[Tensor, "x e"]
    """The encoder's input for each source word, with a last column that is 1 for PAD only."""
    encoder_in: Float[Tensor, "gates e"]
    encoder_hidden: Float[Tensor, "gates s"]
    encoder_bias: Float[Tensor, " gates"]
    target: Float[Tensor, "y d"]
    """The term of each target word in the decoder's input, before tanh."""
    context: Float[Tensor, "d d"]
    """The map from the context to its term there."""
    decoder: Float[Tensor, "dd decoder_gates"]
    """The map from the decoder's input and hidden state, concatenated, to its gates."""
    decoder_bias: Float[Tensor, " decoder_gates"]
    readout: Float[Tensor, "d y"]
    readout_bias: Float[Tensor, " y"]


class GordonState(NamedTuple):
    """The encoded source, the decoder's state, and the weights that both were computed with."""

    keys: Float[Tensor, "b n d"]
    values: Float[Tensor, "b n d"]
    """The term of each source position in the decoder's input, before tanh."""
    mask: Float[Tensor, "b n"]
    h: Float[Tensor, "b d"]
    c: Float[Tensor, "b d"]
    weights: Weights


class Gordon(Baseline):
    """``p(y | x) = Π_m softmax(readout(h_m))[y_m]`` with ``h_m = cell(z_m, h_{m-1})``, ``z_m =
    tanh conv([e(y_{m-1}); Σ_n α_mn H_n])`` and ``α_mn ∝ exp⟨h_{m-1}, H_n⟩``.

    H_n concatenates the states at x_n of one G-LSTM that reads the words forwards and backwards,
    and EOS at the end both times. The source has no BOS.
    """

    static = True

    shut: Float[Tensor, " gates"]
    """The gate inputs at padding: they close the input and output gates and open the forget gate,
    so that ``c' = c`` and ``h' = 0``."""

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
        shut = torch.tensor([-SHUT, SHUT, 0.0, -SHUT]).repeat_interleave(len(features[0]) * k)
        self.register_buffer("shut", shut, persistent=False)

    @property
    def sharing(self) -> Symmetry:
        """No classes with a free bias, which distinguishes the words of a class."""
        return self.symmetry if self._equivariant else unshared(self.symmetry)

    def loss(self, batch: Batch, *, moment: Moment | None = None) -> Float[Tensor, " b"]:
        """−log p(y | x) of each row. In training, the objective of the released code: −log p per
        word up to the first EOS of the target or of the model. The history of a row is its target
        with probability ``teacher_forcing``, and the model's own best words otherwise.
        """
        forced = None
        if moment is not None:
            forced = torch.rand(len(batch.target), device=batch.target.device)
            forced = forced < self.teacher_forcing
        logits, _ = self._unroll(batch, forced)
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
        """The attention at each target word; 0 at BOS, which is not encoded."""
        _, attention = self._unroll(batch, None)
        return functional.pad(attention.transpose(0, 1), (1, 0))

    def start(self, source: Int[Tensor, "b n"]) -> GordonState:
        """The state after reading a source in both directions."""
        weights, words = self._weights(), source[:, 1:]
        b, n = words.shape
        last = lengths(words) - 1
        mirror = mirrored(last, n)  # EOS is last and stays where it is
        read = torch.cat([words, words.gather(1, mirror)])
        inputs = functional.embedding(read.T, weights.source)
        zero = inputs.new_zeros(1, 2 * b, weights.encoder_hidden.shape[1])
        # the biases of input and hidden state are summed already; one layer, no dropout, one
        # direction, time first
        bias = weights.encoder_bias, torch.zeros_like(weights.encoder_bias)
        options = (True, 1, 0.0, torch.is_grad_enabled(), False, False)
        matrices = (weights.encoder_in, weights.encoder_hidden)
        parameters = (*(m.contiguous() for m in matrices), *bias)  # cuDNN needs them so
        states, _, cells = torch.lstm(inputs, (zero, zero), parameters, *options)
        forward, backward = states.split(b, dim=1)
        backward = backward.gather(0, mirror.T[:, :, None].expand_as(backward))
        keys = self._joined(forward, backward).transpose(0, 1).contiguous()
        return GordonState(
            keys=keys,
            values=keys @ weights.context,
            mask=padding_mask(words, like=keys),
            h=keys[torch.arange(b, device=keys.device), last],
            c=self._joined(*cells[0].split(b)),
            weights=weights,
        )

    def step(
        self, state: GordonState, previous: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b y"], GordonState]:
        logits, _, after = _advance(state, previous)
        return torch.log_softmax(logits, dim=1), after

    def _unroll(
        self, batch: Batch, forced: Bool[Tensor, " b"] | None
    ) -> tuple[Float[Tensor, "m b y"], Float[Tensor, "m b n"]]:
        """Logits and attention at every position, after the target where ``forced`` is True or
        None, and after the model's own best words elsewhere.
        """
        state = self.start(batch.source)
        logits: list[Tensor] = []
        attention: list[Tensor] = []
        for previous in previous_words(batch.target).unbind(1):
            if logits and forced is not None:
                previous = torch.where(forced, previous, logits[-1].detach().argmax(1))
            scores, weights, state = _advance(state, previous)
            logits.append(scores)
            attention.append(weights)
        return torch.stack(logits), torch.stack(attention)

    def _joined(
        self, forward: Float[Tensor, "*b s"], backward: Float[Tensor, "*b s"]
    ) -> Float[Tensor, "*b d"]:
        """Concatenate the channels of both directions for every group element."""
        slots = [x.unflatten(-1, self._slots) for x in (forward, backward)]
        return torch.cat(slots, dim=-1).flatten(-2)

    def _weights(self) -> Weights:
        from_source, encoder = self.encoder.matrices()
        from_target, context = self.combine.conv.matrices()
        source, target = every_word(self.source_embed), every_word(self.target_embed)
        is_pad = torch.arange(len(source), device=source.device)[:, None] == PAD
        return Weights(
            source=torch.cat([source, is_pad.to(source.dtype)], dim=1),
            encoder_in=torch.cat([from_source, self.shut[None]]).T,
            encoder_hidden=encoder.T,
            encoder_bias=self.encoder.biases(),
            target=torch.addmm(self.combine.biases(), target, from_target),
            context=context,
            decoder=self.decoder.matrices().flatten(0, 1),
            decoder_bias=self.decoder.biases(),
            readout=self.readout.matrix(),
            readout_bias=self.readout.biases(),
        )


def _advance(
    state: GordonState, previous: Int[Tensor, " b"]
) -> tuple[Float[Tensor, "b y"], Float[Tensor, "b n"], GordonState]:
    """The logits of the next word, the attention, and the state after ``previous``."""
    weights = state.weights
    scores = torch.baddbmm(state.mask[:, :, None], state.keys, state.h[:, :, None])
    attention = torch.softmax(scores[:, :, 0], dim=1)
    word = functional.embedding(previous, weights.target)
    z = torch.baddbmm(word[:, None], attention[:, None], state.values)[:, 0].tanh()
    gates = torch.addmm(weights.decoder_bias, torch.cat([z, state.h], dim=1), weights.decoder)
    h, c = lstm_cell(gates, state.c)
    logits = h @ weights.readout + weights.readout_bias
    return logits, attention, state._replace(h=h, c=c)
