"""Data sets: the real files, the refusals, the splits, and what the generators promise.

The small sets stand in the repository. Tests of the large ones need the environment variable PEPCORE_DATA to name a
folder that holds them.
"""

import gzip
import hashlib
import itertools
import os
import pickle
import re
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT
from scipy.special import ndtr

from pepcore import datasets
from pepcore.datasets import loading, origins
from pepcore.datasets.catalogue import content_checksum
from pepcore.kernels import SquaredExponential

SMALL = ROOT / "data"
LARGE = Path(os.environ.get("PEPCORE_DATA", ROOT / "no such folder"))
REGRESSION = ["boston", "concrete", "energy", "kin8nm", "naval", "power", "wine_red", "yacht"]
BUNDLED = ["diabetes", "breast_cancer_wdbc", "wine_sklearn", "digits"]
ON_DISK = [name for name, info in datasets.registry.items() if info.folder != "bundled"]


def never(*arguments, **options):
    raise OSError("no network in this test")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """A machine without the checkout's folder, with an empty cache and no network."""
    import pooch
    import sklearn.datasets

    monkeypatch.delenv("PEPCORE_DATA", raising=False)
    monkeypatch.setattr(loading, "_checkout", lambda: [])
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr(pooch, "retrieve", never)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", never)
    return tmp_path


def small_set(monkeypatch, **changes):
    """Make "boston" a set of three rows that a test can write; returns its X and y."""
    X, y = np.array([[1.0, 2], [3, 4], [5, 6.5]]), np.array([0.5, 1, -2])
    facts = {"folder": "regression", "task": "regression", "N": 3, "D": 2, "citation": "", "licence": "", "notes": ""}
    facts |= {"content": content_checksum(X, y), "origin": {"kind": "text", "urls": ["https://example.org/three.txt"]}}
    monkeypatch.setitem(datasets.registry, "boston", datasets.Info("boston", **(facts | changes)))
    return X, y


def write_csv(path, X, y):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")


# --- the registry and the real files ----------------------------------------------------------------------------------


def test_registry_is_complete():
    assert len(ON_DISK) == 38
    for info in datasets.registry.values():
        assert info.citation
        assert info.licence
        assert len(info.content) == 64
        assert not info.columns or len(info.columns) == info.D
        assert (sum(info.classes) == info.N) if info.task != "regression" else not info.classes
        assert info.origin["kind"] == "bundled" or info.origin["tried"] is False
        assert info.folder == "bundled" or len(info.sha256) == 64


def test_minus_zero_has_the_checksum_of_zero():
    zero = np.zeros((1, 1))
    assert content_checksum(-zero, np.zeros(1)) == content_checksum(zero, np.zeros(1))


@pytest.mark.parametrize("name", ON_DISK)
def test_real_file_is_the_registered_one(name):
    info = datasets.registry[name]
    dataset = datasets.load(name)
    file = (LARGE if info.folder == "large" else SMALL) / info.folder / info.filename
    assert hashlib.sha256(file.read_bytes()).hexdigest() == info.sha256
    assert dataset.X.shape == (info.N, info.D)
    assert np.isfinite(dataset.X).all()
    if info.task == "binary":
        assert set(dataset.y) == {-1.0, 1.0}
        assert (int((dataset.y < 0).sum()), int((dataset.y > 0).sum())) == info.classes


@pytest.mark.parametrize("name", [*ON_DISK, *(name for name, info in datasets.registry.items() if info.folder == "bundled")])
def test_a_note_names_repeated_rows_and_constant_inputs(name):
    dataset, notes = datasets.load(name), datasets.registry[name].notes
    table = np.column_stack([dataset.X, dataset.y])
    repeated = len(table) - len(np.unique(table, axis=0))
    said = re.search(r"(\w+) repeated row", notes)
    assert (said[1].replace("one", "1") if said else "0") == str(repeated)
    constant = np.flatnonzero((dataset.X == dataset.X[0]).all(axis=0))
    assert bool(re.search(r"(is|are) constant", notes)) == bool(len(constant))


