"""Scoring a model on pairs that it was trained on is said, by the pairs themselves and not by their files."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from templates import corpus, layerless

from jacana_torch import corpora
from jacana_torch.cli import main
from jacana_torch.model import persist
from jacana_torch.types import Sentence, SentencePair

ROOT = Path(__file__).parents[2]


def pair(source: str, target: str) -> SentencePair:
    return SentencePair(Sentence(tuple(source.split())), Sentence(tuple(target.split())))


def test_a_checksum_is_of_letters_and_digits_in_either_order():
    one = pair("The dog 's bone .", "A bone ( dog )")
    for same in (pair("the dog's bone", "a BONE dog !"), one.flip(), replace(one, id="x")):
        assert same.checksum == one.checksum
    for other in (pair("The dogs bone 1", "A bone dog"), pair("The dogs", "bone A bone dog"), pair("", "")):
        assert other.checksum != one.checksum
    assert pair("?", "!").checksum != pair("?", ".").checksum  # nothing but punctuation
    by_hand = hashlib.blake2b(b"abonedog\nthedogsbone", digest_size=8).digest()
    assert one.checksum == int.from_bytes(by_hand, "little")
    pairs = [e.pair for e in corpus(200)]
    words = {frozenset(" ".join(filter(str.isalnum, s.tokens)) for s in (p.source, p.target)) for p in pairs}
    assert len({p.checksum for p in pairs}) == len(words) > 150


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a corpus, a model of its first 10 pairs, and a file of 4 of these and 6 others as TSV."""
    folder = tmp_path_factory.mktemp("seen")
    examples = layerless(corpus(30))
    corpora.write(examples[:10], str(folder / "own.jsonl"), "jsonl")
    corpora.write(examples[6:16], str(folder / "mixed.align.txt"), "msr")
    corpora.write(examples[20:], str(folder / "new.jsonl"), "jsonl")
    fast = ["annotate=none", "features=[string]", "logger=none", "trainer.max_iterations=5", "symmetrize=union"]
    given = [f"data.root={folder}", "data.train=[own.jsonl]", f"hydra.run.dir={folder}/run"]
    assert main(["train", *given, *fast, f"output={folder}/mine"]) == 0
    return folder


def test_the_signature_has_the_checksums_and_they_survive_another_format(trained):
    known = persist.trained_on(trained / "mine")
    seen = {example.pair.checksum for example in corpora.read(str(trained / "mixed.align.txt"))}
    assert len(known) == 10 and len(known & seen) == 4
    assert (trained / "mine" / "signature.json").stat().st_size < 3000
    broken = trained / "broken"
    broken.mkdir()
    for text in ("?", 3, "AAAA"):
        (broken / "signature.json").write_text(json.dumps({persist.CHECKSUMS: text}))
        with pytest.raises(persist.ModelError, match="checksums"):
            persist.trained_on(broken)


def test_view_warns(trained, capsys):
    page = ["-o", str(trained / "page.html")]
    assert main(["view", str(trained / "mixed.align.txt"), "--model", str(trained / "mine"), *page]) == 0
    assert "was trained on 4 of the 10 scored pairs" in capsys.readouterr().err
    assert main(["view", str(trained / "new.jsonl"), "--model", str(trained / "mine"), *page]) == 0
    assert "trained on" not in capsys.readouterr().err


def test_evaluate_warns_on_stderr_alone(trained, capsys):
    gold = str(trained / "mixed.align.txt")
    assert main(["evaluate", gold, gold, "--from", "msr"]) == 0
    plain, err = capsys.readouterr()
    assert "trained on" not in err
    assert (
        main(["evaluate", gold, gold, "--from", "msr", "--model", str(trained / "mine"), "--model", "core"]) == 0
    )
    out, err = capsys.readouterr()
    assert out == plain and "mine was trained on 4 of the 10 scored pairs" in err and "core was" not in err
    assert main(["evaluate", gold, gold, "--model", "nope"]) == 2


def test_predictions_of_align_name_their_model(trained, capsys, tmp_path):
    gold, out = str(trained / "mixed.align.txt"), tmp_path / "found.jsonl"
    given = ["--workers", "1", "--output", str(out)]
    assert (
        main(
            [
                "align",
                gold,
                "--from",
                "msr",
                "--model",
                str(trained / "mine"),
                *given,
                "--name-model",
                "--to",
                "jsonl",
            ]
        )
        == 0
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["aligned_by"] for row in rows} == {str(trained / "mine")}
    capsys.readouterr()
    assert main(["evaluate", gold, str(out), "--from", "msr"]) == 0
    assert capsys.readouterr().err.count("mine was trained on 4 of the 10 scored pairs") == 1
    for name in ("nowhere", "x" * 5000, "", None, ["a"], {"b": 1}, "\0"):  # of another machine, or nonsense
        out.write_text("".join(json.dumps({**row, "aligned_by": name}) + "\n" for row in rows))
        assert main(["evaluate", gold, str(out), "--from", "msr"]) == 0, name
        assert capsys.readouterr().err == "", name
    assert main(["align", gold, "--from", "msr", "--name-model"]) == 2
    assert "--to jsonl" in capsys.readouterr().err


def test_evaluate_knows_the_pairs_of_shipped_models_without_their_names(tmp_path, capsys):
    folder = os.environ.get("JACANA_DATA")
    if not folder or not Path(folder, "msr/dev.jsonl").is_file():
        pytest.skip("JACANA_DATA has no msr/dev.jsonl")
    examples = [replace(e, pair=replace(e.pair, id=None)) for e in corpora.read(f"{folder}/msr/dev.jsonl")][:5]
    corpora.write([*examples, *layerless(corpus(3))], str(tmp_path / "gold.jsonl"), "jsonl")
    assert main(["evaluate", str(tmp_path / "gold.jsonl"), str(tmp_path / "gold.jsonl")]) == 0
    err = capsys.readouterr().err
    assert "5 of the 8 scored pairs are training pairs of core, neural, neural_small, standard, syntactic" in err
    assert main(["evaluate", str(tmp_path / "gold.jsonl"), str(tmp_path / "gold.jsonl"), "--model", "core"]) == 0
    assert "core was trained on 5 of the 8" in capsys.readouterr().err


def test_compare_warns(trained, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = [f"data.root={trained}", "data.train=[mixed.align.txt]", "annotate=none", "rounds=10", "logger=none"]
    assert main(["compare", *given, f"aligners=[{trained}/mine,core]"]) == 0
    out, err = capsys.readouterr()
    assert "mine was trained on 4 of the 10 scored pairs" in err and "core was" not in err and "F1" in out
    for override in ("start=core", "overwrite=true"):
        assert main(["compare", *given, "aligners=[crf]", override]) == 2
        assert "a setting of train" in capsys.readouterr().err


def test_training_warns_of_dev_pairs_that_it_trains_on(trained, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    fast = ["annotate=none", "features=[string]", "logger=none", "trainer.max_iterations=5", "symmetrize=union"]
    given = [f"data.root={trained}", "data.train=[own.jsonl]", *fast]
    assert main(["train", *given, "data.dev=[mixed.align.txt]"]) == 0
    assert "this model was trained on 4 of the 10 scored pairs" in capsys.readouterr().err
    assert main(["train", *given, "data.dev=[new.jsonl]"]) == 0
    assert "trained on" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "pairs"),
    [("core", 1511), ("standard", 1511), ("syntactic", 1511), ("neural", 3506), ("neural_small", 3506)],
)
def test_shipped_models_have_theirs(name, pairs):
    assert len(persist.trained_on(name)) == pairs
