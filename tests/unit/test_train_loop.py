"""The training loop: folds, scores, and the traces of a run, read back from its event files."""

from __future__ import annotations

import html
import json
import logging
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from templates import corpus, layerless
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from jacana_torch import corpora, symmetrize
from jacana_torch.aligners.base import Step, TrainingReport
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.cli import hydra
from jacana_torch.errors import ConfigError
from jacana_torch.evaluate import score
from jacana_torch.train import diagnostics, loop
from jacana_torch.train.cross_validation import cross_validate
from jacana_torch.types import Alignment, Example, Sentence, SentencePair


@pytest.fixture(scope="module")
def traced(tmp_path_factory) -> tuple[Path, EventAccumulator]:
    """A run with dev pairs, and its event files as TensorBoard reads them."""
    folder = tmp_path_factory.mktemp("traced")
    for name, n, seed in (("train", 30, 1), ("dev", 10, 2)):
        corpora.write(layerless(corpus(n, seed=seed)), str(folder / f"{name}.jsonl"), "jsonl")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    overrides = [f"data.root={folder}", "data.train=[train.jsonl]", "data.dev=[dev.jsonl]", "annotate=none"]
    overrides += ["features=[string,position,distortion]", "logger.every=5", "logger.examples=3", "trainer.l2=3"]
    overrides += ["symmetrize=grow_diag"]
    try:
        hydra.train([*overrides, f"hydra.run.dir={folder}/run"])
    finally:
        root.handlers[:], root.level = handlers, level
    events = EventAccumulator(
        str(folder / "run"), size_guidance=dict.fromkeys(["scalars", "histograms", "tensors"], 0)
    )
    return folder / "run", events.Reload()


def iterations(traced) -> dict[str, int]:
    return json.loads((traced[0] / "model" / "signature.json").read_text())["iterations"]


def test_every_iteration_writes_its_loss_and_gradient_norm(traced):
    events = traced[1]
    for part, last in iterations(traced).items():
        loss, norm = events.Scalars(f"loss/{part}"), events.Scalars(f"gradient_norm/{part}")
        assert [e.step for e in loss] == [e.step for e in norm] == list(range(1, last + 1))
        assert loss[-1].value < loss[0].value and norm[-1].value < norm[0].value
        assert all(b.value <= a.value for a, b in zip(loss, loss[1:], strict=False))


def test_dev_scores_are_written_for_every_direction_and_symmetrizer(traced):
    events = traced[1]
    final = json.loads((traced[0] / "scores.json").read_text())
    assert set(final) == set(symmetrize.functions())
    for name in final:
        for key in ("precision", "recall", "f1", "exact"):
            points = events.Scalars(f"dev/{key}/{name}")
            assert len(points) >= 3 and all(0 <= point.value <= 1 for point in points)
            assert points[-1].value == pytest.approx(final[name][key], abs=1e-6)
    forward = [e.step for e in events.Scalars("dev/f1/forward")]
    assert forward[:3] == [1, 5, 10]


def test_weights_are_written_by_family(traced):
    tags = traced[1].Tags()["histograms"]
    families = ("string", "position", "distortion")
    assert sorted(tags) == sorted(f"weights/{part}/{f}" for part in ("forward", "backward") for f in families)
    columns = traced[1].Histograms("weights/forward/position")[-1].histogram_value.num
    assert columns == sum(name.startswith("position.") for name in forward_names(traced))


def forward_names(traced) -> list[str]:
    from jacana_torch.model import persist

    return persist.load(traced[0] / "model").aligner.forward.names


def test_alignments_are_written_as_text(traced):
    events = traced[1]
    texts = [tag for tag in events.Tags()["tensors"] if tag.startswith("alignments/")]
    assert len(texts) == 3
    shown = events.Tensors("alignments/0/text_summary")[0].tensor_proto.string_val[0].decode()
    first = layerless(corpus(10, seed=2))[0].pair
    assert str(first.source) in shown and str(first.target) in shown
    assert any(b"| correct |" in events.Tensors(tag)[0].tensor_proto.string_val[0] for tag in texts)


def test_settings_and_outcome_are_written_to_compare_runs(traced):
    events = traced[1]
    final = json.loads((traced[0] / "scores.json").read_text())
    assert events.Scalars("outcome/union_f1")[0].value == pytest.approx(final["union"]["f1"], abs=1e-6)
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    content = HParamsPluginData.FromString(
        events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    )
    given = content.session_start_info.hparams
    assert given["trainer.l2"].number_value == 3 and given["families"].string_value == "string,position,distortion"