def test_the_checkout_holds_the_small_sets_and_nothing_else():
    small = {f"{info.folder}/{info.filename}" for info in datasets.registry.values()
             if info.folder not in ("bundled", "large")}
    masks = {f"regression/{name}_splits.npz" for name in REGRESSION}
    files = {path.relative_to(SMALL).as_posix(): path.stat().st_size for path in SMALL.rglob("*") if path.is_file()}
    assert set(files) == small | masks | {"README.md"}
    assert sum(files.values()) < 2_000_000


def test_a_checkout_needs_no_setting(monkeypatch):
    monkeypatch.delenv("PEPCORE_DATA", raising=False)
    assert loading._checkout() == [SMALL]
    assert len(datasets.load("yacht").y) == 308


@pytest.mark.parametrize("name", REGRESSION)
def test_splits_are_the_published_masks(name):
    masks = np.load(SMALL / "regression" / f"{name}_splits.npz")["test_mask"]
    made = datasets.splits(name)
    assert len(made) == len(masks) == 20
    for (train, test), mask in zip(made, masks):
        assert np.array_equal(np.sort(test), np.flatnonzero(mask))
        assert np.array_equal(np.sort(train), np.flatnonzero(~mask))


@pytest.mark.parametrize("name", [*BUNDLED, "wine"])
def test_bundled_sets_need_neither_file_nor_network(name, offline):
    dataset = datasets.load(name)
    assert dataset.X.shape == (dataset.info.N, dataset.info.D)
    assert dataset.task == dataset.info.task


def test_adult_words_become_codes():
    adult = datasets.load("adult")
    education = list(adult.info.columns).index("education")
    assert adult.info.text[education][int(adult.X[0, education])] == "Bachelors"
    train, test = datasets.official_split(adult)
    assert (len(train), len(test)) == (32561, 16281)


@pytest.mark.parametrize("name", [name for name, info in datasets.registry.items() if info.train_rows])
def test_an_official_split_is_the_head_and_the_tail_of_the_rows(name):
    info, (train, test) = datasets.registry[name], datasets.official_split(name)
    np.testing.assert_array_equal(train, np.arange(info.train_rows))
    np.testing.assert_array_equal(test, np.arange(info.train_rows, info.N))


# --- where load looks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["regression", "."])
def test_load_reads_the_folder_of_a_task_and_a_flat_one(offline, monkeypatch, folder):
    X, y = small_set(monkeypatch)
    write_csv(offline / "here" / folder / "boston.csv.gz", X, y)
    monkeypatch.setenv("PEPCORE_DATA", str(offline / "here"))
    dataset = datasets.load("boston")
    assert np.array_equal(dataset.X, X)
    assert np.array_equal(dataset.y, y)
    assert dataset.info is datasets.registry["boston"]


def test_data_home_comes_before_the_environment_and_the_cache(offline, monkeypatch):
    X, y = small_set(monkeypatch)
    write_csv(offline / "mine" / "boston.csv.gz", X, y)
    write_csv(offline / "cache" / "pepcore" / "boston.csv.gz", X + 1, y)
    monkeypatch.setenv("PEPCORE_DATA", str(offline / "nowhere"))
    assert np.array_equal(datasets.load("boston", data_home=offline / "mine").X, X)
    with pytest.raises(datasets.DataError, match="other values"):
        datasets.load("boston")


