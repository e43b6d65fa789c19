"""Devices without settings of their own."""

from equitrans.analysis.evaluation import in_parts
from equitrans.data.batches import Rows
from worlds import SYMMETRIES, random_pairs, small


def test_rows_are_batched_on_a_device_without_a_batch_size_of_its_own():
    """Such as mps; the device meta stands for it, because every machine has it."""
    model = small(SYMMETRIES["verbs"])
    rows = Rows.of(random_pairs(0, 4), model.symmetry)
    assert {part.source.device.type for part in in_parts(model.to("meta"), rows)} == {"meta"}
