"""The instruments of the benchmarks. No test depends on measured times."""

from __future__ import annotations

import functools
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from templates import corpus

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import bench_page  # noqa: E402
from benchmarks import gpu, scaling, text, train  # noqa: E402
from benchmarks.measure import (  # noqa: E402
    MIB,
    Finished,
    Memory,
    command,
    family,
    held_by,
    peak_of,
    ratio,
    shown,
    summary,
    timings,
)

needs_proc = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc")
PARTS = ["engine", "train", "align", "startup", "stream", "memory", "scaling", "gpu"]


# Text

WORD = st.text("abz.9", min_size=1, max_size=4)
CORPUS = st.lists(st.tuples(*[st.lists(WORD, min_size=1, max_size=4)] * 2), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(CORPUS, st.integers(1, 60), st.integers(0, 5))
def test_pairs_are_distinct_even_if_the_corpus_is_small(corpus, count, seed):
    pairs = list(text.perturbed(corpus, count, seed))
    assert len({(tuple(s), tuple(t)) for s, t in pairs}) == len(pairs) == count
    assert all(word and " " not in word for pair in pairs for side in pair for word in side)


def test_a_tenth_of_the_words_are_misspelt_and_lengths_stay():
    corpus = [(4 * "the quick heron waded slowly through cold shallow water".split(), "one heron waded .".split())]
    pairs = list(text.perturbed(corpus, 500))
    assert all((len(s), len(t)) == (36, 4) for s, t in pairs)
    changed = sum(a != b for s, t in pairs for a, b in zip([*s, *t], [*corpus[0][0], *corpus[0][1]], strict=True))
    assert 0.09 < changed / (39 * 500) < 0.115  # a little above a tenth: repeated pairs are changed more


def test_a_misspelt_word_differs_in_one_letter():
    rng = random.Random(0)
    for word in ("ab", "abc", "aaaa", "letters") * 200:
        other = text.misspelt(rng, word)
        assert other != word and other[0] == word[0] and len(other) - len(word) in (0, 1)


def test_generated_pairs_are_distinct_with_lengths_and_links_in_range(tmp_path):
    found = list(text._made(300, seed=3))
    assert len({(tuple(s), tuple(t)) for s, t, _ in found}) == 300
    for source, target, links in found:
        assert text.LONGER[0] <= len(source) <= text.LONGER[2]
        assert text.SHORTER[0] <= len(target) <= min(text.SHORTER[2], len(source))
        assert len({j for _, j in links}) == len({i for i, _ in links}) == len(links)
        assert all(i < len(source) and j < len(target) for i, j in links)
    same = sum(source[i] == target[j] for source, target, links in found for i, j in links)
    assert same > 0.5 * sum(len(links) for *_, links in found)
    text.write_gold(tmp_path / "made.jsonl", 300, seed=3)
    assert text.read(tmp_path / "made.jsonl") == [(s, t) for s, t, _ in found]


# Memory

HOLD = "import sys, time; block = bytearray(int(sys.argv[1]) * 2**20); "
NAP = "time.sleep(0.4)"


@needs_proc
@pytest.mark.slow
def test_the_meter_sums_a_process_and_its_child():
    alone = command([sys.executable, "-c", HOLD + NAP, "150"], meter=True)
    child = f"import subprocess; subprocess.run([sys.executable, '-c', {HOLD + NAP!r}, '100'])"
    both = command([sys.executable, "-c", HOLD + child, "150"], meter=True)
    assert alone.code == both.code == 0 and alone.peak and both.peak
    assert 150 < alone.peak < 190
    assert 250 < both.peak < 310


@needs_proc
def test_a_child_before_exec_does_not_count(tmp_path):
    gate = tmp_path / "gate"  # the child waits here, sharing its parent's memory
    os.mkfifo(gate)
    spawn = f"import os; os.posix_spawn('/bin/true', ['true'], {{}}, file_actions=[(0, 9, {str(gate)!r}, 0, 0)])"
    process = subprocess.Popen([sys.executable, "-c", HOLD + spawn, "100"])
    while len(family(process.pid)) == 1 and process.poll() is None:
        time.sleep(0.01)
    held = held_by(family(process.pid)) / MIB
    gate.write_text("")
    assert process.wait() == 0
    assert 100 < held < 140


def test_the_meter_survives_a_process_that_has_ended():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert not any(Memory(process.pid).stop())


def test_peaks_of_equal_spans_of_time():
    run = Finished(0, 1.0, 1.0, [3.0, 1.0, 2.0, 5.0, 4.0])
    assert run.peak == 5.0
    assert run.peaks(1) == [5.0] and run.peaks(2) == [3.0, 5.0] and run.peaks(9) == run.memory
    assert Finished(0, 1.0, 1.0).peak is None and Finished(0, 1.0, 1.0).peaks(3) == []


@needs_proc
def test_the_peak_of_a_function_is_what_it_allocates():
    megabytes = peak_of(functools.partial, bytearray, 64 * 2**20)
    assert megabytes and 63 < megabytes < 70
    assert peak_of(dict.get, {}, "nothing") is None


# Figures


def test_median_quartiles_and_ratios_by_hand():
    four = summary([4.0, 1.0, 3.0, 2.0])
    assert (four["median"], four["low"], four["high"], four["runs"]) == (2.5, 1.25, 3.75, 4)
    assert summary([7.0])["low"] == summary([7.0])["high"] == 7.0
    two = {"median": 5.0, "low": 2.5, "high": 7.5, "runs": 4}
    assert ratio(two, four) == {"median": 2.0, "low": 2.5 / 3.75, "high": 6.0}


def test_functions_take_turns():
    calls = []
    found = timings({name: functools.partial(calls.append, name) for name in "ab"}, seconds=1e-9)
    assert calls == list("ab" * 6)  # one to warm up
    assert all(s["runs"] == 5 for s in found.values())


@given(st.floats(-2, 3), st.floats(0.01, 100))
def test_the_exponent_of_a_power_is_fitted(power, factor):
    assert scaling.slope([(x, factor * x**power) for x in (12.0, 24.0, 96.0)]) == pytest.approx(power, abs=1e-9)


def test_figures_are_formatted_with_quartiles():
    assert shown({"median": 1234.5, "low": 0.01234, "high": 99.96, "runs": 3}) == "1,234 (0.0123–100)"
    assert shown(None) == "not run"


# Training's log


def test_directions_are_parsed_from_an_interleaved_log():
    lines = [
        (0.5, "9 pairs to train on, 0 to score on"),
        (1.0, "forward    1  loss 30.0  |g| 3e+03"), (1.5, "backward    1  loss 40.0  |g| 3e+03"),
        (3.0, "backward: loss 1.250000 after 12 iterations (the loss is within tolerance of its minimum)"),
        (4.0, "forward: loss 2.500000 after 10 iterations, 11 evaluations (it is)"),
    ]  # fmt: skip
    assert train.directions(lines) == {
        "forward": {"loss": 2.5, "iterations": 10, "evaluations": 11, "seconds": 3.0},
        "backward": {"loss": 1.25, "iterations": 12, "evaluations": None, "seconds": 1.5},
    }
    with pytest.raises(SystemExit, match="backward"):
        train.directions(lines[:2])


@pytest.mark.slow
def test_the_log_of_a_real_training_is_parsed(tmp_path):
    text.write_gold(tmp_path / "made.jsonl", 8)
    simple = ["annotate=none", "features=[string,position,distortion]"]
    found = train.directions(train.trained(tmp_path / "made.jsonl", settings=simple).lines)
    assert all(math.isfinite(f["loss"]) and f["iterations"] > 1 and f["seconds"] >= 0 for f in found.values())


# The page

REPORT = {
    "machine": {
        "date": "2030-01-02T03:04+00:00", "cpu": "a cpu", "cores": 2, "threads": 1, "python": "3", "load": [0.5],
        "versions": {"torch": "2", "absent": None},
    },
    "parts": {"startup": {"limit": 3.0, "seconds": {"x": {"median": 1, "low": 1, "high": 1}},
                          "over_torch": {"x": {"median": 1, "low": 1, "high": 1}}}},
}  # fmt: skip


def test_tables_are_replaced_and_other_text_stays():
    page = (
        "a\n<!-- bench:startup -->\nold\n<!-- bench:end -->\nb\n<!-- bench:train -->\nkept\n<!-- bench:end -->\n"
    )
    page += "<!-- bench:machine --><!-- other -->\n<!-- bench:machine -->\n<!-- bench:end -->\nc\n"
    once = bench_page.filled(page, REPORT)
    assert "old" not in once and "| `x` | 1 (1–1) | 1 (1–1) |" in once and "kept" in once and "a cpu" in once
    assert "<!-- other -->" in once and once.startswith("a\n") and once.endswith("\nc\n")
    assert bench_page.filled(once, REPORT) == once


@pytest.mark.slow
def test_the_table_of_a_device_is_measured_on_any():
    report = {"device": "this CPU", **gpu.measured(corpus(12), ["cpu"], 0.001)}
    assert set(report["seconds"]) == {f"{what} | cpu" for what in gpu.WHAT}
    assert len(gpu.table(report)) == 2 + len(gpu.WHAT) + 2


@pytest.mark.slow
def test_without_a_device_the_benchmark_says_so():
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(SCRIPTS / "bench.py"), "gpu"]
    said = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert said.returncode == 0 and "there is no CUDA device" in said.stderr