def test_load_fetches_what_no_folder_has_and_does_so_once(offline, monkeypatch):
    import pooch

    X, y = small_set(monkeypatch)
    calls = []

    def retrieve(url, known_hash, fname, path, downloader):
        calls.append(url)
        path.mkdir(parents=True)
        np.savetxt(path / fname, np.column_stack([X, y]), header="a comment")
        return str(path / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    for _ in range(2):
        assert np.array_equal(datasets.load("boston").X, X)
    assert calls == ["https://example.org/three.txt"]


def test_a_set_rebuilt_from_its_original_format_passes_the_check(offline, monkeypatch):
    source = datasets.load("ionosphere", data_home=SMALL)
    original = origins.original_files(source.info, offline / "cache" / "pepcore")[0]
    original.parent.mkdir(parents=True)
    words = ["g" if label > 0 else "b" for label in source.y]
    original.write_text("\n".join(",".join([*map(str, row), word]) for row, word in zip(source.X, words)))
    rebuilt = datasets.load("ionosphere")
    assert np.array_equal(rebuilt.X, source.X)
    assert np.array_equal(rebuilt.y, source.y)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_missing_set_says_what_to_place_where(offline, monkeypatch):
    with pytest.raises(datasets.DataNotFoundError) as error:
        datasets.load("yacht")
    message = str(error.value)
    for part in [
        "no network in this test",
        str(offline / "cache" / "pepcore" / "regression" / "yacht.csv.gz"),
        "308 rows, 6 inputs",
        datasets.registry["yacht"].sha256,
        "PEPCORE_DATA",
        datasets.registry["yacht"].origin["urls"][0],
        str(offline / "cache" / "pepcore" / "originals" / "yacht" / "data.txt"),
        "not tried",
    ]:
        assert part in message
    monkeypatch.setenv("PEPCORE_DATA", str(offline / "mine"))
    with pytest.raises(datasets.DataNotFoundError, match=r"mine/regression/yacht\.csv\.gz"):
        datasets.load("yacht")


def test_missing_openml_set_names_its_number(offline):
    with pytest.raises(datasets.DataNotFoundError, match=r"(?s)mnist\.npz.*data set 554 of openml\.org"):
        datasets.load("mnist")


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'boston'"):
        datasets.load("bosten")
    with pytest.raises(ValueError, match="known are boston"):
        datasets.load("zzzzzz")
    with pytest.raises(ValueError, match="did you mean 'concrete'"):
        datasets.splits("concret")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda X, y: (X[:2], y[:2]), "2 rows of 2 inputs, but 'boston' has 3 of 2"),
        (lambda X, y: (X[:, :1], y), "3 rows of 1 inputs"),
        (lambda X, y: (X[::-1], y[::-1]), "other values, or its rows in another order"),
        (lambda X, y: (X + np.array([0, 1e-3]), y), "other values"),
    ],
)
def test_wrong_values_are_refused(offline, monkeypatch, damage, message):
    X, y = small_set(monkeypatch)
    write_csv(offline / "boston.csv.gz", *damage(X, y))
    with pytest.raises(datasets.DataError, match=message):
        datasets.load("boston", data_home=offline)


def test_wrong_class_counts_are_refused(offline, monkeypatch):
    X, _ = small_set(monkeypatch, task="binary", classes=(2, 1))
    write_csv(offline / "boston.csv.gz", X, [1, 1, 0])
    with pytest.raises(datasets.DataError, match=r"class counts \(1, 2\), expected \(2, 1\)"):
        datasets.load("boston", data_home=offline)


def test_a_corrupt_file_is_refused(offline):
    copy = offline / "regression" / "yacht.csv.gz"
    copy.parent.mkdir()
    shutil.copy(SMALL / "regression" / "yacht.csv.gz", copy)
    copy.chmod(0o644)
    assert len(datasets.load("yacht", data_home=offline).y) == 308
    damaged = bytearray(copy.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    copy.write_bytes(damaged)
    with pytest.raises(datasets.DataError, match=r"yacht.csv.gz"):
        datasets.load("yacht", data_home=offline)
    copy.write_bytes(b"not gzip at all")
    with pytest.raises(datasets.DataError, match="cannot be read as 'yacht'"):
        datasets.load("yacht", data_home=offline)


def test_official_split_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match="'boston' has no split of its own"):
        datasets.official_split("boston")


def test_generated_data_have_no_official_split():
    with pytest.raises(ValueError, match="'snelson_like' has no split of its own"):
        datasets.official_split(datasets.snelson_like(N=50))


# --- reading the formats of the sources -------------------------------------------------------------------------------