def test_scoring_while_training_computes_features_once(monkeypatch):
    """Dev is scored at each step, and its features are computed once per direction."""
    from jacana_torch.aligners.crf import Crf
    from jacana_torch.features.families.string import String

    counted = []

    class Counting(String):
        def __call__(self, grid):
            counted.append(len(grid.pairs))
            return super().__call__(grid)

    def direction():
        return Crf({"string": Counting()}, max_iterations=12)

    seen = Seen()
    watch = diagnostics.Monitor(seen, corpus(7, seed=2), every=1)
    Bidirectional(direction(), direction()).fit(corpus(20), corpus(7, seed=2), watch)
    assert sum(counted) == 2 * (20 + 7)  # pairs
    assert sum("dev/f1/union" in values for values, _ in seen.figures) > 5


@dataclass
class Seen:
    """Keeps what it gets."""

    figures: list = field(default_factory=list)
    texts: dict = field(default_factory=dict)

    def scalars(self, values, step):
        self.figures.append((dict(values), step))

    def text(self, name, markdown, step):
        self.texts[name] = markdown

    def histogram(self, name, values, step): ...

    def image(self, name, pixels, step): ...


@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 5))
def test_every_example_is_in_one_fold_and_not_in_its_training_data(n, k, seed):
    if k > n:
        with pytest.raises(ConfigError, match=f"cv={k}"):
            list(loop.folds(n, k, seed))
        return
    tested = []
    for train, test in loop.folds(n, k, seed):
        assert not set(train) & set(test) and len(train) + len(test) == n
        assert abs(len(test) - n / k) < 1
        tested += test.tolist()
    assert sorted(tested) == list(range(n))
    assert [t.tolist() for _, t in loop.folds(n, k, seed)] == [t.tolist() for _, t in loop.folds(n, k, seed)]


@dataclass
class Remembering:
    """Links the pairs that it was trained on, and no others."""

    known: set = field(default_factory=set)
    interrupted: bool = False
    requires: tuple[str, ...] = ()

    def fit(self, examples, dev=(), watch=None):
        self.known = {e.pair.id for e in examples}
        return TrainingReport(interrupted=self.interrupted)

    def align(self, pairs):
        return [
            Alignment(len(p.source), len(p.target), frozenset({(0, 0)} if p.id in self.known else ()))
            for p in pairs
        ]

    def state(self):
        return {}

    def restore(self, state):
        pass


def test_cross_validation_aligns_pairs_by_models_that_did_not_see_them():
    examples = corpus(23)
    found, alignments = cross_validate(Remembering, examples, 5)
    assert not any(a.sure for a in alignments["aligned"]) and found["aligned"].pairs == 23
    assert [a.n_source for a in alignments["aligned"]] == [len(e.pair.source) for e in examples]
    with pytest.raises(KeyboardInterrupt):
        cross_validate(lambda: Remembering(interrupted=True), examples, 5)


def test_scores_are_those_of_evaluate_by_name():
    examples = corpus(12)
    gold = [e.gold for e in examples]
    empty = [Alignment(a.n_source, a.n_target) for a in gold]
    found = loop.scores(examples, {"forward": gold, "backward": empty})
    assert found["forward"] == score(gold, gold) and found["backward"].f1 == 0
    lines = loop.table(found).splitlines()
    assert lines[1].split() == ["forward", "100.00", "100.00", "100.00", "100.00"]
    assert lines[2].split() == ["backward", "0.00", "0.00", "0.00", "0.00"] and "n:12" in lines[3]


@dataclass
class Always:
    """A direction that gives every pair the same links."""

    links: tuple
    requires: tuple[str, ...] = ()

    def align(self, pairs):
        return [Alignment(len(p.source), len(p.target), frozenset(self.links)) for p in pairs]

    def fit(self, examples, dev=(), watch=None):
        return TrainingReport()

    def state(self):
        return {}

    def restore(self, state):
        pass


def first_link(forward, backward):
    return Alignment(forward.n_source, forward.n_target, frozenset(sorted(forward.sure)[:1]))


def test_predictions_are_named_by_symmetrizer_and_include_the_models_own():
    pair = SentencePair(Sentence(("a", "b", "c")), Sentence(("x", "y")))
    example = Example(pair, Alignment(3, 2))
    both = Bidirectional(Always(((0, 0), (2, 1))), Always(((0, 0), (1, 1))), "grow-diag")
    found = loop.predictions(both, [example])
    assert set(found) == set(symmetrize.functions()) and loop.output_name(both) == "grow_diag"
    assert found["forward"][0].links == [(0, 0), (2, 1)] and found["backward"][0].links == [(0, 0), (1, 1)]
    assert found["intersection"][0].links == [(0, 0)] and found["union"][0].links == [(0, 0), (1, 1), (2, 1)]
    assert loop.output_name(Bidirectional(Always(()), Always(()), partial(symmetrize.union))) == "union"
    own = Bidirectional(both.forward, both.backward, first_link)
    assert loop.predictions(own, [example])["first_link"] == own.align([pair]) != found["union"]
    assert loop.predictions(Remembering(), [example]) == {"aligned": [Alignment(3, 2)]}


