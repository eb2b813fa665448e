"""Where rows come from: the fingerprints of code and data change with what decides a number, and with nothing else."""

import ast
import sys
import textwrap

import pytest

from figures.experiments import provenance, runner, studies, tables
from pepcore.datasets.catalogue import registry


@pytest.fixture
def fingerprint(tmp_path, monkeypatch):
    """A function: source of a study -> the fingerprint of its code."""
    monkeypatch.syspath_prepend(tmp_path)
    number = iter(range(100))

    def of(source):
        name = f"study_{tmp_path.name.replace('-', '_')}_{next(number)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        reached = provenance._reach(name, "compute", {})
        return provenance._digest(f"{place.partition('.')[2]}: {text}" for place, text in sorted(reached.items()))

    yield of
    for name in [name for name in sys.modules if name.startswith("study_")]:
        del sys.modules[name]


STUDY = '''
    """A study."""
    from pepcore.kernels import SquaredExponential

    SCALE = 2.0
    COLOUR = "red"

    def compute(x):
        """One run."""
        return {"y": _scaled(x), "k": SquaredExponential()}

    def _scaled(x):
        if x is None:
            raise ValueError("no length, " f"only {x!r}")
        return SCALE * x    # in metres

    def draw(figure, results):
        figure.plot(results, COLOUR)

    FIGURES = {x: draw for x in ("one", "two")}
'''


@pytest.mark.parametrize(("was", "now"), [("return SCALE * x", "return SCALE + x"), ("SCALE = 2.0", "SCALE = 3.0"),
                                      ("SquaredExponential", "Matern52"), ('{"y"', '{"z"'),
                                      ("if x is None", "if x == 0"), ("ValueError", "TypeError")])
def test_what_decides_a_number_changes_the_fingerprint(fingerprint, was, now):
    assert fingerprint(STUDY.replace(was, now)) != fingerprint(STUDY)


@pytest.mark.parametrize(("was", "now"), [("A study.", "A better study."), ("# in metres", ""), ("One run.", "One."),
                                      ('COLOUR = "red"', 'COLOUR = "blue"'), ("figure.plot", "figure.scatter"),
                                      ("no length, ", "a length is missing, "), ("only {x!r}", "it is {x} of {SCALE}")])
def test_words_and_drawing_do_not(fingerprint, was, now):
    assert fingerprint(STUDY.replace(was, now)) == fingerprint(STUDY)


@pytest.mark.parametrize("text", ["f'{x} of {y:.2f}'", """f"{name}{', '.join(parts)})\"""", "f'{x:{width}}'",
                                  """f'''{', '.join(parts)} of "{x!r}"'''"""])
def test_every_python_writes_an_f_string_alike(text):
    """From 3.12 on `ast.unparse` quotes some otherwise; rows would count as those of other code."""
    assert provenance._written(ast.parse(f"y = {text}")) == f"y = {text}"


def test_a_study_reaches_its_functions_those_of_other_studies_and_the_package():
    reached = provenance._reach("figures.experiments.book.choose_alpha", "compute", {})
    book, bui2017 = "figures.experiments.book.choose_alpha", "figures.experiments.bui2017.uci_regression"
    assert {f"{book}.compute", f"{book}._refits", f"{book}.EVALUATIONS", f"{bui2017}.standardised",
            "pepcore.power_ep.closed_form.regression", "pepcore.training.search.Search", "pepcore.gaussian.safe_cholesky",
            } <= reached.keys()
    assert not {f"{book}.grid", f"{bui2017}.draw", "pepcore.training.minibatch.fit_minibatch", "pepcore.online"} & reached.keys()


@pytest.mark.parametrize(("study_id", "settings"), [
    ("uci_regression", {"data": "yacht", "split": 0, "M": 5, "alpha": 0.5, "max_evaluations": 3}),
    ("uci_classification", {"data": "crabs", "split": 0, "M": 10, "alpha": 0.5, "max_evaluations": 3}),
    ("csa_order", None), ("vil_length", None), ("learnt_powers", None), ("kuss_landscape", None)])
