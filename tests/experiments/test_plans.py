"""The descriptions of the paper's experiments are valid and have the published figures."""

from pathlib import Path

import pytest

from equitrans.data.scan import RULES
from equitrans.errors import ConfigError
from equitrans.experiments import plans as experiments
from equitrans.experiments.plans import load, load_search
from equitrans.experiments.records import Records, figures
from equitrans.experiments.tables import make_table
from equitrans.models.configs import MODELS

RECORDS = Path(__file__).parents[2] / "records"
SPLITS = ("simple", "add_jump", "around_right", "length")
SHARES = (1, 2, 4, 8, 16, 32, 64)


def by_split(*values: float) -> dict[str, float]:
    return dict(zip(SPLITS, values, strict=True))


def by_share(*values: float) -> dict[str, float]:
    return {f"simple_p{share}": value for share, value in zip(SHARES, values, strict=True)}


VARIANTS = {
    "sum": by_split(100.0, 100.0, 100.0, 28.5),
    "max": by_split(100.0, 99.9, 99.9, 18.3),
    "annealed max": by_split(99.9, 99.9, 99.9, 19.7),
}

# table 1, and appendices A and C
PUBLISHED = {
    "table1": {
        "Russin et al. 2019": by_split(100.0, 91.0, 28.9, 15.2),
        "Liu et al. 2020": by_split(100.0, 100.0, 100.0, 100.0),
        "Gordon et al. 2020": by_split(100.0, 99.1, 92.0, 15.9),
        "hard alignment, sum": by_split(100.0, 100.0, 100.0, 28.5),
    },
    "variants": VARIANTS,
    "starts": VARIANTS,
    "alternatives": {"sum": {"simple": 100.0, "around_right": 100.0}},
    "epochs": {"sum": {"simple": 100.0, "around_right": 100.0, "length": 28.5}},
    "lowdata": {
        "sum, verbs": by_share(42.14, 68.09, 89.59, 94.67, 98.88, 99.86, 99.67),
        "max, verbs": by_share(0.47, 56.28, 9.2, 99.23, 99.48, 99.48, 99.88),
        "annealed max, verbs": by_share(33.26, 58.36, 81.22, 95.61, 98.44, 97.41, 99.27),
        "Gordon et al. 2020": by_share(45.75, 73.53, 89.54, 96.60, 97.12, 97.47, 99.67),
    },
    "lowdata-paper": {"sum, verbs": {"simple_p1": 42.14, "simple_p2": 68.09, "simple_p4": 89.59}},
    "orbits": {},
    "lane": {},
}