def test_parse_reads_words_comments_missing_values_and_column_choices():
    lines = ["7,B,1.5,yes", "8,O,?,no", "9,O,-2,no."]
    origin = {"inputs": [1, 2], "labels": ["no|no.", "yes"], "missing": "?"}
    X, y = origins.parse(lines, origin, {0: ("B", "O")})
    assert X.tolist() == [[0, 1.5], [1, -2]]
    assert y.tolist() == [1, 0]


def test_parse_reads_sparse_rows_and_leading_targets():
    X, y = origins.parse(
        ["+3 1:0.5 2:1", "1   1:-1 2:2e-3"], {"sparse": True, "target": 0, "labels": ["1", "2", "3"]}, {}
    )
    assert X.tolist() == [[0.5, 1], [-1, 0.002]]
    assert y.tolist() == [2, 0]
    with pytest.raises(ValueError, match="leaves out an index"):
        origins.parse(["1 1:3 3:4"], {"sparse": True}, {})


def test_parse_refuses_unknown_words_and_ragged_rows():
    with pytest.raises(ValueError, match="unknown categories"):
        origins.parse(["1,a", "2,c"], {"labels": ["a", "b"]}, {})
    with pytest.raises(ValueError, match="different numbers of fields"):
        origins.parse(["1,2", "1,2,3"], {}, {})


def test_an_original_with_a_header_and_words_of_its_own_is_read(tmp_path):
    origin = {"kind": "text", "urls": ["https://example.org/three.csv"], "header": True, "target": 2, "inputs": [0, 1],
              "labels": ["F", "M"], "text": {0: ["B", "O"]}}
    info = replace(datasets.registry["boston"], origin=origin, text={})
    original = origins.original_files(info, tmp_path)[0]
    original.parent.mkdir(parents=True)
    original.write_text("sp,size,sex\nB,2,M\nO,4,F\nB,6.5,M\n")
    X, y = origins.rebuild(info, tmp_path)
    assert X.tolist() == [[0, 2], [1, 4], [0, 6.5]] and y.tolist() == [1, 0, 1]


def test_images_in_two_parts_become_rows_of_both(tmp_path):
    parts = {"x_train": np.arange(8).reshape(2, 2, 2), "x_test": np.full((1, 2, 2), 9), "y_train": [3, 1], "y_test": [0]}
    np.savez(tmp_path / "images.npz", **parts)
    X, y = loading._read_npz(tmp_path / "images.npz")
    assert X.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [9, 9, 9, 9]] and X.dtype == np.float32 and y.tolist() == [3, 1, 0]


def test_a_set_of_openml_is_fetched_by_its_number_into_the_cache(tmp_path, monkeypatch):
    import sklearn.datasets

    def fetch(*, data_id, data_home, **options):
        assert (data_id, data_home) == (554, str(tmp_path))
        return SimpleNamespace(data=np.array([[0, 255], [7, 0]]), target=np.array(["5", "0"]))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    X, y = origins.rebuild(datasets.registry["mnist"], tmp_path)
    assert X.tolist() == [[0, 255], [7, 0]] and X.dtype == np.float32
    assert y.tolist() == [5, 0] and y.dtype == float


# --- splits and standardisation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "sizes"), [("sonar", (187, 21)), ("satellite", (1287, 5148)), ("crabs", (180, 20))])
def test_splits_partition_the_rows(name, sizes):
    for train, test in datasets.splits(name):
        assert (len(train), len(test)) == sizes
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(sum(sizes)))
    first, second = datasets.splits(name)[:2]
    assert not np.array_equal(first[1], second[1])


def test_splits_of_generated_data():
    train, test = datasets.splits(datasets.snelson_like(N=50))[3]
    assert (len(train), len(test)) == (45, 5)


@pytest.mark.parametrize("test", [np.ones(4), np.ones((2, 2)), np.ones((2, 1, 3))])
def test_standardise_refuses_other_columns(test):
    with pytest.raises(ValueError, match="both need the same columns"):
        datasets.standardise(np.ones((5, 3)), test)


