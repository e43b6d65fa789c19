"""One representative for every orbit of pairs.

Pairs of one orbit have the same likelihood (theorem 3), so that one of them can stand for all.
"""

from collections.abc import Callable

from equitrans.paper import Sentence, Symmetry


def representative(
    symmetry: Symmetry, source: Sentence, target: Sentence = ()
) -> tuple[Sentence, Sentence]:
    """The representative of a pair's orbit.

    >>> from equitrans import LexicalClass
    >>> verbs = LexicalClass("verbs", ("walk", "look", "run"), ("WALK", "LOOK", "RUN"))
    >>> symmetry = Symmetry.of([verbs], [])
    >>> representative(symmetry, (4, 5), (5, 4)) == representative(symmetry, (5, 3), (3, 5))
    True
    """
    renaming = Renaming(symmetry)
    return renaming.source(source), renaming.target(target)


class Renaming:
    """The group element that takes a pair to the representative of its orbit, found word by word.

    In a cyclic class the first word to appear becomes the class's first, and the others move
    along; in a symmetric one words take the places of the class in order of appearance.
    """

    def __init__(self, symmetry: Symmetry) -> None:
        self._symmetry = symmetry
        # by class: where each word goes (symmetric), or under 0 which word goes first (cyclic)
        self._new: list[dict[int, int]] = [{} for _ in symmetry.classes]

    @property
    def element(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The same for renamings that are the same group element, as far as they have been
        asked.
        """
        return tuple(tuple(names.items()) for names in self._new)

    def source(self, sentence: Sentence) -> Sentence:
        """A source sentence renamed."""
        return self._moved(0, sentence, self._new_place)

    def target(self, sentence: Sentence) -> Sentence:
        """A target sentence renamed."""
        return self._moved(1, sentence, self._new_place)

    def original_target(self, sentence: Sentence) -> Sentence:
        """A renamed target sentence as it was."""
        return self._moved(1, sentence, self._old_place)

    def _moved(self, side: int, sentence: Sentence, place: Callable[[int, int], int]) -> Sentence:
        """A sentence whose class words have gone to other places of their classes."""
        home, members = self._symmetry.homes[side], self._symmetry.members[side]
        out = list(sentence)
        for i, word in enumerate(sentence):
            if word in home:
                c, here = home[word]
                out[i] = members[c][place(c, here)]
        return tuple(out)

    def _new_place(self, c: int, place: int) -> int:
        names = self._new[c]
        if self._symmetry.kind == "symmetric":
            return names.setdefault(place, len(names))
        return (place - names.setdefault(0, place)) % len(self._symmetry.classes[c].source)

    def _old_place(self, c: int, place: int) -> int:
        names, n = self._new[c], len(self._symmetry.classes[c].source)
        if self._symmetry.kind == "symmetric":
            # words that did not appear take the places that are left, in order
            return [*names, *(i for i in range(n) if i not in names)][place]
        return (place + names.get(0, 0)) % n
