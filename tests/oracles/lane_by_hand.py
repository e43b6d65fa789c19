"""A hand-written policy and fifteen expressions that solve every command of SCAN by LANE's steps.

``python lane_by_hand.py`` checks it. The test runs it as a program, without checks of types at run
time, which would take five times as long.
"""

from collections.abc import Sequence

from equitrans.data.scan import everything
from equitrans.models.baselines.lane.interpreter import VARIABLE, Policy, Symbols, compose, values
from equitrans.paper import Vocabulary

PAIRS = everything()
SOURCE = Vocabulary.of(p.source for p in PAIRS)
TARGET = Vocabulary.of(p.target for p in PAIRS)

EXPRESSIONS = """
walk → I_WALK
look → I_LOOK
run → I_RUN
jump → I_JUMP
right → I_TURN_RIGHT
left → I_TURN_LEFT
x1 x2 → x2 x1
x1 twice → x1 x1
x1 thrice → x1 x1 x1
x1 and x2 → x1 x2
x1 after x2 → x2 x1
opposite x1 → x1 x1
x1 around x2 → x2 x1 x2 x1 x2 x1 x2 x1
turn x1 → x1
turn around x1 → x1 x1 x1 x1
"""


def read(text: str) -> dict[Symbols, tuple[int, ...]]:
    """Expressions as symbols and outputs."""
    found = {}
    for line in text.strip().splitlines():
        left, right = (side.split() for side in line.split("→"))
        symbols = [VARIABLE if s in ("x1", "x2") else SOURCE.index[s] for s in left]
        slots = {"x1": ~0, "x2": ~1}
        output = [slots[s] if s in slots else TARGET.index[s] for s in right]
        found[tuple(symbols)] = tuple(output)
    return found


class ByHand(Policy):
    """The parse of SCAN with the expressions above: directions first, then how often, then the
    conjunction; a span is abstracted if it is an expression, and else left open.
    """

    def __init__(self, expressions: dict[Symbols, tuple[int, ...]]) -> None:
        super().__init__()
        self._expressions = expressions
        self._ranks: dict[int, int] = {}

    def abstracts_leaf(self, kind: int) -> bool:
        return self.kinds[kind] in self._expressions

    def abstracts(self, candidate: int) -> bool:
        return self.symbols(candidate) in self._expressions

    def choose(self, candidates: Sequence[int]) -> int:
        for n in candidates:
            if n not in self._ranks:
                self._ranks[n] = self._rank(n)
        ranks = [self._ranks[n] for n in candidates]
        return ranks.index(min(ranks))

    def _rank(self, candidate: int) -> int:
        """Order of the merges: the smallest is first."""
        x = "x"
        left, right = (
            tuple(x if s == VARIABLE else SOURCE.decode([s])[0] for s in self.kinds[kind])
            for kind in self.candidates[candidate]
        )
        order = [
            (("opposite",), (x,)),
            (("turn",), ("around",)),
            (("turn", "around"), (x,)),
            ((x,), ("around",)),
            ((x, "around"), (x,)),
            (("turn",), (x,)),
            ((x,), (x,)),
            ((x,), ("twice",)),
            ((x,), ("thrice",)),
            ((x,), ("and",)),
            ((x,), ("after",)),
            ((x, "and"), (x,)),
            ((x, "after"), (x,)),
        ]
        return order.index((left, right)) if (left, right) in order else len(order)


def check() -> str:
    """A summary of all commands; raises AssertionError if one is wrong."""
    expressions = read(EXPRESSIONS)
    sources = [SOURCE.encode(p.source) for p in PAIRS]
    trajectories = compose(ByHand(expressions), sources)
    used = set()
    for pair, trajectory in zip(PAIRS, trajectories, strict=True):
        assert trajectory.solved
        outputs = [expressions[node.symbols] for node in trajectory.nodes]
        used.update(node.symbols for node in trajectory.nodes)
        for node, output in zip(trajectory.nodes, outputs, strict=True):
            assert len(node.symbols) <= 4
            assert len(node.children) <= 2
            assert len(output) <= 10
        found = values(trajectory.nodes, outputs, longest=100)[-1]
        assert found == (len(pair.target), "".join(map(chr, TARGET.encode(pair.target))))
    return f"{len(PAIRS)} commands, {len(used)} expressions"


if __name__ == "__main__":
    print(check())