def test_the_names_of_experiments_and_searches():
    assert experiments.names() == [
        "alternatives",
        "differences",
        "epochs",
        "lane",
        "lowdata",
        "lowdata-paper",
        "orbits",
        "starts",
        "table1",
        "variants",
    ]
    assert experiments.search_names() == ["search", "search-length"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures_are_those_of_the_paper(name):
    found: dict[str, dict[str, float]] = {}
    for row in load(name).rows:
        if row.published:
            found.setdefault(row.name.partition(":")[0], {}).update(row.published)
    assert found == PUBLISHED[name]


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_job_of_an_experiment_is_valid_and_unique(name, quick):
    experiment = load(name, quick=quick)
    assert experiment.splits
    assert set(experiment.splits) <= set(RULES)
    names = [row.name for row in experiment.rows]
    assert len(set(names)) == len(names)
    jobs = list(experiment.jobs(official=not quick))
    cells = [
        job
        for row in experiment.rows
        for split in experiment.splits
        for job in row.jobs(split, official=not quick)
    ]
    assert sorted(job.name for job in jobs) == sorted(job.name for job in cells)
    assert len(set(jobs)) == len(jobs) > 0
    assert all(job.official is not quick for job in jobs)
    for row in experiment.rows:
        assert set(row.published) <= set(load(name).splits)
        if row.settings is not None:
            jobs = [row.jobs(split, official=False) for split in row.splits]
            one = any(job.config.model.learner == "rules" for cell in jobs for job in cell)
            seeds = [1 if one else row.more_seeds.get(split, row.seeds) for split in row.splits]
            assert [len(cell) for cell in jobs] == seeds
        other = next(split for split in RULES if split not in load(name).splits)
        assert row.jobs(other, official=False) == []


def test_the_first_seed_of_every_cell_is_trained_first():
    jobs = list(load("table1").jobs(official=True))
    seeds = [job.config.seed for job in jobs]
    assert seeds == sorted(seeds)
    rows = [row for row in load("table1").rows if row.settings is not None]
    assert seeds.count(0) == sum(len(row.splits) for row in rows)
    assert max(seeds) == max(max(row.seeds, *row.more_seeds.values(), 0) for row in rows) - 1


def test_a_quick_version_has_fewer_jobs():
    for name in experiments.names():
        full, quick = load(name), load(name, quick=True)
        assert len(list(quick.jobs(official=False))) < len(list(full.jobs(official=False)))
        assert set(quick.splits) <= set(full.splits)
        assert all(row.seeds == 1 for row in quick.rows)
    # rows with published figures only stay
    assert any(row.settings is None for row in load("table1", quick=True).rows)
    (job,) = load("variants", quick=True).restricted(only="annealed").jobs(official=False)
    assert job.config.training.updates == 3000
    assert job.config.model.marginal == "annealed"


def test_table_1_has_every_model_and_both_aligners():
    jobs = list(load("table1").jobs(official=True))
    assert {job.settings["kind"] for job in jobs} == MODELS.keys() - {"backoff", "trees"}
    aligners = {job.settings.get("model.aligner") for job in jobs}
    assert {"lstm", "recursive"} <= aligners
    assert {job.width for job in jobs if job.settings["kind"] != "transducer"} == {1}


def test_an_experiment_can_be_restricted_to_some_systems_and_seeds():
    table = load("table1")
    some = table.restricted(only="RECURSIVE", seeds=2)
    assert [row.name for row in some.rows] == [
        "recursive aligner, both classes",
        "recursive aligner, classes discovered",
    ]
    assert len(list(some.jobs(official=False))) == 2 * 4  # learning rules uses no seed
    assert set(some.jobs(official=False)) < set(table.jobs(official=False))
    assert [row.seeds for row in table.restricted(seeds=4).rows] == [
        min(row.seeds, 4) for row in table.rows
    ]
    assert table.restricted() == table
    with pytest.raises(ConfigError, match="table1 has no system with 'transformer' in its name"):
        table.restricted(only="transformer")
    with pytest.raises(ConfigError, match="seeds is 0; it must be 1 or more"):
        table.restricted(seeds=0)


def test_an_unknown_name_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match="unknown experiment 'tabel1'; did you mean 'table1'"):
        load("tabel1")
    with pytest.raises(ConfigError, match="unknown search 'serach'; did you mean 'search'"):
        load_search("serach")
    with pytest.raises(ConfigError, match="unknown experiment 'search'"):
        load("search")
    with pytest.raises(ConfigError, match="unknown search 'table1'"):
        load_search("table1")


@pytest.mark.parametrize("name", ["search", "search-length"])
def test_every_trial_of_a_search_is_valid_and_unique(name):
    plan = load_search(name)
    assert plan.split in RULES
    assert plan.published == 28.5
    drawn = plan.drawn(official=True)
    for settings, job in drawn:
        asked = dict(settings)
        assert job.config.seed == asked.pop("seed")
        assert {setting: job.settings[setting] for setting in asked} == asked
        shared = {k: v for k, v in plan.settings.items() if k != "recipe"}
        assert {setting: job.settings[setting] for setting in shared} == shared
    assert len({job.name for _, job in drawn}) == plan.trials
    # choices that were not drawn are valid too
    for setting, choices in plan.space.settings.items():
        for choice in choices:
            plan.job(drawn[0][0] | {setting: choice}, official=False)


def test_the_figure_of_a_diverged_training_is_zero():
    assert figures([{"test": {"exact_match": 0.25}}, {"test": None}]) == [25.0, 0.0]


def test_a_system_that_learns_rules_has_one_figure_per_split():
    """Trainings of different seeds give the same rules, so they are no sample."""
    for name in ("table1", "lowdata"):
        table = make_table(load(name), Records(RECORDS), official=True)
        (*_, line) = (line for line in table.splitlines() if line.startswith("| recursive aligner"))
        assert "(1)" in line
        assert "±" not in line


def test_null_in_a_table_is_no_limit():
    rows = {row.name: row for row in experiments.load("differences").rows}
    (job, *_) = rows["Russin et al.: batches of 16"].jobs("add_jump", official=True)
    assert job.config.training.clip is None
