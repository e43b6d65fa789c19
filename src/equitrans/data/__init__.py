"""Pairs of sentences, their lexical classes, and batches of them."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.data.batches import (
        Renaming,
        Rows,
        by_form,
        by_pair,
        in_order,
        pad_source,
        representative,
    )
    from equitrans.data.classes import (
        check_classes,
        check_together,
        class_to_json,
        format_classes,
        read_classes,
        symmetry_from_json,
        symmetry_to_json,
    )
    from equitrans.data.discovery import Discovery, discover
    from equitrans.data.findings import Finding
    from equitrans.data.inspection import Inspection, inspect_pairs
    from equitrans.data.pairs import (
        AnyPair,
        File,
        HoldOut,
        Pair,
        Split,
        as_pairs,
        decode_lines,
        format_scan,
        format_tsv,
        hold_out,
        join_words,
        numbered_lines,
        read_column,
        read_pairs,
        split_words,
    )
    from equitrans.data.reading import TIE, Read, Reading, glued, lower_first_words
    from equitrans.data.recorded import recorded_data, recorded_split
    from equitrans.data.scan import (
        CLASSES,
        DIRECTIONS,
        OFFICIAL,
        RULES,
        VERBS,
        download,
        everything,
        load_split,
        official_rows,
    )
    from equitrans.data.source import Batching, Data, DataConfig, load_classes, load_data

__getattr__, __dir__, __all__ = face(__name__)
