"""Many trainings: tables, searches, records."""

from typing import TYPE_CHECKING

from equitrans import face

if TYPE_CHECKING:
    from equitrans.experiments.beyond import (
        Benchmark,
        Results,
        curve_bands,
        load_benchmarks,
        make_beyond,
        perform_training,
    )
    from equitrans.experiments.executors import Failed, Lost, Outcomes, run_locally, run_on_ray
    from equitrans.experiments.jobs import (
        Curve,
        Job,
        Order,
        Record,
        claim,
        commit,
        learning_curve,
        perform,
    )
    from equitrans.experiments.plans import (
        Experiment,
        Row,
        SearchPlan,
        load,
        load_search,
        names,
        search_names,
        validation_loss,
    )
    from equitrans.experiments.records import Records, figures, read_record, read_records
    from equitrans.experiments.search import Search, Space, Trial, leading
    from equitrans.experiments.spreading import spread_locally, spread_on_ray
    from equitrans.experiments.tables import (
        find_records,
        make_search,
        make_seeds,
        make_table,
        title,
    )

__getattr__, __dir__, __all__ = face(__name__)
