"""`data.styles` and `data.weights` in training, and `--style` wherever a model is loaded."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from templates import corpus, layerless

import jacana_torch
from jacana_torch import corpora
from jacana_torch.aligners.bidirectional import Bidirectional
from jacana_torch.cli import main
from jacana_torch.errors import ConfigError
from jacana_torch.model.info import ModelInfo
from jacana_torch.systems.unsupervised.unsupervised import Ibm1
from jacana_torch.train import data
from jacana_torch.train.augment import Augmentation
from jacana_torch.train.run import check_corpora

FAST = ["annotate=none", "features=[string,position,distortion]", "trainer.max_iterations=40", "logger=none"]
FAST += ["symmetrize=posterior", "symmetrize.folds=0", "trainer.l2_style=0.5"]


def sparing(examples):
    """The same pairs by another convention: only equal words are linked."""
    for example in examples:
        pair, gold = example.pair, example.gold
        kept = {(i, j) for i, j in gold.sure if pair.source.tokens[i].lower() == pair.target.tokens[j].lower()}
        yield replace(example, gold=replace(gold, sure=frozenset(kept)))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("styles")
    corpora.write(layerless(corpus(30)), str(folder / "one.jsonl"), "jsonl")
    corpora.write(sparing(layerless(corpus(30, seed=3))), str(folder / "two.jsonl"), "jsonl")
    return folder


@pytest.fixture(scope="module")
def train(root):
    handlers, threads = logging.getLogger().handlers[:], torch.get_num_threads()

    def run(*overrides: str) -> int:
        return main(["train", f"data.root={root}", "data.train=[one.jsonl,two.jsonl]", *FAST, *overrides])

    yield run
    logging.getLogger().handlers[:] = handlers
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(train, root):
    dev = ["data.dev=[one.jsonl]", "data.styles=[full,sparing,full]", "data.weights=[1,0.5]"]
    assert train(f"output={root / 'model'}", *dev) == 0
    return root / "model"


def test_the_style_is_a_choice_at_load(model, capsys):
    pairs = [example.pair for example in layerless(corpus(10, seed=5))]
    loaded = {style: jacana_torch.load(model, style=style) for style in (None, "full", "sparing")}
    links = {style: one.align(pairs) for style, one in loaded.items()}
    count = {style: sum(len(alignment.sure) for alignment in found) for style, found in links.items()}
    assert count["sparing"] < count["full"]
    assert loaded["full"].origin.signature["styles"] == ["full", "sparing"]
    assert loaded["full"].origin.signature["weights"] == [1, 0.5]


def test_commands_take_a_style(model, root, capsys):
    words = corpora.read(str(root / "one.jsonl"))
    source, target = (" ".join(side.tokens) for side in vars(next(words).pair).values() if hasattr(side, "tokens"))
    (root / "pair.txt").write_text(f"{source}\t{target}\n")
    given = ["--model", str(model), "--style"]
    expected = str(jacana_torch.load(model, style="sparing").align([(source.split(), target.split())])[0])
    assert main(["align", str(root / "pair.txt"), *given, "sparing", "--pretokenized", "--workers", "1"]) == 0
    assert capsys.readouterr().out.strip() == expected
    folder = root / "out"
    assert main(["align", str(root / "pair.txt"), *given, "sparing", "--pretokenized", "-o", f"{folder}/"]) == 0
    assert (folder / "part-000000.pharaoh").read_text().strip() == expected
    capsys.readouterr()
    assert main(["explain", source, target, *given, "sparing", "--pretokenized", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert " ".join(f"{link['source']}-{link['target']}" for link in found["links"] if link["linked"]) == expected
    assert main(["view", str(root / "pair.txt"), *given, "full", "-o", str(root / "page.html")]) == 0


def test_what_links_are_for_takes_a_style(model, root, capsys):
    """Of a corpus in which words are replaced by others, a convention that links equal words alone covers less."""
    found = {}
    for style in ("full", "sparing"):
        assert main(["coverage", str(root / "one.jsonl"), "--json", "--model", str(model), "--style", style]) == 0
        found[style] = json.loads(capsys.readouterr().out)
    assert found["sparing"]["coverage"] < found["full"]["coverage"]
    assert "model:model, style full|" in found["full"]["signature"]


@pytest.mark.parametrize(
    "command",
    [
        ["align", "pair.txt"], ["explain", "a b", "a"], ["view", "pair.txt"], ["serve", "--port", "0"],
        ["diff", "pair.txt", "other.txt"], ["coverage", "pair.txt"], ["project", "spans.jsonl", "other.txt"],
    ],
)  # fmt: skip
def test_a_style_that_a_model_lacks_is_a_mistake(command, model, root, capsys, monkeypatch):
    monkeypatch.chdir(root)
    (root / "pair.txt").write_text("a b\ta\n")
    (root / "other.txt").write_text("a\n")
    (root / "spans.jsonl").write_text('{"text": "a b", "spans": [{"start": 0, "end": 1, "label": "L"}]}\n')
    assert main([*command, "--model", str(model), "--style", "spring"]) == 2
    assert (
        "model: there is no style 'spring'; did you mean sparing? There are full, sparing"
        in capsys.readouterr().err
    )
    assert main([*command, "--model", "core", "--style", "spring"]) == 2
    assert "core: there is no style 'spring': this model has learnt one convention" in capsys.readouterr().err


def test_models_lists_the_styles():
    from jacana_torch.model.card import text

    signature = {"trained": "2026-01-01", "pairs": 3, "data": ["a"], "styles": ["full", "sparing"]}
    info = ModelInfo("mine", Path("."), "", (), 0, signature)
    assert "styles: full, sparing (align --style NAME)" in text(info, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"styles": ["full"]}, "names 1 conventions for 2 files of data.train and 0 of data.dev"),
        ({"styles": ["full", 2]}, "2 is not a name of letters"),
        ({"weights": [1]}, "give a number above 0 for each of the 2"),
        ({"weights": [1, 0]}, "give a number above 0 for each of the 2"),
        ({"weights": [1, float("inf")]}, "give a number above 0 for each of the 2"),
    ],
)
def test_what_does_not_fit_the_corpora_is_a_mistake(root, given, message):
    with pytest.raises(ConfigError, match=message):
        data.load({**corpora_in(root), **given})


def test_an_aligner_that_would_ignore_it_says_so(root, capsys):
    files = [f"data.root={root}", "data.train=[one.jsonl,two.jsonl]", "annotate=none", "logger=none"]
    assert main(["train", "aligner=ibm1", *files, "data.styles=[a,b]"]) == 2
    assert "does not tell conventions apart" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="counts every pair alike"):
        check_corpora({"weights": [1, 2]}, Bidirectional(Ibm1(), Ibm1()))


def test_what_is_made_of_a_pair_has_its_style_and_weight():
    class Same:
        weight, requires, resources = 0.5, (), ()

        def make(self, examples, random):
            return list(examples)

    class Nothing:
        provides = ()

        def __call__(self, pairs):
            return list(pairs)

    examples = [replace(e, style="full", weight=0.5) for e in layerless(corpus(3))]
    *_, last = Augmentation({"same": Same()}, Nothing())(examples, list)
    assert (last.style, last.weight, last.origin) == ("full", 0.25, "same")


def corpora_in(root) -> dict:
    return {"train": ["one.jsonl", "two.jsonl"], "dev": [], "root": str(root), "drop_ids": [], "limit": None}


def test_each_corpus_may_have_a_limit(root):
    every, some = (data.load({**corpora_in(root), "limit": most}).train for most in ([None, None], [2, None]))
    assert [e.pair for e in some] == [
        e.pair for e in [*every[:2], *data.load(corpora_in(root)).train[len(every) // 2 :]]
    ]
    for wrong in ([1], [1, 0], [1, "x"], [1, 2.5], [True, 1]):
        with pytest.raises(ConfigError, match="one for each file of data.train"):
            data.load({**corpora_in(root), "limit": wrong})


def test_corpora_bring_their_styles(root):
    found = data.load({**corpora_in(root), "styles": ["full", None], "weights": [2, 1]}).train
    assert {(e.style, e.weight) for e in found} == {("full", 2.0), (None, 1.0)}
