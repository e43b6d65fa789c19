"""Many trainings: tables, searches, records."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.experiments.executors import Lost, Outcomes, run_locally, run_on_ray
    from equitrans.experiments.plans import (
        Experiment,
        Row,
        SearchPlan,
        figures,
        load,
        load_search,
        names,
        search_names,
    )
    from equitrans.experiments.records import (
        Curve,
        Job,
        Order,
        Record,
        Records,
        claim,
        learning_curve,
        perform,
        read_record,
    )
    from equitrans.experiments.search import Search, Trial, leading
    from equitrans.experiments.spaces import Space
    from equitrans.experiments.tables import find_records, make_search, make_seeds, make_table
    from equitrans.experiments.workers import Failed

__getattr__, __dir__, __all__ = face(__name__)
