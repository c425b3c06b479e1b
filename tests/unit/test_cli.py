"""The command line in use: pipes, bad lines, bad bytes, interrupts; with a small trained model."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from commands import WORDS, started, whole

from jacana_torch.cli import presentable
from jacana_torch.cli.align import FIRST_BATCH, LAST_BATCHES, _batches, _size
from jacana_torch.errors import CorpusError
from jacana_torch.types import Example, Sentence, SentencePair

# align


def test_equal_words_are_linked(cli, model):
    out = whole(cli("align", "--model", model, stdin="old red dog\tdog old\nbig house ||| house\n"))
    assert out == "0-1 2-0\n1-0\n"


def test_a_line_out_for_each_line_in(cli, model):
    lines = ["red dog\tred dog", "", "\t", "red\t", "\tdog", "dog ||| ", "tall house\ttall house"]
    out = whole(cli("align", "--model", model, "--batch-size", "2", stdin="\n".join(lines)))
    assert out.split("\n") == ["0-0 1-1", "", "", "", "", "", "0-0 1-1", ""]


def test_windows_line_ends_and_unicode_lines(cli, model):
    text = "red dog\tdog\r\nriver\u2028house \u00e9\u0301\U0001f469\u200d\U0001f467\tb\x85c\r\nred\tred\r\n"
    out = whole(cli("align", "--model", model, stdin=text))
    assert out.count("\n") == 3 and out.startswith("1-0\n") and out.endswith("\n0-0\n") and "\r" not in out


def test_raw_text_is_tokenised_unless_it_already_is(cli, model):
    raw = "Dogs, not cats.\tcats.\n"
    fields = json.loads(whole(cli("align", "--model", model, "--to", "jsonl", stdin=raw)))
    assert fields["source"] == ["Dogs", ",", "not", "cats", "."]
    assert fields["target"] == ["cats", "."]
    assert whole(cli("align", "--model", model, stdin=raw)) == "3-0 4-1\n"
    assert whole(cli("align", "--model", model, "--pretokenized", stdin=raw)) == "2-0\n"


def test_the_same_whatever_the_batch(cli, model):
    lines = "".join(f"{WORDS[k % 16]} {WORDS[k * 3 % 16]} x\t{WORDS[k * 3 % 16]}\n" for k in range(20))
    outputs = {
        whole(cli("align", "--model", model, "--batch-size", size, stdin=lines)) for size in "1 3 7 500".split()
    }
    assert len(outputs) == 1


def test_formats_agree(cli, model, tmp_path):
    source = "red dog house\tred dog\nbook\tbook\n"
    bare = whole(cli("align", "--model", model, "--to", "talp", stdin=source))
    held = [
        json.loads(line)
        for line in whole(cli("align", "--model", model, "--to", "jsonl", stdin=source)).splitlines()
    ]
    pairs = [
        [[int(i), int(j)] for i, j in (link.split("-") for link in line.split())] for line in bare.splitlines()
    ]
    assert [fields["sure"] for fields in held] == pairs
    array = json.loads(whole(cli("align", "--model", model, "--to", "jacana", stdin=source)))
    assert [item["sureAlign"] for item in array] == bare.splitlines()
    numbered = whole(cli("align", "--model", model, "--to", "naacl", stdin=source)).splitlines()
    links = [f"{n} {i + 1} {j + 1}" for n, line in enumerate(pairs, 1) for i, j in line]
    assert [" ".join(line.split()[:3]) for line in numbered] == links


def test_confidences_only_with_the_option(cli, model):
    line = "red dog\tred dog\n"
    assert "confidence" not in json.loads(whole(cli("align", "--model", model, "--to", "jsonl", stdin=line)))
    with_them = json.loads(whole(cli("align", "--model", model, "--to", "jsonl", "--confidence", stdin=line)))
    assert with_them["confidence"] and "0.9" in json.dumps(with_them["confidence"])
    code, out, err = cli("align", "--model", model, "--confidence", stdin=line)
    assert (code, out) == (2, "") and "--to jsonl" in err


def test_symmetrize_changes_how_directions_are_combined(cli, model):
    line = "dog dog red\tdog red\n"  # two dogs for one: the directions differ
    forward, union, intersection = (
        set(whole(cli("align", "--model", model, "--symmetrize", s, stdin=line)).split())
        for s in ("forward", "union", "intersection")
    )
    assert intersection < union and forward <= union
    code, _, err = cli("align", "--model", model, "--symmetrize", "gorw", stdin=line)
    assert code == 2 and "grow-diag-final-and" in err


def test_threshold_chooses_links_by_their_probability(cli, model):
    line, counts = "The old dog sat down .\tA dog was sitting down .\n", []
    for threshold in ("0.001", "0.5", "0.999"):
        counts.append(len(whole(cli("align", "--model", model, "--threshold", threshold, stdin=line)).split()))
    assert counts[0] > counts[1] > counts[2]
    code, _, err = cli("align", "--model", model, "--threshold", "2", stdin=line)
    assert code == 2 and "threshold=2.0" in err
    code, _, err = cli("align", "--model", model, "--threshold", "0.7", "--symmetrize", "union", stdin=line)
    assert code == 2 and "leave out --symmetrize" in err


def test_a_bad_line_ends_the_run_after_the_lines_before_it(cli, model, tmp_path):
    file = tmp_path / "pairs.txt"
    file.write_text("red\tred\ndog\tdog\nno tab here\nbook\tbook\n")
    code, out, err = cli("align", str(file), "--from", "text", "--model", model)
    assert (code, out) == (2, "0-0\n0-0\n")
    assert f"{file}:3:" in err and "Traceback" not in err
    code, out, err = cli("align", "--model", model, stdin="red\tred\nno tab here\n")
    assert (code, out) == (2, "0-0\n") and ":2:" in err


def test_skip_bad_keeps_one_line_per_line_and_reports_a_count(cli, model):
    text = b"red\tred\nno tab\n\xff\xfe\tdog\ndog\tdog\n"
    code, out, err = cli("align", "--model", model, "--skip-bad", stdin=text)
    assert (code, out) == (0, "0-0\n\n\n0-0\n")
    assert "2 bad" in err and "<stdin>:2:" in err and "<stdin>:3:" in err


def test_an_output_file_is_complete_or_absent(cli, model, tmp_path):
    target = tmp_path / "out.talp"
    assert whole(cli("align", "--model", model, "--output", str(target), stdin="red\tred\n")) == ""
    assert target.read_text() == "0-0\n"
    code, _, _ = cli("align", "--model", model, "--output", str(target), stdin="dog\tdog\nno tab\n")
    assert code == 2 and target.read_text() == "0-0\n" and os.listdir(tmp_path) == ["out.talp"]


def test_random_bytes_are_a_short_error(cli, model):
    code, out, err = cli("align", "--model", model, stdin=Random(7).randbytes(100_000))
    assert (code, out) == (2, "") and "<stdin>:1:" in err
    assert len(err) < 500 and all(character.isprintable() or character == "\n" for character in err)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["align", "--model", "no-such-model"], "no-such-model"),
        (["align", "--to", "text"], "jsonl"),
        (["align", "/no/such/file"], "/no/such/file"),
        (["align", "--model", "MODEL", "--device", "abacus"], "abacus"),
        (["align", "--batch-size", "0"], "'0'"),
        (["evaluate", "/no/such/gold", "/no/such/guess"], "/no/such/gold"),
        (["convert", "/no/such/in", "out.jsonl"], "/no/such/in"),
        (["resources", "install", "wordnot"], "wordnet"),
        (["dance"], "dance"),
        ([], "align"),
    ],
)
def test_mistakes_have_a_message_and_exit_code_2(cli, model, arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli(*[model if word == "MODEL" else word for word in arguments], stdin="red\tred\n")
    assert (code, out) == (2, "") and says in err and "Traceback" not in err
    assert os.listdir(tmp_path) == []


def test_a_lack_of_memory_is_a_message_of_one_line(cli, monkeypatch):
    """Not at a machine's real limit: the command fails as numpy does for too large an array."""

    def too_large(*_, **__):
        raise MemoryError("Unable to allocate 298. GiB")

    monkeypatch.setattr("jacana_torch.cli.align.run", too_large)
    code, out, err = cli("align", stdin="red\tred\n")
    assert (code, out, err.count("\n")) == (2, "", 1) and "298. GiB" in err and "split" in err


