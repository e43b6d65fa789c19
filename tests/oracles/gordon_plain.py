"""Gordon et al.'s model in plain loops over words and group elements, one sentence at a time, with
the parameters of the model under test."""

import torch

from equitrans.paper.groups import compose
from equitrans.paper.vocabulary import BOS, EOS
from listed import inverse


class PlainGordon:
    """A feature is a dictionary from group elements to vectors."""

    def __init__(self, model):
        self.model = model
        self.group = model.symmetry.group.elements
        self.number = {g: i for i, g in enumerate(self.group)}

    def conv(self, weights, bias, f):
        """out[g] = b + Σ_h in[h] W[g⁻¹h]."""
        out = {}
        for g in self.group:
            out[g] = bias
            for h in self.group:
                out[g] = out[g] + f[h] @ weights[self.number[compose(inverse(g), h)]]
        return out

    def cell(self, cell, x, h, c):
        gates = []
        for gate in range(4):
            of_input, of_hidden = (
                self.conv(cell.convs.psi[:, i, :, gate], cell.bias[i, gate], f)
                for i, f in enumerate((x, h))
            )
            gates.append({e: of_input[e] + of_hidden[e] for e in self.group})
        i, f, o, g = gates
        c = {e: f[e].sigmoid() * c[e] + i[e].sigmoid() * g[e].tanh() for e in self.group}
        return {e: o[e].sigmoid() * c[e].tanh() for e in self.group}, c

    def embed(self, embed, word, action):
        """e(w)[g] = table[g⁻¹w]; the table has no row for PAD."""
        return {g: embed.omega[action(inverse(g), [word])[0] - 1] for g in self.group}

    def read(self, words):
        """The state after each word in one direction, and the last cell."""
        model, k = self.model, self.model.encoder.bias.shape[2]
        h = c = {g: torch.zeros(k) for g in self.group}
        states = []
        for word in words:
            e = self.embed(model.source_embed, word, model.symmetry.source_action)
            h, c = self.cell(model.encoder, e, h, c)
            states.append(h)
        return states, c

    def joined(self, a, b):
        return {g: torch.cat([a[g], b[g]]) for g in self.group}

    def encode(self, source):
        """H_n of every word and of EOS, and the decoder's initial (h, c)."""
        forward, c = self.read([*source, EOS])
        backward, c_back = self.read([*reversed(source), EOS])
        *words, end = backward
        states = [self.joined(f, b) for f, b in zip(forward, [*reversed(words), end], strict=True)]
        return states, states[-1], self.joined(c, c_back)

    def logits(self, h):
        """The logits of all words except PAD and BOS."""
        readout, act = self.model.readout, self.model.symmetry.target_action
        classes = self.model.symmetry.target_classes
        out = []
        for y in range(EOS, len(self.model.symmetry.target)):
            logit = sum(h[g] @ readout.decode.rho[act(inverse(g), [y])[0] - 1] for g in self.group)
            if readout.bias is not None:
                tied = len(readout.bias) == max(classes)
                logit = logit + readout.bias[(classes[y] if tied else y) - 1]
            out.append(logit)
        return torch.stack(out)

    def words(self, source, target, *, forced):
        """Log p of every word at each position, the best words, and the attention, after the target
        (``forced``) or after the model's best words."""
        model = self.model
        states, h, c = self.encode(source)
        previous, scores, said, attention = BOS, [], [], []
        for gold in (*target, EOS):
            dots = torch.stack([sum(h[g] @ s[g] for g in self.group) for s in states])
            alpha = dots.softmax(0)
            e = self.embed(model.target_embed, previous, model.symmetry.target_action)
            context = {
                g: sum(a * s[g] for a, s in zip(alpha, states, strict=True)) for g in self.group
            }
            combine = model.combine.conv.psi[:, :, :, 0].flatten(1, 2)
            z = self.conv(combine, model.combine.bias, self.joined(e, context))
            h, c = self.cell(model.decoder, {g: z[g].tanh() for g in self.group}, h, c)
            scores.append(self.logits(h).log_softmax(0))
            said.append(int(scores[-1].argmax()) + EOS)
            attention.append(alpha)
            previous = gold if forced else said[-1]
        return scores, said, torch.stack(attention)

    def loss(self, source, target):
        scores, _, _ = self.words(source, target, forced=True)
        return -sum(s[y - EOS] for s, y in zip(scores, (*target, EOS), strict=True))

    def objective(self, source, target, *, forced):
        """The training objective of the released code, and the number of words that it counts."""
        scores, said, _ = self.words(source, target, forced=forced)
        total, count = torch.zeros(()), 0
        for s, y, word in zip(scores, (*target, EOS), said, strict=True):
            total, count = total - s[y - EOS], count + 1
            if word == EOS:
                break
        return total / count, count