@pytest.mark.parametrize("make", [datasets.toy_ard_gp, datasets.snelson_like, datasets.stream])
def test_a_negative_noise_is_refused(make):
    with pytest.raises(ValueError, match=r"noise = -1.0 must be at least 0"):
        make(noise=-1)


@pytest.mark.parametrize("name", ["rows", "block"])
def test_a_stream_of_nothing_is_refused_at_once(name):
    with pytest.raises(ValueError, match=f"{name} = 0 must be a whole number"):
        datasets.stream(**{name: 0})


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ([1.0, np.nan], r"train holds 1 value\(s\) that are NaN"),
        (np.array(["a", "b"]), "train must be an array of real numbers"),
        (np.zeros(0), r"train has shape \(0,\), expected \(N,\) or \(N, D\)"),
        (np.float64(3.0), r"train has shape \(\)"),
        (np.ma.masked_greater([1.0, 2.0, 100.0], 50), "train is a masked array"),
    ],
)
def test_standardise_refuses_what_has_no_mean(train, message):
    test = np.zeros(np.shape(train))
    for call in (lambda: datasets.standardise(train, test), lambda: datasets.location_scale(train)):
        with pytest.raises(ValueError, match=message):
            call()


def test_standardise_refuses_test_rows_that_are_no_numbers():
    with pytest.raises(ValueError, match="test holds 1 value"):
        datasets.standardise([1.0, 2.0], [np.nan])


def test_standardise_uses_the_training_rows_and_guards_constant_columns():
    rng = np.random.default_rng(0)
    train, test = rng.normal(5, 3, (200, 3)), rng.normal(5, 3, (50, 3))
    train[:, 1] = 0.1  # its standard deviation rounds to 1e-17, not to zero
    test[:, 1] = 0.3
    for array in (train, test):
        array.setflags(write=False)
    scaled, other = datasets.standardise(train, test)
    assert np.allclose(scaled.mean(0), 0, atol=1e-12)
    assert np.allclose(scaled.std(0), [1, 0, 1], atol=1e-12)
    assert np.allclose(other[:, 1], 0.2)
    mean, scale = datasets.location_scale(train)
    assert np.allclose(other * scale + mean, test)
    assert datasets.location_scale(np.arange(3.0)) == (1.0, pytest.approx(np.sqrt(2 / 3)))


# --- generators -------------------------------------------------------------------------------------------------------

GENERATORS = [
    datasets.toy_ard_gp,
    datasets.snelson_like,
    datasets.chain_1d,
    datasets.banana,
    datasets.factors,
]


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_repeat_themselves_and_only_for_the_same_seed(make):
    first, again, other = make(seed=1), make(seed=1), make(seed=2)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    assert first.X.ndim == 2
    assert first.y.shape == (len(first.X),)
    if first.task == "binary":
        assert set(first.y) <= {-1.0, 1.0}


@pytest.mark.parametrize("make", GENERATORS)
def test_generated_data_can_be_sent_to_another_process(make):
    dataset = make(seed=1)
    again = pickle.loads(pickle.dumps(dataset))
    assert np.array_equal(again.y, dataset.y)
    if "function" in dataset.truth:
        x = dataset.X[:, 0] if dataset.name == "snelson_like" else dataset.X
        assert np.array_equal(again.truth["function"](x), dataset.truth["f"])


@pytest.mark.parametrize(("make", "formula"), [
    (datasets.snelson_like, lambda x: 2 / 3 * np.sin(3 * x) + 0.5 * np.cos(1.3 * x + 1)),
    (partial(datasets.banana, steepness=2.0), lambda a, b: 2 * (b + 1 - a**2) / np.sqrt(1 + 4 * a**2)),
], ids=["snelson_like", "banana"])
def test_a_latent_function_is_its_formula(make, formula):
    data = make(seed=1, N=50)
    np.testing.assert_allclose(data.truth["f"], formula(*data.X.T))