def test_directions_are_paired_at_equal_iterations():
    """Forward is scored first. Backward's iteration 10 joins forward's 10, and its 30 forward's last."""
    dev = [Example(SentencePair(Sentence(("a", "b")), Sentence(("x", "y"))), Alignment(2, 2, frozenset({(0, 0)})))]
    seen = Seen()
    watch = diagnostics.Monitor(seen, dev, every=10)
    right, wrong = Always(((0, 0),)), Always(((1, 1),))
    for iteration, aligner in ((1, wrong), (10, wrong), (20, right)):
        watch(Step("forward", iteration, 1.0, 1.0, aligner))
    for iteration in (1, 10, 30):
        watch(Step("backward", iteration, 1.0, 1.0, right))
    union = {step: values["dev/recall/union"] for values, step in seen.figures if "dev/recall/union" in values}
    precision = {step: v["dev/precision/union"] for v, step in seen.figures if "dev/precision/union" in v}
    assert union == {1: 1.0, 10: 1.0, 30: 1.0} and precision == {1: 0.5, 10: 0.5, 30: 1.0}


def test_an_alignment_as_text_marks_links_as_correct_missed_or_spurious():
    pair = SentencePair(Sentence(("a|b", "c")), Sentence(("x", "y")))
    shown = diagnostics.as_markdown(
        Example(pair, Alignment(2, 2, frozenset({(0, 0), (1, 1)}))), Alignment(2, 2, frozenset({(0, 0), (1, 0)}))
    )
    assert "| a\\|b | x | correct |" in shown and "| c | x | spurious |" in shown and "| c | y | missed |" in shown


def test_possible_links_are_shown_if_they_count():
    pair = SentencePair(Sentence(("a", "b")), Sentence(("x", "y")))
    example = Example(pair, Alignment(2, 2, frozenset({(0, 0)}), frozenset({(1, 1)})))
    assert "| b | y |" not in diagnostics.as_markdown(example, Alignment(2, 2))
    seen = Seen()
    diagnostics.Monitor(seen, links="all").show(seen, [Alignment(2, 2)], [example])
    assert "| b | y | missed |" in seen.texts["alignments/0"]


@hypothesis.example(["<b>", "&amp;"])
@given(st.lists(st.text(st.sampled_from("ab1.*_|\\`<>&[]()#+-!~:=\"'"), min_size=1), min_size=1, max_size=4))
def test_tensorboard_shows_every_token_as_it_is(tokens):
    """TensorBoard's own Markdown reader makes the page, and the standard library decodes it as a browser would."""
    from tensorboard.plugin_util import markdown_to_safe_html

    sentence = Sentence(tuple(tokens))
    gold = Alignment(len(tokens), len(tokens), frozenset((k, k) for k in range(len(tokens))))
    page = markdown_to_safe_html(diagnostics.as_markdown(Example(SentencePair(sentence, sentence), gold), gold))
    paragraphs, cells = ([html.unescape(x) for x in re.findall(f"<{t}>(.*?)</{t}>", page)] for t in ("p", "td"))
    assert paragraphs == [" ".join(tokens)] * 2 and cells == [
        x for token in tokens for x in (token, token, "correct")
    ]


def test_an_aligner_that_learns_nothing_is_no_error(caplog):
    @dataclass
    class Fixed:
        requires: tuple[str, ...] = ()

        def align(self, pairs):
            return []

    with caplog.at_level("INFO"):
        report = loop.fit(Fixed(), corpus(2))
    assert report.converged and "nothing to train in Fixed" in caplog.text


def test_reports_of_two_parts_are_one():
    one = TrainingReport({"forward": 1.0}, {"forward": 3}, True, False, 2, 10, ("a",))
    other = TrainingReport({"backward": 2.0}, {"backward": 4}, False, True, 1, 10, ("b",))
    assert one + other == TrainingReport(
        {"forward": 1.0, "backward": 2.0}, {"forward": 3, "backward": 4}, False, True, 3, 20, ("a", "b")
    )


def test_a_seed_gives_the_folds_and_another_gives_others():
    first, second = (np.concatenate([t for _, t in loop.folds(50, 5, seed)]) for seed in (1, 2))
    assert not np.array_equal(first, second)
