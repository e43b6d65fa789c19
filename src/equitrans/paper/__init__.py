"""The model of the paper, p(y | x), and its symmetry.

Read in this order: groups, symmetry, layers, translator, aligner, marginals, transducer.
"""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.paper.aligner import Aligner
    from equitrans.paper.base import (
        Autoregressive,
        Batch,
        Model,
        Moment,
        Parts,
        lengths,
        padding_mask,
        previous_words,
    )
    from equitrans.paper.groups import Action, Group, Permutation, compose, cycles, identity
    from equitrans.paper.marginals import MARGINALS, Marginal
    from equitrans.paper.symmetry import GroupKind, LexicalClass, Sentence, Symmetry
    from equitrans.paper.transducer import Transducer
    from equitrans.paper.translator import Translator, WordTranslator, class_numbers, entries
    from equitrans.paper.vocabulary import BOS, EOS, N_SPECIAL, PAD, Vocabulary

__getattr__, __dir__, __all__ = face(__name__)