def test_messages_are_safe_for_a_terminal():
    assert presentable("a\x1b[31mb\r\udcff\x85é\n") == "a\\x1b[31mb\\r\\udcff\\x85é\n"
    assert len(presentable("x" * 10**6)) < 3000


WORD = SentencePair(Sentence(("a",)), Sentence(("a",)))


def test_an_endless_input_is_read_on_demand():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield Example(WORD)

    sizes = [len(batch) for batch in islice(_batches(endless(), partial(_size, 50, 2, lambda: None)), 3)]
    assert sizes == [FIRST_BATCH, 50, 50] and taken == sum(sizes)


def test_a_batch_of_long_pairs_is_smaller():
    long = SentencePair(Sentence(("a",) * 30), Sentence(("a",) * 20))
    pairs = [long] * 3 + [WORD] * 20 + [long] * 5
    taken = list(_batches(map(Example, pairs), lambda given: 10, 1200))
    assert list(map(len, taken)) == [2, 10, 10, 3, 2, 1]
    assert [pair for batch in taken for pair in batch] == pairs


def test_batches_shrink_towards_the_end_of_a_file_of_known_size():
    total, largest, workers = 20_000, 1024, 2
    read = 0
    size = partial(_size, largest, workers, lambda: read / total)
    sizes = []
    while read < total:
        sizes.append(min(size(read), total - read))
        read += sizes[-1]
    assert sizes[0] == FIRST_BATCH and sizes[1:] == sorted(sizes[1:], reverse=True)
    assert sizes.count(largest) > 10 and sizes[-2] == LAST_BATCHES
    alone = partial(_size, largest, 1, lambda: 0.99)
    assert [alone(0), alone(5000)] == [FIRST_BATCH, largest]  # one worker waits for no other