def test_whatever_runs_is_part_of_the_fingerprint(study_id, settings):
    """The names were found by reading; here they are compared with the functions that one row calls."""
    study = studies.load(study_id)
    settings = settings or study.module.grid()[0]
    reached = provenance._reach(study.module.__name__, "compute", {})
    called = set()

    def note(frame, event, _):
        if event == "call" and frame.f_globals.get("__name__", "").startswith(("pepcore", "figures")):
            called.add(f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname.partition('.')[0]}")

    sys.setprofile(note)
    try:
        study.module.compute(**settings)
    finally:
        sys.setprofile(None)
    called = {name for name in called if "<" not in name and "__create_fn__" not in name}     # lambdas; dataclasses' own
    assert len(called) > 10
    assert called <= reached.keys()


@pytest.mark.parametrize(("was", "now"), [("SCALE = 2.0", "SCALE = 2.0\n    import sys\n    sys.setrecursionlimit(10**4)"),
                                      ("SCALE = 2.0", 'SCALE = 2.0\n    TABLE = {}\n    TABLE["x"] = SCALE')])
def test_what_a_module_does_when_imported_changes_the_fingerprint(fingerprint, was, now):
    assert fingerprint(STUDY.replace(was, now)) != fingerprint(STUDY)


def test_every_study_has_a_fingerprint_of_its_own():
    modules = [studies.load(study_id).module.__name__ for study_id in studies.studies()]
    assert len({provenance.code(module) for module in modules}) == len(modules)


def test_data_are_known_by_their_checksums():
    module = studies.load("uci_regression").module
    boston, energy = ({"data": name, "split": 0} for name in ("boston", "energy"))
    assert provenance.data_hash(module, boston) == provenance.data_hash(module, boston | {"split": 1})
    assert provenance.data_hash(module, boston) != provenance.data_hash(module, energy)
    assert provenance.data_hash(module, {"data": "made up"}) == ""


@pytest.mark.parametrize("study_id", studies.studies())
def test_a_study_whose_code_names_data_sets_says_which_it_reads(study_id):
    study = studies.load(study_id)
    reached = provenance._reach(study.module.__name__, "compute", {})
    trees = [ast.parse(text) for place, text in reached.items() if place.startswith("figures.")]
    words = {part.value for tree in trees for part in ast.walk(tree) if isinstance(part, ast.Constant)}
    read = {name for inputs in study.runs() for name in provenance.data_sets(study.module, inputs)}
    assert read or getattr(study.module, "BUNDLED", ()) or words.isdisjoint(registry)


@pytest.mark.parametrize("study_id", studies.studies())
def test_rows_have_the_fingerprint_of_their_data_where_they_have_that_of_their_code(study_id):
    study = studies.load(study_id)
    rows = tables.read_rows(study)
    assert rows
    for row in rows:
        inputs = {name: row[name] for name in study.inputs}
        assert row["data_hash"] == (provenance.data_hash(study.module, inputs) if row["code"] else "")


def test_the_machine_is_named_in_words():
    processor, *libraries = provenance.machine().split("; ")
    assert processor and libraries


def test_processors_of_one_name_are_told_apart(tmp_path):
    """Rows of two kinds that are called alike differed in rounding, and a search carries that on to the fourth digit."""
    def named(text):
        (tmp_path / "cpuinfo").write_text(text)
        return provenance._processor(tmp_path / "cpuinfo")

    old, new = (f"processor\t: 0\nmodel name\t: Some  CPU\ncpu family\t: {family}\nmodel\t\t: 17\ncache size\t: 512 KB\n"
                for family in (23, 25))
    assert named(old) == "Some CPU (cpu family 23 / model 17 / cache size 512 KB)" != named(new)
    assert named("model name\t: Some CPU\n") == "Some CPU"
    assert named("Hardware\t: a board\n")


def test_a_row_on_other_data_is_stale(monkeypatch):
    budget = runner.load("uci_budget")
    row = next(row for row in tables.read_rows(budget) if row["code"])
    monkeypatch.setattr(provenance, "code", lambda module: row["code"])
    assert not runner.is_stale(budget, row) and runner.is_stale(budget, row | {"data_hash": "0123456789ab"})
