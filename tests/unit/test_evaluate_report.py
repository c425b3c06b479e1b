"""Splits, error rates, agreement, intervals: against definitions, NLTK and scipy; the command on files."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import scipy
from commands import whole
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from scipy import stats

from jacana_torch.errors import ConfigError, JacanaError, MissingLayer
from jacana_torch.evaluate import Counts, Score, score
from jacana_torch.evaluate.agreement import AgreementReport, agreements, cohen, fleiss
from jacana_torch.evaluate.report import BY, Report
from jacana_torch.evaluate.scores import alignment_error_rate
from jacana_torch.evaluate.significance import METRICS, differences, intervals
from jacana_torch.evaluate.splits import by_identity, by_type, groups, word_class
from jacana_torch.types import Alignment, Example, Sentence, SentencePair
from jacana_torch.util import tables

M, N = 5, 4
SEEDED = "rng" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 15) else "random_state"


CELLS = list(itertools.product(range(M), range(N)))
link_sets = st.frozensets(st.sampled_from(CELLS), max_size=9)
corpora_of = st.lists(st.tuples(link_sets, link_sets, link_sets), min_size=1, max_size=6)


def alignment(sure, possible=frozenset()) -> Alignment:
    return Alignment(M, N, frozenset(sure), frozenset(possible))


def pair(source: str = "The old dog barked loudly", target: str = "the dog was loud") -> SentencePair:
    tags = ("DT", "JJ", "NN", "VBD", "RB")
    return SentencePair(Sentence(tuple(source.split()), {"pos": tags}), Sentence(tuple(target.split())))


@given(corpora_of)
def test_error_rate_by_its_definition(sets):
    gold = [alignment(sure, possible) for sure, possible, _ in sets]
    found = [alignment(links) for *_, links in sets]
    sure = {(k, x) for k, a in enumerate(gold) for x in a.sure}
    possible = sure | {(k, x) for k, a in enumerate(gold) for x in a.possible}
    predicted = {(k, x) for k, a in enumerate(found) for x in a.sure}
    whole = len(predicted) + len(sure)
    expected = 1 - (len(predicted & sure) + len(predicted & possible)) / whole if whole else 0
    assert alignment_error_rate(gold, found) == pytest.approx(expected)


def test_error_rate_without_possible_links_is_what_micro_f1_lacks():
    gold, found = [alignment({(0, 0), (1, 1)}), alignment({(2, 2)})], [alignment({(0, 0)}), alignment({(3, 3)})]
    assert alignment_error_rate(gold, found) == pytest.approx(1 - score(gold, found).micro_f1)
    assert alignment_error_rate(gold, gold) == 0
    assert alignment_error_rate([alignment({(0, 0)}, {(1, 1)})], [alignment({(0, 0), (1, 1)})]) == 0
    with pytest.raises(JacanaError, match="one to one"):
        alignment_error_rate(gold, found[:1])


@given(link_sets)
def test_types_of_links_by_walking_the_graph(links):
    kind = by_type(pair(), links)
    for link in links:
        rows, columns = {link[0]}, {link[1]}
        for _ in range(M + N):
            rows |= {i for i, j in links if j in columns}
            columns |= {j for i, j in links if i in rows}
        expected = (
            "1-1" if len(rows) == len(columns) == 1 else "1-n" if 1 in (len(rows), len(columns)) else "phrase"
        )
        assert kind(link) == expected


def test_kinds_by_hand():
    identical = by_identity(pair(), frozenset())
    assert [identical(link) for link in ((0, 0), (2, 1), (1, 1))] == ["identical", "identical", "other"]
    gold, found = [alignment({(0, 0), (2, 1), (4, 3), (3, 2)})], [alignment({(0, 0), (4, 3), (1, 1)})]
    by = {group.name: group for group in groups("pos", [pair()], gold, found)}
    assert list(by) == ["noun", "verb", "adjective", "adverb", "function word"]
    assert (by["noun"].gold, by["noun"].predicted, by["noun"].recall) == (1, 0, 0)
    assert (by["adjective"].gold, by["adjective"].predicted, by["adjective"].precision) == (0, 1, 0)
    assert (by["adverb"].precision, by["adverb"].recall, by["adverb"].f1) == (1, 1, 1)
    with pytest.raises(MissingLayer, match="pos"):
        groups("pos", [SentencePair(Sentence(("a",) * M), Sentence(("a",) * N))], gold, found)
    tags = {"NNPS": "noun", "MD": "verb", "JJR": "adjective", "WRB": "adverb", "CD": "number", "``": "punctuation",
            "-LRB-": "punctuation", ".": "punctuation", "PRP$": "function word", "$": "punctuation"}  # fmt: skip
    assert {tag: word_class(tag) for tag in tags} == tags


@given(corpora_of, st.sampled_from(["identical", "pos", "type"]))
def test_kinds_together_are_all_links(sets, split):
    gold, found = [alignment(a) for a, _, _ in sets], [alignment(c) for *_, c in sets]
    whole, parts = score(gold, found), groups(split, [pair()] * len(sets), gold, found)
    assert sum(group.gold for group in parts) == whole.gold_links
    assert sum(group.predicted for group in parts) == whole.predicted_links
    for total, figure in (("predicted", "precision"), ("gold", "recall")):
        assert sum(getattr(group, total) * getattr(group, figure) for group in parts) == pytest.approx(
            whole.common_links
        )


def test_lengths_are_scores_of_their_pairs():
    lengths = [0, 1, 10, 11, 20, 21, 30, 31, 90]
    pairs = [SentencePair(Sentence(("a",) * n), Sentence(("a",) * (n // 2))) for n in lengths]
    gold = [Alignment(n, n // 2, frozenset({(0, 0)} if n > 1 else ())) for n in lengths]
    found = [Alignment(n, n // 2, frozenset({(0, 0)} if n in (10, 31) else ())) for n in lengths]
    by = groups("length", pairs, gold, found)
    assert [group.name for group in by] == [
        "up to 10 words, 3 pairs", "11 to 20 words, 2 pairs", "21 to 30 words, 2 pairs", "over 30 words, 2 pairs"
    ]  # fmt: skip
    assert [group.recall for group in by] == [pytest.approx(1 / 3), 0, 0, 0.5]


@given(corpora_of)
def test_kappas_against_nltk_and_the_definition(sets):
    people = [[alignment(one[k]) for one in sets] for k in range(3)]
    rows = [
        (str(k), f"{number}:{cell}", cell in found.sure)
        for k, person in enumerate(people) for number, found in enumerate(person) for cell in CELLS
    ]  # fmt: skip
    for k, l in ((0, 1), (0, 2), (1, 2)):  # noqa: E741
        two = [row for row in rows if row[0] in (str(k), str(l))]
        varied = len({label for _, _, label in two}) > 1
        expected = AnnotationTask(two).kappa() if varied else 1.0
        assert cohen(people[k], people[l]) == pytest.approx(expected)
    yes = np.array(
        [[cell in person[n].sure for person in people] for n in range(len(sets)) for cell in CELLS]
    ).sum(1)
    each = (yes * (yes - 1) + (3 - yes) * (2 - yes)) / 6
    share = yes.mean() / 3
    by_chance = share**2 + (1 - share) ** 2
    expected = (each.mean() - by_chance) / (1 - by_chance) if by_chance < 1 else 1.0
    assert fleiss(people) == pytest.approx(expected)


def test_agreement_of_each_two_annotators():
    people = {name: [alignment(links)] for name, links in (("a", {(0, 0), (1, 1)}), ("b", {(0, 0)}), ("c", ()))}
    found = agreements(people)
    assert [(x.first, x.second) for x in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found[0].score.f1 == pytest.approx(2 / 3) and found[0].kappa == cohen(people["b"], people["a"])
    with pytest.raises(JacanaError, match="two annotators"):
        agreements({"a": people["a"]})
    assert AgreementReport.of({name: people[name] for name in "ab"}).fleiss is None


def made(seed: int, n: int, skill: float) -> Counts:
    gold = np.random.default_rng(0).integers(0, 6, n)
    random = np.random.default_rng(seed)
    both = random.binomial(gold, skill)
    return Counts(np.column_stack([gold, both + random.integers(0, 3, n), both]))


@pytest.mark.parametrize("paired", [False, True])
def test_intervals_agree_with_scipys_bootstrap(paired):
    ours, theirs, n = made(1, 60, 0.7), made(2, 60, 0.5), 60

    def figure(name: str, counts: Counts, rows: np.ndarray) -> float:
        return getattr(Score.of(counts.take(rows)), name)

    found = differences(ours, theirs, 4000) if paired else intervals(ours, 4000)
    for name in METRICS:

        def statistic(x, name=name) -> float:
            rows = x.astype(int)
            return figure(name, ours, rows) - (figure(name, theirs, rows) if paired else 0)

        expected = stats.bootstrap(
            (np.arange(n),), statistic, vectorized=False, method="percentile", n_resamples=1500,
            **{SEEDED: np.random.default_rng(3)},
        ).confidence_interval  # fmt: skip
        width = expected.high - expected.low
        assert found[name].low == pytest.approx(expected.low, abs=0.12 * width), name
        assert found[name].high == pytest.approx(expected.high, abs=0.12 * width), name


GOLD = [Example(pair(), alignment({(0, 0), (2, 1), (4, 3)}, {(3, 2)})) for _ in range(12)]
FOUND = {
    "old": [alignment({(0, 0)}) for _ in GOLD],
    "new_1": [alignment({(0, 0), (2, 1), (1, 1)} if k % 2 else {(0, 0), (2, 1), (4, 3)}) for k in range(12)],
}


def test_a_report_has_the_figures_of_its_parts():
    report = Report.of(GOLD, FOUND, by=BY, rounds=300, sym="union")
    gold = [example.gold for example in GOLD]
    for system, data in zip(report.systems, report.to_dict()["systems"], strict=True):
        expected = score(gold, FOUND[system.name])
        assert data["system"] == system.name and data["f1"] == expected.f1
        assert data["aer"] == alignment_error_rate(gold, FOUND[system.name])
        assert "|sym:union|n:12|" in data["signature"]
        low, high = data["intervals"]["f1"]
        assert low <= expected.f1 <= high
        assert [len(data["by"][split]) for split in BY] == [2, len(system.by["pos"]), len(system.by["type"]), 1]
    first, second = report.to_dict()["systems"]
    assert first["against_first"] is None
    assert second["against_first"]["f1"]["value"] == pytest.approx(second["f1"] - first["f1"])
    json.dumps(report.to_dict(), allow_nan=False)
    with pytest.raises(ConfigError, match="no split by 'magic'"):
        Report.of(GOLD, FOUND, by=["magic"])


def test_the_report_prints_in_every_format():
    report = Report.of(GOLD, FOUND, by=BY, rounds=300)
    text, markdown, latex = (tables.FORMATS[name](report.sheets()) for name in ("text", "markdown", "latex"))
    f1 = f"{100 * report.systems[1].score.f1:.2f}"
    assert f"{f1}**" in text and rf"{f1}\*\*" in markdown and f"{f1}$^{{**}}$" in latex
    assert r"new\_1" in markdown and r"new\_1" in latex
    for shown in (text, markdown, latex):
        assert "95% intervals" in shown and "Differences from old" in shown and "function word" in shown
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 7
    columns = {line.count("|") - line.count(r"\|") for line in markdown.split("\n\n")[0].splitlines()}
    assert columns == {10}
    assert "|case:ignored|" in text and "avg:micro" in text


@pytest.fixture
def files(tmp_path):
    def written(name: str, alignments) -> str:
        lines = [
            json.dumps({"source": list(e.pair.source.tokens), "target": list(e.pair.target.tokens),
                        "sure": sorted(a.sure), "possible": sorted(a.possible)})
            for e, a in zip(GOLD, alignments, strict=True)
        ]  # fmt: skip
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return str(tmp_path / name)

    return [written("gold.jsonl", [e.gold for e in GOLD]), *(written(f"{n}.jsonl", a) for n, a in FOUND.items())]


def test_the_command_prints_the_report(cli, files):
    expected = Report.of(GOLD, {f"{name}.jsonl": found for name, found in FOUND.items()}, "all", ["type"], 200, 4)
    options = ("--links", "all", "--by", "type", "--rounds", "200", "--seed", "4")
    for form, written in tables.FORMATS.items():
        out = whole(cli("evaluate", *files, *options, "--format", form))
        assert out == f"{written(expected.sheets())}\n"
    assert json.loads(whole(cli("evaluate", *files, *options, "--json"))) == json.loads(
        json.dumps(expected.to_dict())
    )


def test_scores_below_the_threshold_exit_with_1(cli, files):
    gold, old, new = files
    for least, code in (
        ("50", 0),
        ("f1=49.9", 0),
        ("50.01", 1),
        ("exact=0", 0),
        ("exact=0.1", 1),
        ("recall=34", 1),
    ):
        done, out, err = cli("evaluate", gold, old, "--rounds", "5", "--fail-under", least)
        assert (done, "old.jsonl" in out) == (code, True)
        assert ("is below" in err) == bool(code), err
    done, _, err = cli(
        "evaluate", gold, new, old, "--rounds", "5", "--fail-under", "60", "--fail-under", "recall=60"
    )
    assert done == 1 and err.count("is below") == 2 and "new" not in err


def test_annotators_are_compared_two_by_two(cli, files):
    out = whole(cli("evaluate", "--agreement", *files))
    assert len([line for line in out.splitlines() if ".jsonl" in line]) == 3 and "Fleiss" in out
    data = json.loads(whole(cli("evaluate", "--agreement", *files[:2], "--json")))
    assert data["agreement"][0]["f1"] == pytest.approx(0.5) and data["fleiss_kappa"] is None


def test_tags_come_from_the_corpus_or_from_nltk(cli, files):
    from jacana_torch import resources

    if not resources.available("tagger"):
        pytest.skip("the tagger is not on this machine")
    out = whole(cli("evaluate", *files[:2], "--by", "pos", "--rounds", "5"))
    assert "noun" in out and "adverb" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--by", "magic"], "--by magic"),
        (["--fail-under", "much"], "--fail-under much"),
        (["--fail-under", "nan"], "--fail-under nan"),
        (["--fail-under", "beauty=3"], "--fail-under beauty=3"),
        (["--rounds", "0"], "rounds=0"),
        (["--agreement", "--by", "type"], "--agreement"),
    ],
)
def test_mistakes_are_errors(cli, files, arguments, says):
    code, out, err = cli("evaluate", *files, *arguments)
    assert (code, out) == (2, "") and says in err and "Traceback" not in err


def test_stdin_can_be_one_prediction_only(cli, files):
    code, _, err = cli("evaluate", files[0], "-", "-", stdin="0-0\n" * 12)
    assert code == 2 and "stdin" in err
    out = whole(cli("evaluate", files[0], "-", files[1], files[1], "--rounds", "5", stdin="0-0\n" * 12))
    assert "stdin" in out and "old.jsonl (3)" in out


def test_second_annotator_of_real_pairs(data_root, cli):
    names = [str(data_root / "msr" / f"RTE2_dev_{who}.align.txt") for who in "MC"]
    (system,) = json.loads(whole(cli("evaluate", *names, "--json", "--rounds", "50", "--by", "type,identical")))[
        "systems"
    ]
    assert round(100 * system["f1"], 2) == 92.98 and round(100 * system["exact"], 2) == 51.38
    assert sum(group["gold"] for group in system["by"]["type"]) == system["gold_links"] == 5971