def test_pairs_before_an_error_are_aligned():
    def failing():
        yield from [Example(WORD)] * 7
        raise CorpusError("broken", "x", 8)

    got = []
    with pytest.raises(CorpusError, match="x:8: broken"):
        for batch in _batches(failing(), lambda given: 3):
            got.append(len(batch))
    assert got == [3, 3, 1]


def test_slow_input_does_not_wait_for_a_full_batch(monkeypatch):
    monkeypatch.setattr("jacana_torch.cli.align.LONGEST_GATHERING", 0.05)

    def slow():
        yield from [Example(WORD)] * 2 + [None, None] + [Example(WORD)]
        for _ in range(6):
            time.sleep(0.02)
            yield Example(WORD)

    got = list(_batches(slow(), lambda given: 100))
    assert [len(batch) if batch else batch for batch in got[:3]] == [2, None, None]
    assert len(got) > 4 and sum(map(len, filter(None, got))) == 9


# evaluate and convert


def test_a_pipe_from_align_to_evaluate(cli, model, tmp_path):
    gold = tmp_path / "gold.jsonl"
    items = [("red dog", "red dog", [[0, 0], [1, 1]]), ("old book", "book", [[1, 0]]), ("river", "house", [])]
    keys = ("source", "target", "sure")
    gold.write_text(
        "".join(
            json.dumps(dict(zip(keys, item, strict=True)) | {"id": str(n)}) + "\n" for n, item in enumerate(items)
        )
    )
    links = whole(cli("align", str(gold), "--model", model))
    assert links == "0-0 1-1\n1-0\n\n"
    out = whole(cli("evaluate", str(gold), "-", "--json", stdin=links))
    (scored,) = json.loads(out)["systems"]
    assert (scored["micro_f1"], scored["exact"], scored["pairs"]) == (1.0, 1.0, 3)
    assert scored["precision"] == pytest.approx(2 / 3)
    shown = whole(cli("evaluate", str(gold), "-", "--links", "all", stdin=links))
    assert "links:all|n:3" in shown


def test_evaluate_names_the_file_that_does_not_match(cli, tmp_path):
    gold = tmp_path / "gold.pharaoh"
    gold.write_text("a b ||| a ||| 0-0\nc ||| d ||| \n")
    guess = tmp_path / "guess.pharaoh"
    guess.write_text("0-0\n")
    code, out, err = cli("evaluate", str(gold), str(guess))
    assert (code, out) == (2, "") and "guess.pharaoh" in err
    guess.write_text("0-0\n0-7\n")
    code, out, err = cli("evaluate", str(gold), str(guess))
    assert (code, out) == (2, "") and "guess.pharaoh:2" in err
    (tmp_path / "unaligned.txt").write_text("a\tb\n")
    code, out, err = cli("evaluate", str(tmp_path / "unaligned.txt"), str(guess), "--from", "text")
    assert (code, out) == (2, "") and "pair 1 has no links" in err


def test_convert_there_and_back(cli, tmp_path):
    first = tmp_path / "a.jsonl"
    first.write_text('{"id": "1", "source": "a b", "target": "c d", "sure": [[0, 0]], "possible": [[1, 1]]}\n')
    whole(cli("convert", str(first), str(tmp_path / "b.json"), "--to", "jacana"))
    whole(cli("convert", str(tmp_path / "b.json"), str(tmp_path / "c.jsonl")))
    fields = json.loads((tmp_path / "c.jsonl").read_text())
    assert (fields["source"], fields["sure"], fields["possible"]) == (["a", "b"], [[0, 0]], [[1, 1]])
    out = whole(cli("convert", "-", "-", "--from", "jsonl", "--to", "talp", stdin=first.read_bytes()))
    assert "0-0 1p1" in out


def test_convert_skips_bad_items_only_with_the_option(cli, tmp_path):
    source = tmp_path / "a.talp"
    source.write_text("a\tb\t0-0\na\tb\t0-9\na\tb\t0p0\n")
    target = tmp_path / "b.jsonl"
    code, _, err = cli("convert", str(source), str(target))
    assert code == 2 and "a.talp:2" in err and not target.exists()
    code, _, err = cli("convert", str(source), str(target), "--skip-bad")
    assert code == 0 and len(target.read_text().splitlines()) == 2 and "a.talp:2" in err


# the rest


def test_resources_are_listed(cli):
    out = whole(cli("resources"))
    assert "wordnet" in out and "licence" in out


@pytest.mark.parametrize("command", ["align", "evaluate", "convert", "train", "models", "resources"])
def test_every_command_has_help_with_examples(cli, command):
    out = whole(cli(command, "--help"))
    assert f"jacana-torch {command}" in out and "examples:" in out


def test_train_passes_options_to_hydra(cli):
    out = whole(cli("train", "--cfg", "job", "features=[string]", "~annotate", "seed=7"))
    assert "seed: 7" in out and "jacana_torch.features.families.string.String" in out and "\nannotate:" not in out


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("features=[strong]", "strong"),
        ("sede=7", "sede"),
        ("seed=[", "'['"),
        ("data.train=[no-such-file.jsonl]", "no-such-file.jsonl"),
        ("data.train=[]", "data.train"),
    ],
)
def test_mistakes_in_overrides_have_a_message(override, says, tmp_path):
    settings = ["annotate=none", "features=[string]", f"data.root={tmp_path}", f"hydra.run.dir={tmp_path}/run"]
    process = started("train", *settings, override)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and out == b"" and says in err.decode() and b"Traceback" not in err


def test_output_is_utf8_in_every_locale(tmp_path):
    (tmp_path / "a.talp").write_text("caf\u00e9 \U0001f600\tb\t0-0\n", encoding="utf-8")
    environment = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = started("convert", str(tmp_path / "a.talp"), "-", "--to", "jsonl", **environment)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out.decode("utf-8"))["source"] == ["caf\u00e9", "\U0001f600"]


def test_a_closed_pipe_is_no_error(tmp_path):
    big = tmp_path / "big.talp"
    big.write_text("a b c d e f\ta b c d e f\t0-0 1-1 2-2 3-3\n" * 20000)
    process = started("convert", str(big), "-", "--to", "jsonl")
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(timeout=60) == 141
    process.stdin.close()
    process.stderr.close()


def test_an_answer_comes_before_the_next_question_and_ctrl_c_is_130(model):
    process = started("align", "--model", model, "--batch-size", "1")
    try:
        for question, answer in ((b"red dog\tdog\n", b"1-0\n"), (b"book\tbook\n", b"0-0\n")):
            process.stdin.write(question)
            process.stdin.flush()
            assert process.stdout.readline() == answer
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"") and err == b"jacana-torch: interrupted\n"


def test_the_examples_of_the_repository_are_aligned(cli, model):
    file = Path(__file__).parents[2] / "examples" / "pairs.txt"
    out = whole(cli("align", str(file), "--from", "text", "--model", model))
    assert len(out.splitlines()) == len(file.read_text(encoding="utf-8").splitlines()) == 12


def test_without_resources_it_says_which_model_is_skipped_and_how_to_get_it(cli, own_home):
    code, out, err = cli("align", stdin="the red dog\tthe red dog\n")
    assert (code, out) == (0, "0-0 1-1 2-2\n") and "using the model core" in err
    assert "standard needs glove-840b, tagger, wordnet" in err
    assert "jacana-torch resources install glove-840b tagger wordnet" in err
