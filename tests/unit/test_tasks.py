"""tasks/: scores, features, metrics and fitting; readers of data sets; `compare task=`."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacana_torch.cli import main
from jacana_torch.errors import CorpusError, JacanaError
from jacana_torch.tasks import data, features, fitted, metrics, scores
from jacana_torch.tasks.content import content, weight
from jacana_torch.types import Alignment, Sentence, SentencePair

PAIR = SentencePair(
    Sentence("the red barn , built in 1901 .".split()), Sentence("a barn built in 1902 not".split())
)
LINKS = Alignment(8, 6, frozenset({(2, 1), (4, 2), (5, 3), (6, 4)}), confidence={(2, 1): 0.5, (6, 4): 0.25})

FEW = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.booleans()), min_size=1, max_size=8)


def test_scores_count_content_words():
    source, target = scores.shares(PAIR, LINKS)
    assert content(PAIR.target) == [None, "barn", "built", None, "1902", None]
    assert (source, target) == (3 / 4, 1.0)
    assert scores.normalised(PAIR, LINKS) == pytest.approx((0.5 + 1 + 1 + 0.25) / 6)
    assert weight("the") < weight("barn") <= weight("qwertz") == 1


@given(FEW)
def test_the_threshold_is_the_best_of_all(rows):
    values, labels = np.array([v for v, _ in rows]), np.array([float(t) for _, t in rows])
    best = fitted.threshold(values, labels)
    right = ((values > best) == (labels > 0)).mean()
    every = [((values > t) == (labels > 0)).mean() for t in [-1, *(values + 0.1)]]
    assert right == pytest.approx(max(every))


@given(FEW.filter(lambda rows: any(t for _, t in rows)))
def test_average_precision_by_its_definition(rows):
    values, labels = [v for v, _ in rows], [t for _, t in rows]
    ranked = [labels[k] for k in sorted(range(len(rows)), key=lambda k: (-values[k], k))]
    hits = [sum(ranked[: k + 1]) / (k + 1) for k in range(len(ranked)) if ranked[k]]
    assert metrics.average_precision(labels, values) == pytest.approx(sum(hits) / len(hits))


def test_the_regression_is_scikit_learns():
    linear = pytest.importorskip("sklearn.linear_model")
    random = np.random.default_rng(3)
    x = random.normal(size=(60, 4)) * [1, 5, 0.1, 0] + 3
    y = (x[:, 0] + x[:, 1] + random.normal(size=60) > 18).astype(float)
    z = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1)
    theirs = linear.LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=1000).fit(z, y).predict_proba(z)[:, 1]
    assert fitted.Regression.fit(x, y, True, 2.0)(x) == pytest.approx(theirs, abs=1e-5)
    theirs = linear.Ridge(alpha=2.0).fit(z, x[:, 1] ** 2).predict(z)
    assert fitted.Regression.fit(x, x[:, 1] ** 2, False, 2.0)(x) == pytest.approx(theirs)
    kernel = pytest.importorskip("sklearn.kernel_ridge").KernelRidge(alpha=0.5, kernel="rbf", gamma=0.1)
    theirs = kernel.fit(z, y - y.mean()).predict(z[:7]) + y.mean()
    assert fitted.KernelRegression.fit(x, y, 0.5, 0.1)(x[:7]) == pytest.approx(theirs)


def test_folds_are_a_partition_and_predictions_come_from_the_others():
    parts = [part for _, part in fitted.folds(11, 3)]
    assert sorted(itertools.chain(*(part.tolist() for part in parts))) == list(range(11))
    seen = fitted.cross_validated(lambda x, y: lambda v: v * 0 + y.sum(), np.ones(6), np.arange(6.0), 6)
    assert seen.tolist() == [15.0 - k for k in range(6)]
    with pytest.raises(JacanaError):
        list(fitted.folds(2, 3))


def test_features_say_what_speaks_against():
    found = features.features(PAIR, LINKS)
    assert found["negated once"] == 1 and found["other numbers linked"] == 1 and found["same numbers"] == 0
    assert found["target unaligned"] == pytest.approx(0 if content(PAIR.target)[5] is None else np.log1p(1))
    same = features.features(
        SentencePair(PAIR.source, PAIR.source), Alignment(8, 8, frozenset((k, k) for k in range(8)))
    )
    assert same["similarity"] == same["4 words of both"] == same["single steps"] == same["source complete"] == 1
    assert list(same) == list(found)
    nothing = features.features(SentencePair(Sentence(()), Sentence(())), Alignment(0, 0))
    assert list(nothing) == list(found) and np.isfinite(list(nothing.values())).all()


def test_words_in_one_place_count_more_than_words_all_over():
    """Four words of a long text; three of them within eight tokens, by counting every stretch."""
    source = Sentence(("Lisbon", *"a b c d e f g h i j k l".split(), "Porto", "sells", "red", "umbrellas"))
    target = Sentence(("Lisbon", "sells", "red", "umbrellas"))
    pair = SentencePair(source, target)
    links = Alignment(17, 4, {(0, 0), (14, 1), (15, 2), (16, 3)})
    weights = [weight(word) for word in ("lisbon", "sells", "red", "umbrellas")]
    found = features.features(pair, links)
    assert found["target in one place"] == pytest.approx(sum(weights[1:]) / sum(weights))
    assert found["target content"] == 1
    near = features.features(pair, Alignment(17, 4, {(9, 0), (14, 1), (15, 2), (16, 3)}))
    assert near["target in one place"] == 1
    just_too_far = features.features(pair, Alignment(17, 4, {(8, 0), (14, 1), (15, 2), (16, 3)}))
    assert just_too_far["target in one place"] < 1
    assert found["target same names"] == 1  # the first word is no name for certain
    assert found["source same names"] == 0  # Porto


def test_readers_of_the_owners_formats(tmp_path):
    (tmp_path / "rte.xml").write_text(
        '<entailment-corpus><pair id="1" entailment="YES" task="IE"><t>A cat sat.</t><h>It sat.</h></pair>'
        '<pair id="2" value="FALSE"><t>A &amp; B</t><h>C</h></pair></entailment-corpus>'
    )
    (tmp_path / "msr_paraphrase_train.txt").write_text(
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe left.\tHe went.\n"
    )
    (tmp_path / "STS.input.x.txt").write_text("One cat.\tA cat.\nTwo\tThree\n")
    (tmp_path / "STS.gs.x.txt").write_text("4.5\n\n")
    (tmp_path / "own.jsonl").write_text('{"id": "a", "source": "x y", "target": ["x"], "label": 1}\n')
    found = {path.name: data.read(path) for path in sorted(tmp_path.iterdir()) if "gs" not in path.name}
    assert [list(one.wanted) for one in found.values()] == [[4.5], [1.0], [1.0], [1.0, 0.0]]
    assert found["rte.xml"].pairs[1].source.tokens == ("A", "&", "B")
    assert found["msr_paraphrase_train.txt"].pairs[0].id == "7-8"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"source": "x", "target": "y"}\n', "a.jsonl:1: the record has no 'score'"),
        *(
            ("a.jsonl", f'{{"source": "x", "target": "y", {rest}}}\n', f"a.jsonl:1: .*{message}")
            for rest, message in (
                ('"label": 2', "a label is 0 or 1"),
                ('"score": NaN', "NaN is not a number"),
                ('"score": 1e999', "no finite number"),
                ('"score": "inf"', "no finite number"),
                (f'"score": 1{"0" * 400}', "no finite number"),
                (f'"x": {"[" * 100_000}', "nested too deeply"),
                ('"score": 1, "source": "\\ud800"', "half a surrogate pair"),
                ('"score": 1, "id": "\\ud800"', "half a surrogate pair"),
            )
        ),
        ("a.xml", "<pair><t>x</t></pair>", "needs <t>, <h>"),
        ("a.xml", "<pair>", "is not XML"),
        ("a.txt", "x\ty", "is no data set"),
        ("a.jsonl", "", "has no pairs"),
    ],
)
def test_bad_data_sets_are_errors(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(CorpusError, match=message):
        data.read(tmp_path / name)


def _corpus(root, name="rte2.dev", n=12):
    rows = [
        {"id": f"p{k}", "source": "The old barn burnt down .", "target": ["A barn burnt .", "Boats sink ."][k % 2],
         "label": 1 - k % 2}
        for k in range(n)
    ]  # fmt: skip
    for folder, text in (
        (f"extrinsic/{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        (f"leaks/drop_from_{name}.txt", "p1\n"),
    ):
        (root / folder).parent.mkdir(parents=True, exist_ok=True)
        (root / folder).write_text(text)


def test_compare_by_a_task(tmp_path, monkeypatch, capsys):
    _corpus(tmp_path)
    monkeypatch.setenv("JACANA_DATA", str(tmp_path))
    command = [
        "compare",
        "task=rte2",
        "aligners=[{ours: core}]",
        "folds=2",
        f"kept={tmp_path / 'kept'}",
        "format=json",
    ]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert [row["score"] for row in first["rows"]] == [*scores.SCORES, "model"]
    assert first["rows"][0]["tuned"] == 1.0 and first["rows"][0]["average_precision"] == 1.0
    assert main(command) == 0  # from what was kept
    assert json.loads(capsys.readouterr().out) == first
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert main([*command[:-1], "format=text"]) == 0
    assert "rte2.dev: 11 pairs, 1 left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("task=", "takes these settings"),
        ("task=rte9", "there is no task 'rte9'"),
        ("task=[rte2,sts]", "tasks of one kind"),
        ("task=rte2 cv=3", "takes these settings"),
        ("task=rte2 files=[nowhere.jsonl]", "there is no such file"),
        ("task=rte2 folds=0", "a whole number above 0"),
        ("task=rte2 aligners=[nobody]", "there is no system 'nobody'"),
    ],
)
def test_mistakes_in_settings(tmp_path, monkeypatch, capsys, setting, message):
    _corpus(tmp_path)
    monkeypatch.setenv("JACANA_DATA", str(tmp_path))
    assert main(["compare", "aligners=[core]", *setting.split()]) == 2
    assert message in capsys.readouterr().err


def test_alignment_features_in_scikit_learn():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    from sklearn.base import clone
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from jacana_torch.tasks import AlignmentFeatures

    pairs = [("The barn burnt .", "A barn burnt ."), ("The barn burnt .", "Boats sink .")] * 3
    transformer = AlignmentFeatures("core")
    x = transformer.fit_transform(pairs)
    assert x.shape == (6, len(transformer.get_feature_names_out()))
    assert (transformer.transform(np.array(pairs)) == x).all()
    text = make_pipeline(FunctionTransformer(lambda X: [t for _, t in X]), HashingVectorizer(n_features=8))
    both = FeatureUnion([("links", clone(transformer)), ("words", text)])
    labels = [1, 0] * 3
    assert make_pipeline(both, LogisticRegression()).fit(pairs, labels).score(pairs, labels) == 1.0
    checks.check_estimator(AlignmentFeatures("core"))