def test_every_part_has_a_table_in_the_page_and_a_module():
    page = bench_page.PAGE.read_text(encoding="utf-8")
    assert [name for name in bench_page._BLOCK.findall(page) if name[1] not in ("machine", *PARTS)] == []
    for part in PARTS:
        assert page.count(f"<!-- bench:{part} -->") == 1
        assert (SCRIPTS / "benchmarks" / f"{part}.py").is_file()
    said = subprocess.run([sys.executable, SCRIPTS / "bench.py", "--help"], capture_output=True, text=True)
    assert said.returncode == 0 and "{" + ",".join([*PARTS, "all"]) + "}" in said.stdout


@pytest.mark.parametrize(
    "arguments",
    [["align", "--data", "nowhere.jsonl"], ["all", "--json", "no/such/folder/x.json"], ["align", "--runs", "2"]],
)
def test_bad_options_are_reported_before_measuring(arguments, tmp_path):
    said = subprocess.run(
        [sys.executable, SCRIPTS / "bench.py", *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert said.returncode == 2 and arguments[1] in said.stderr and "Traceback" not in said.stderr


def test_the_page_is_filled_from_a_report_file(tmp_path):
    page, report = tmp_path / "page.md", tmp_path / "report.json"
    page.write_text("<!-- bench:startup -->\n<!-- bench:end -->\n")
    report.write_text(json.dumps(REPORT))
    subprocess.run([sys.executable, SCRIPTS / "bench_page.py", report, page], check=True)
    assert "| `x` |" in page.read_text() and [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []
