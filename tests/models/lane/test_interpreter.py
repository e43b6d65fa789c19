"""LANE's interpreter: trajectories of given decisions, and values of nodes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import lane_by_hand
from equitrans.models.baselines.lane.interpreter import (
    VARIABLE,
    Node,
    Policy,
    Value,
    compose,
    values,
)


def test_fifteen_expressions_give_every_command_of_scan():
    program = [sys.executable, str(Path(lane_by_hand.__file__))]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == "20910 commands, 15 expressions\n"


class Scripted(Policy):
    """Takes the decisions that it is given, in order."""

    def __init__(self, leaves: list[bool], merges: list[tuple[int, bool]]) -> None:
        super().__init__()
        self._leaves, self._merges = iter(leaves), iter(merges)

    def abstracts_leaf(self, kind: int) -> bool:
        return next(self._leaves)

    def choose(self, candidates: Sequence[int]) -> int:
        k, self._abstract = next(self._merges)
        return k

    def abstracts(self, candidate: int) -> bool:
        return self._abstract


def test_three_symbols_and_two_variables_are_always_abstracted():
    (three,) = compose(Scripted([False] * 3, [(0, False), (0, False)]), [(5, 6, 7)])
    assert [m.abstract for m in three.merges] == [False, True]
    assert three.nodes == [Node((5, 6, 7), (), 0, 3)]
    (two,) = compose(Scripted([True, True], [(0, False)]), [(5, 6)])
    assert two.nodes[-1] == Node((VARIABLE, VARIABLE), (0, 1), 0, 2)


def test_a_pair_that_is_left_open_keeps_its_symbols_and_its_variable():
    (found,) = compose(Scripted([False, True, False], [(1, False), (0, False)]), [(5, 6, 7)])
    assert found.nodes == [Node((6,), (), 1, 2), Node((5, VARIABLE, 7), (0,), 0, 3)]


def test_four_symbols_are_the_most():
    decisions = [(0, False), (1, False), (0, False)]
    (found,) = compose(Scripted([True, False, True, False], decisions), [(5, 6, 7, 8)])
    assert found.nodes[-1] == Node((VARIABLE, 6, VARIABLE, 8), (0, 1), 0, 4)


@pytest.mark.parametrize("abstract", [False, True])
def test_a_sentence_is_solved_if_its_last_decision_was_to_abstract(abstract):
    (one,) = compose(Scripted([abstract], []), [(5,)])
    (two,) = compose(Scripted([False, True], [(0, abstract)]), [(5, 6)])
    assert one.solved is two.solved is abstract


def test_values_that_grow_tenfold_with_every_level_are_cut_and_their_length_is_known():
    nodes = [Node((5,), (), 0, 1)] + [Node((VARIABLE, 6), (n,), 0, n + 2) for n in range(300)]
    outputs = [(65,)] + [(~0,) * 10] * 300
    found = values(nodes, outputs, longest=7)
    assert found[-1] == Value(10**300, "A" * 7)
    assert found[1] == Value(10, "A" * 7)


def test_a_variable_may_be_unused():
    nodes = [Node((5,), (), 0, 1), Node((VARIABLE, 6), (0,), 0, 2)]
    assert values(nodes, [(65,), (66,)], longest=9)[-1] == (1, "B")