@pytest.mark.parametrize(("make", "low", "high"), [(datasets.snelson_like, 0, 6), (datasets.chain_1d, -3, 3)])
def test_inputs_on_the_line_are_sorted_and_fill_their_interval(make, low, high):
    x = make(seed=1, N=500).X[:, 0]
    assert (np.diff(x) > 0).all()
    assert low <= x[0] < low + 0.1 and high - 0.1 < x[-1] <= high


def test_the_chain_is_drawn_with_the_kernel_it_says():
    assert datasets.chain_1d().truth["kernel"] == SquaredExponential(4.0, 1.0)


def test_lengthscales_are_log_uniform_between_one_and_five():
    """Five standard errors of the mean of 2000 logarithms."""
    drawn = np.concatenate([datasets.toy_ard_gp(seed, N=1).truth["kernel"].lengthscales for seed in range(400)])
    assert 1 <= drawn.min() < 1.02 and 4.9 < drawn.max() <= 5
    assert np.log(drawn).mean() / np.log(5) == pytest.approx(0.5, abs=5 / np.sqrt(12 * 2000))


def test_gp_draws_have_the_covariance_of_their_kernel():
    draws = np.array([datasets.toy_ard_gp(seed, N=2, D=1, lengthscales=[1.0]).truth["f"] for seed in range(4000)])
    # each draw has inputs of its own: E f² = 1, and over standard normal inputs E k(x, x') = 1/sqrt(3)
    assert (draws**2).mean() == pytest.approx(1, abs=0.06)
    assert draws.prod(1).mean() == pytest.approx(1 / np.sqrt(3), abs=0.06)


@pytest.mark.parametrize("make", [datasets.toy_ard_gp, datasets.snelson_like])
def test_regression_noise_has_its_variance(make):
    data = make(seed=3, N=1000)
    residual = data.y - data.truth["f"]
    assert residual.var() == pytest.approx(data.truth["noise"], rel=0.2)
    assert abs(residual.mean()) < 4 * np.sqrt(data.truth["noise"] / 1000)


def test_probit_labels_are_calibrated():
    data = datasets.banana(seed=0, N=20000)
    p = ndtr(data.truth["f"])
    assert abs(((data.y > 0) - p).mean()) < 4 * np.sqrt((p * (1 - p)).mean() / 20000)
    middle = np.abs(p - 0.7) < 0.1
    assert (data.y[middle] > 0).mean() == pytest.approx(p[middle].mean(), abs=0.05)
    on_parabola = np.column_stack([[-1.0, 0, 2], [0.0, -1, 3]])
    assert np.array_equal(data.truth["function"](on_parabola), np.zeros(3))


@pytest.mark.parametrize(("low", "high"), [(0, 0.3), (0.3, 0.7), (0.7, 1)])
def test_the_sides_on_which_theta_was_seen_are_calibrated(low, high):
    """Four standard errors of the share of y = +1 where its probability, Φ((θ − x)/scale), is between low and high."""
    data = datasets.factors(seed=0, N=20_000, scale=0.5)
    p = ndtr((data.truth["theta"] - data.X[:, 0]) / 0.5)
    inside = (p >= low) & (p <= high)
    error = np.sqrt((p * (1 - p))[inside].mean() / inside.sum())
    assert abs(((data.y > 0) - p)[inside].mean()) < 4 * error


def test_a_stream_repeats_itself_in_blocks_that_differ_and_has_the_noise_it_says():
    blocks = list(itertools.islice(datasets.stream(seed=0), 3))
    assert [block.X.shape for block in blocks] == [(10_000, 8)] * 3
    again = next(datasets.stream(seed=0))
    assert np.array_equal(again.y, blocks[0].y)
    assert not np.array_equal(blocks[0].X, blocks[1].X)
    assert sum(len(block.y) for block in datasets.stream(seed=0, rows=25, block=10)) == 25
    residual = np.concatenate([block.y - block.truth["f"] for block in blocks])
    assert residual.var() == pytest.approx(0.1, rel=0.05)


