"""Pictures and curves of a training run, read back from its event files as TensorBoard reads them."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from templates import corpus, layerless
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from variants import variants

from jacana_torch import corpora
from jacana_torch.cli import hydra
from jacana_torch.evaluate.calibration import Reliability, reliability
from jacana_torch.model import persist
from jacana_torch.train import diagnostics, pictures
from jacana_torch.train.tracking import TensorBoard
from jacana_torch.types import Alignment, Example, Sentence, SentencePair

FEATURES = ["annotate=none", "features=[string,position]", "logger.every=5", "logger.examples=2"]
PARTS = ("forward", "backward", "final")


def trained(folder: Path, *overrides: str) -> Path:
    for name, n, seed in (("train", 30, 1), ("dev", 10, 2)):
        corpora.write(layerless(corpus(n, seed=seed)), str(folder / f"{name}.jsonl"), "jsonl")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    files = [f"data.root={folder}", "data.train=[train.jsonl]", "data.dev=[dev.jsonl]"]
    try:
        hydra.train(
            [*files, *FEATURES, f"hydra.run.dir={folder}/run", f"hydra.sweep.dir={folder}/sweep", *overrides]
        )
    finally:
        root.handlers[:], root.level = handlers, level
    return folder / "run"


def read(folder: Path) -> EventAccumulator:
    kinds = ["scalars", "images", "tensors"]
    return EventAccumulator(str(folder), size_guidance=dict.fromkeys(kinds, 0)).Reload()


def pixels(event) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(event.encoded_image_string)).convert("RGB"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("fitted"))


@pytest.fixture(scope="module")
def validated(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("validated"), "cv=2", "workers=1")


def outcomes_of(picture: np.ndarray, m: int, n: int) -> dict[tuple[int, int], str]:
    """What each square of a picture shows, by its colour."""
    size = 14
    picture = picture[picture.shape[0] - m * size - 1 :, picture.shape[1] - n * size - 1 :]  # without its words
    assert picture.shape == (m * size + 1, n * size + 1, 3)
    shown = {}
    for i in range(m):
        for j in range(n):
            square = picture[i * size + 1 : (i + 1) * size, j * size + 1 : (j + 1) * size].reshape(-1, 3)
            coloured = {tuple(int(v) for v in p) for p in square if p.tolist() != [255, 255, 255]}
            assert len(coloured) <= 1
            if coloured:
                shown[i, j] = {(0, 158, 115): "correct", (0, 114, 178): "missed", (213, 94, 0): "spurious"}[
                    coloured.pop()
                ]
    return shown


def expected_outcomes(gold: set, found: set) -> dict:
    return {
        link: "correct" if link in gold & found else "missed" if link in gold else "spurious"
        for link in gold | found
    }


def linked(m: int, n: int):
    return st.sets(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)))


@given(st.data(), st.integers(1, 9), st.integers(1, 9))
def test_every_square_shows_whether_its_link_is_correct(data, m, n):
    gold, found = data.draw(linked(m, n)), data.draw(linked(m, n))
    picture = pictures.matrix(*(pictures.cells(Alignment(m, n, frozenset(links))) for links in (gold, found)))
    assert picture.dtype == np.uint8 and outcomes_of(picture, m, n) == expected_outcomes(gold, found)


def test_shapes_differ_without_colours():
    masks = {kind: mask.tobytes() for kind, mask in pictures.SHAPES.items()}
    assert len(set(masks.values())) == 3
    full, frame, cross = (pictures.SHAPES[kind] for kind in ("correct", "missed", "spurious"))
    middle = tuple(size // 2 for size in full.shape)
    assert full[middle] and cross[middle] and not frame[middle]
    assert frame.sum() < 0.8 * full.sum() and cross.sum() < 0.7 * full.sum()


def test_the_longest_sentences_make_no_giant_pictures_and_empty_ones_are_drawn():
    many = np.zeros((10_000, 3), dtype=bool)
    assert pictures.matrix(many, many).shape == (pictures.MOST * pictures.CELL + 1, 3 * pictures.CELL + 1, 3)
    assert pictures.matrix(many[:0], many[:0]).shape == (1, 3 * pictures.CELL + 1, 3)


def test_possible_links_are_drawn_if_they_count():
    alignment = Alignment(2, 2, frozenset({(0, 0)}), frozenset({(1, 1)}))
    assert pictures.cells(alignment).tolist() == [[True, False], [False, False]]
    assert pictures.cells(alignment, "all").tolist() == [[True, False], [False, True]]


def test_bars_are_as_high_as_the_share_in_gold():
    curve = Reliability(np.array([0, 0.5, 1]), np.array([3, 0]), np.array([0.2, 0]), np.array([0.6, 0]))
    inner = pictures.reliability(curve)[pictures.BORDER : -pictures.BORDER, pictures.BORDER : -pictures.BORDER]
    column = inner[::-1, 10].tolist()  # from below; the diagonal is elsewhere than at these heights
    shown = [column[round(height * pictures.SIDE)] for height in (0.1, 0.3, 0.5, 0.65)]
    assert shown[0] == list(pictures.MISSED) and shown[1] == shown[2] == list(pictures.SPURIOUS)
    assert shown[3] == list(pictures.PAPER)
    assert column[round(0.2 * pictures.SIDE)] == list(pictures.INK) != column[round(0.6 * pictures.SIDE)]
    empty = inner[:, 3 * pictures.SIDE // 4 + 5]
    assert not (empty == pictures.MISSED).all(axis=1).any()


WORDS = st.lists(st.text(st.characters(categories=["Lu", "Ll", "Nd"], max_codepoint=0xFF), min_size=1), max_size=7)


@given(WORDS, WORDS)
def test_words_stand_beside_their_rows_and_above_their_columns(rows, columns):
    nothing = np.zeros((len(rows), len(columns)), dtype=bool)
    matrix = pictures.matrix(nothing, nothing)
    shown = pictures.with_words(matrix, rows, columns)
    top, left = (size - inner for size, inner in zip(shown.shape[:2], matrix.shape[:2], strict=True))
    assert np.array_equal(shown[top:, left:], matrix) and (shown[:top, :left] == 255).all()
    for words, margin in ((rows, shown[top:, :left]), (columns, shown[:top, left:].transpose(1, 0, 2))):
        inked = (margin < 128).any(axis=(1, 2))
        bands = [inked[k * 14 + 2 : (k + 1) * 14 - 1] for k in range(len(words))]
        assert all(band.any() for band in bands) and not inked[::14].any()
        wide = (margin < 128).any(axis=(0, 2))
        assert not wide[:2].any() and not wide[-2:].any(), "a word is cut off"


def test_a_row_s_word_ends_and_a_column_s_begins_at_the_matrix():
    nothing = np.zeros((2, 2), dtype=bool)
    shown = pictures.with_words(pictures.matrix(nothing, nothing), ["l" * 12, "l"], ["l" * 12, "l"]) < 128
    top, left = (size - 29 for size in shown.shape[:2])
    for short in (shown[top + 14 :, :left], shown[:top, left + 14 :][::-1].transpose(1, 0, 2)[:, ::-1]):
        (across,) = np.nonzero(short.any(axis=(0, 2)))
        assert across.min() > short.shape[1] - 10, "the short one is where the matrix is"


def test_long_words_are_cut_and_rows_that_are_not_drawn_have_none():
    many = np.zeros((1000, 1), dtype=bool)
    matrix = pictures.matrix(many, many)
    shown = pictures.with_words(matrix, ["w" * 5000] * 1000, ["x"])
    assert shown.shape[0] - matrix.shape[0] < 30 and shown.shape[1] < 250


def test_numbers_stand_at_their_heights():
    curve = Reliability(np.array([0, 1]), np.array([0]), np.array([0]), np.array([0]))
    bare = pictures.reliability(curve)
    shown = pictures.with_scales(bare, "a", "b")
    height, left = bare.shape[0], shown.shape[1] - bare.shape[1]
    assert np.array_equal(shown[:height, left:], bare)
    upwards = [ink(shown[188 - k * 36 - 7 :][:14, left - 20 : left]) for k in range(6)]
    across = [ink(shown[height : height + 14, left + 8 + k * 36 - 10 :][:, :20]) for k in range(6)]
    assert all(one.size and np.array_equal(one, other) for one, other in zip(upwards, across, strict=True))
    assert len({number.tobytes() for number in across}) == 6
    assert np.array_equal(across[0][:, :5], across[0][:, -5:]), "0.0 has the same digit twice"


def ink(area: np.ndarray) -> np.ndarray:
    """What is written, without the paper around it."""
    dark = (area < 128).any(axis=2)
    (rows, columns) = (np.flatnonzero(dark.any(axis=axis)) for axis in (1, 0))
    return dark[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def test_matrices_are_written_at_intervals_and_show_the_same_pairs(fitted):
    events = read(fitted)
    tags = {tag for tag in events.Tags()["images"] if tag.startswith("matrix_")}
    assert tags == {f"matrix_{n}/{part}" for n in range(2) for part in PARTS}
    model, dev = persist.load(fitted / "model"), layerless(corpus(10, seed=2))[:2]
    found = model.align([e.pair for e in dev])
    iterations = json.loads((fitted / "model" / "signature.json").read_text())["iterations"]
    for number, (example, alignment) in enumerate(zip(dev, found, strict=True)):
        size = len(example.pair.source), len(example.pair.target)
        last = events.Images(f"matrix_{number}/final")[-1]
        assert outcomes_of(pixels(last), *size) == expected_outcomes(set(example.gold.sure), set(alignment.sure))
        for part in ("forward", "backward"):
            drawn = events.Images(f"matrix_{number}/{part}")
            assert [e.step for e in drawn] == [1, *range(5, iterations[part] + 1, 5)]
            for event in drawn:  # gold is the same at every step, whatever is found
                kinds = outcomes_of(pixels(event), *size)
                assert {link for link, kind in kinds.items() if kind != "spurious"} == set(example.gold.sure)


def test_two_chains_give_the_probability_of_every_cell(fitted):
    """They must hold the confidence of each link that `align` finds."""
    model, dev = persist.load(fitted / "model"), layerless(corpus(10, seed=2))
    found = model.aligner.align([e.pair for e in dev])
    cells = diagnostics.CellProbabilities()
    cells.add(model.aligner, dev, found)
    assert (
        len(cells.probabilities)
        == len(cells.outcomes)
        == sum(len(e.pair.source) * len(e.pair.target) for e in dev)
    )
    assert cells.outcomes.sum() == sum(len(e.gold.sure) for e in dev)
    confidences = [p for alignment in found for p in alignment.confidence.values()]
    assert confidences and all(np.abs(cells.probabilities - p).min() < 1e-9 for p in confidences)


@pytest.mark.parametrize("which", ["fitted", "validated"])
def test_curves_are_written_at_the_end(which, request):
    folder = request.getfixturevalue(which)
    events = read(folder)
    (curve,) = (np.asarray(_tensor(e)) for e in events.Tensors("links"))
    true_positives, false_positives, _, false_negatives, precision, recall = curve
    examples = layerless(corpus(30, seed=1)) if which == "validated" else layerless(corpus(10, seed=2))
    gold = sum(len(e.gold.sure) for e in examples)
    assert (true_positives + false_negatives == gold).all() and recall[0] == 1
    assert true_positives[0] + false_positives[0] == sum(len(e.pair.source) * len(e.pair.target) for e in examples)
    assert (np.diff(recall) <= 0).all() and precision[len(precision) // 2] > precision[0]
    (error,) = events.Scalars("calibration/expected_error")
    assert 0 <= error.value <= events.Scalars("calibration/worst_bin")[0].value <= 1
    (drawn,) = events.Images("calibration/reliability")
    assert pixels(drawn).shape == (235, 235, 3)
    assert (
        "| 0.9 to 1.0 |"
        in events.Tensors("calibration/reliability/text_summary")[0].tensor_proto.string_val[0].decode()
    )
    assert {f"matrix_{n}/final" for n in range(2)} <= set(events.Tags()["images"])


def _tensor(event) -> np.ndarray:
    from tensorboard.util.tensor_util import make_ndarray

    return make_ndarray(event.tensor_proto)


def test_the_calibration_error_is_that_of_the_model(fitted):
    model, dev = persist.load(fitted / "model"), layerless(corpus(10, seed=2))
    cells = diagnostics.CellProbabilities()
    cells.add(model.aligner, dev, model.aligner.align([e.pair for e in dev]))
    candidate = cells.probabilities >= diagnostics.CANDIDATE
    wanted = reliability(cells.probabilities[candidate], cells.outcomes[candidate]).error
    assert read(fitted).Scalars("calibration/expected_error")[0].value == pytest.approx(wanted, abs=1e-6)


class Aligner:
    """An aligner without a posterior of each cell."""


def _example(*gold: tuple[int, int], possible: tuple = ()) -> Example:
    pair = SentencePair(Sentence(("a", "b")), Sentence(("x", "y")))
    return Example(pair, Alignment(2, 2, frozenset(gold), frozenset(possible)))


@pytest.mark.parametrize(
    "links, hits", [("sure", [True, False, False, False]), ("all", [True, False, False, True])]
)
def test_cells_without_a_confidence_count_as_0(links, hits):
    cells = diagnostics.CellProbabilities(links)
    found = Alignment(2, 2, frozenset({(0, 0), (0, 1)}), confidence={(0, 0): 0.9, (0, 1): 0.6})
    unaligned = Example(SentencePair(Sentence(("a",)), Sentence(("x",))))
    cells.add(Aligner(), [_example((0, 0), possible=((1, 1),)), unaligned], [found, Alignment(1, 1)])
    assert cells.probabilities.tolist() == [0.9, 0.6, 0, 0] and cells.outcomes.tolist() == hits
    assert cells.reliability().count.sum() == 2


def test_the_reliability_curve_is_of_cells_that_are_not_nearly_impossible():
    cells = diagnostics.CellProbabilities()
    confidence = {(0, 0): 0.9, (0, 1): 0.011, (1, 0): 0.009}
    cells.add(Aligner(), [_example((0, 0))], [Alignment(2, 2, frozenset(confidence), confidence=confidence)])
    assert cells.reliability().count.tolist() == [1, *[0] * 8, 1]


def test_without_confidences_there_are_no_curves(tmp_path):
    cells, board = diagnostics.CellProbabilities(), TensorBoard(tmp_path)
    cells.add(Aligner(), [_example((0, 0))], [Alignment(2, 2, frozenset({(0, 0)}))])
    cells.show(board)
    board.close()
    assert not any(read(tmp_path).Tags()[kind] for kind in ("scalars", "images", "tensors"))


def test_nothing_is_computed_or_drawn_without_tensorboard(tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("this takes time, and is not written")

    monkeypatch.setattr(diagnostics.CellProbabilities, "measured", never)
    monkeypatch.setattr(pictures, "matrix", never)
    monkeypatch.setattr(pictures, "reliability", never)
    for overrides in (["logger=none", "logger.every=5"], ["logger=none", "cv=2", "workers=1"]):
        assert not list(trained(tmp_path, *overrides, "logger.examples=2").glob("events*"))


SWEEPS = {
    "trainer.l2=1,4": ("trainer.l2", {1.0, 4.0}),
    "drop=[],[position]": ("drop", {"[]", "[position]"}),
}


@pytest.mark.parametrize("sweep", variants(SWEEPS))
def test_a_sweep_can_be_read_in_tensorboard_alone(sweep, tmp_path):
    """The backend of the HParams tab must give the settings and the outcome of every run."""
    trained(tmp_path, "-m", "cv=2", "workers=1", sweep)
    setting, values = SWEEPS[sweep]
    groups = hparams_table(tmp_path / "sweep")
    assert len(groups) == 2
    shown = {}
    for group in groups:
        value = group.hparams[setting]
        metrics = {m.name.tag: m.value for m in group.sessions[0].metric_values}
        shown[value.string_value or value.number_value] = (group.sessions[0].name, metrics)
    assert set(shown) == values
    for name, metrics in shown.values():
        final = json.loads((tmp_path / "sweep" / name / "scores.json").read_text())["grow_diag_final"]
        assert metrics["outcome/f1"] == pytest.approx(final["f1"], abs=1e-6)
        assert metrics["outcome/exact"] == pytest.approx(final["exact"], abs=1e-6)


def hparams_table(folder: Path):
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

    runs = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(folder)).Reload()
    context = backend_context.Context(
        TBContext(data_provider=data_provider.MultiplexerDataProvider(runs, str(folder)))
    )
    request = RequestContext()
    experiment = context.experiment_from_metadata(
        request,
        "",
        True,
        context.hparams_metadata(request, ""),
        context.hparams_from_data_provider(request, "", None),
    )
    query = api_pb2.ListSessionGroupsRequest(slice_size=100, include_metrics=True)
    query.allowed_statuses.extend(api_pb2.Status.values())
    for info in experiment.metric_infos:
        query.col_params.add(metric=info.name)
    for info in experiment.hparam_infos:
        query.col_params.add(hparam=info.name, include_in_result=True)
    return list_session_groups.Handler(request, context, "", query).run().session_groups