def test_stream_takes_a_generator_as_the_others_do():
    blocks = [next(datasets.stream(seed, rows=10)) for seed in (3, np.random.default_rng(3))]
    assert np.array_equal(blocks[0].y, blocks[1].y)


def test_stream_blocks_share_their_function():
    first, second = itertools.islice(datasets.stream(seed=4, D=2, block=2000), 2)
    # what the first block says of a point, its neighbours in the second one say too
    distance = ((second.X[:, None] - first.X[None]) ** 2).sum(-1)
    nearest = first.truth["f"][distance.argmin(1)]
    inside = distance.min(1) < 0.05**2
    assert inside.sum() > 500
    assert np.abs(nearest - second.truth["f"])[inside].max() < 0.3


def test_the_functions_of_streams_have_the_covariance_that_is_promised():
    """Variance one and exp(−r²/2) for inputs r lengthscales apart, over 4000 functions: five standard errors for both."""
    blocks = [next(datasets.stream(seed, rows=2, D=1, lengthscale=1.5, features=32)) for seed in range(4000)]
    f, X = (np.array([part(block) for block in blocks]) for part in (lambda b: b.truth["f"], lambda b: b.X[:, 0]))
    covariance = np.exp(-0.5 * ((X[:, 0] - X[:, 1]) / 1.5) ** 2)
    for off in ((f**2).mean(axis=1) - 1, f[:, 0] * f[:, 1] - covariance):
        assert abs(off.mean()) < 5 * off.std() / np.sqrt(4000)


def test_a_block_depends_on_seed_number_and_size_alone():
    few, many = (list(datasets.stream(3, rows=rows, block=10)) for rows in (25, 60))
    assert all(np.array_equal(a.X, b.X) and np.array_equal(a.y, b.y) for a, b in zip(few[:2], many, strict=False))
    assert [len(block.y) for block in few] == [10, 10, 5]


@pytest.mark.parametrize("N", [-1, 0, 2.5, "many"])
@pytest.mark.parametrize("make", GENERATORS)
def test_generators_refuse_numbers_of_rows_that_are_none(make, N):
    with pytest.raises(ValueError, match=r"N .*must be a whole number"):
        make(N=N)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (datasets.toy_ard_gp, {"D": 0}, "D = 0 must be"),
        (datasets.stream, {"D": -1}, "D = -1 must be"),
        (datasets.stream, {"D": 2.5}, "D = 2.5 must be"),
        (datasets.stream, {"D": 0}, "D = 0 must be"),
        (datasets.toy_ard_gp, {"lengthscales": ["a"] * 5}, "lengthscales must be an array of real numbers"),
        (datasets.banana, {"steepness": np.nan}, "steepness = nan"),
        (datasets.factors, {"scale": np.nan}, "scale = nan"),
        (datasets.factors, {"scale": 0}, "scale = 0.0 must be positive"),
        (datasets.stream, {"lengthscale": np.nan}, "lengthscale = nan"),
        (datasets.stream, {"lengthscale": 0.0}, "lengthscale = 0.0 must be positive"),
        (datasets.stream, {"features": 0}, "features = 0 must be"),
    ],
)
def test_generators_refuse_settings_that_would_give_nan(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_a_scale_that_is_no_number_is_refused(factor):
    with pytest.raises(ValueError, match="train varies so much or so little"):
        datasets.location_scale(factor * np.arange(3.0))


def test_a_bundled_set_without_scikit_learn_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(datasets.DataNotFoundError, match=r'pip install "pepcore\[data\]"'):
        datasets.load("diabetes")


def test_a_name_that_is_no_text_is_unknown():
    with pytest.raises(ValueError, match="there is no data set"):
        datasets.load(["diabetes"])


def test_a_data_set_has_a_short_repr_and_its_facts_a_hash():
    toy = datasets.snelson_like(seed=0, N=50)
    assert repr(toy).endswith(", regression, X (50, 1), y (50,))") and len({datasets.registry["boston"]}) == 1
