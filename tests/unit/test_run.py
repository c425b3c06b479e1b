"""`jacana-torch train` on a small corpus of templates, in this process if that is enough."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from templates import corpus, layerless
from variants import variants

import jacana_torch
from jacana_torch import corpora
from jacana_torch.aligners.crf import Crf
from jacana_torch.cli import hydra, main
from jacana_torch.evaluate import score as score_of

ROOT = Path(__file__).parents[2]
FAST = ["annotate=none", "features=[string,position,distortion]", "trainer.max_iterations=40", "logger=none"]
FAST += ["symmetrize=intersection"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with corpora: with and without layers, and a sidecar."""
    folder = tmp_path_factory.mktemp("corpora")
    corpora.write(corpus(40), str(folder / "layers.jsonl"), "jsonl")
    bare = layerless(corpus(40))
    corpora.write(bare, str(folder / "words.jsonl"), "jsonl")
    corpora.write(layerless(corpus(12, seed=2)), str(folder / "dev.jsonl"), "jsonl")
    for name, examples in (("words", corpus(40)), ("dev", corpus(12, seed=2))):
        sidecar(folder / f"{name}.parse.jsonl", examples)
    (folder / "some-ids.txt").write_text("".join(f"{e.pair.id}\n" for e in bare[:10]))
    return folder


def sidecar(path: Path, examples) -> None:
    rows = []
    for e in examples:
        row = {"id": e.pair.id}
        for side in ("source", "target"):
            layers = getattr(e.pair, side).layers
            row |= {f"{side}_pos": list(layers["pos"]), f"{side}_deprels": list(layers["deprel"])}
            row |= {f"{side}_heads": [head + 1 for head in layers["head"]]}
        rows.append(json.dumps(row) + "\n")
    path.write_text("".join(rows))


@pytest.fixture
def train(files, tmp_path, capsys, monkeypatch):
    """Run in this process: (exit code, lines of stdout, stderr). Leaves logging and threads as they were."""
    root, threads = logging.getLogger(), torch.get_num_threads()
    handlers, level = root.handlers[:], root.level
    monkeypatch.chdir(tmp_path)

    def call(*overrides: str, corpus: str = "words.jsonl", fast: bool = True) -> tuple[int, list[str], str]:
        given = [f"data.root={files}", f"data.train=[{corpus}]", *(FAST if fast else []), *overrides]
        code = main(["train", *given])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    yield call
    root.handlers[:], root.level = handlers, level
    torch.set_num_threads(threads)


def trained(done: tuple[int, list[str], str]) -> Path:
    """The model directory of a successful run, which is all of its stdout."""
    code, out, err = done
    assert code == 0, err
    assert len(out) == 1, out
    return Path(out[0])


def read(directory: Path, name: str) -> dict:
    return json.loads((directory / name).read_text())


# What a run leaves


def test_stdout_is_the_model_and_it_aligns(train):
    directory = trained(train())
    model = jacana_torch.load(directory)
    assert model.align([("the old boat", "the ancient boat")])[0].links == [(0, 0), (1, 1), (2, 2)]
    run_folder = directory.parent
    assert (run_folder / ".hydra" / "overrides.yaml").is_file() and (run_folder / "train.log").stat().st_size
    config, signature = read(directory, "config.json"), read(directory, "signature.json")
    assert config["resources"] == [] and config["model"]["annotate"] is None
    assert signature["pairs"] == 40 and signature["interrupted"] is False and signature["data"] == ["words.jsonl"]
    assert set(signature["f1"]) >= {"forward", "backward", "intersection", "union", "grow_diag_final_and"}
    scores = read(run_folder, "scores.json")
    assert scores["intersection"]["f1"] == pytest.approx(signature["f1"]["intersection"], abs=1e-6)
    assert "intersection" in (run_folder / "train.log").read_text()


def test_output_names_the_model_directory_and_replaces_only_models_and_only_if_asked(train, tmp_path):
    assert train("output=mine")[1] == ["mine"]
    first = (tmp_path / "mine" / "weights.safetensors").read_bytes()
    code, out, err = train("output=mine", "trainer.l2=30")
    assert (code, out) == (2, []) and "overwrite=true" in err and "pairs to train on" not in err
    assert (tmp_path / "mine" / "weights.safetensors").read_bytes() == first
    assert trained(train("output=mine", "trainer.l2=30", "overwrite=true")) == Path("mine")
    assert (tmp_path / "mine" / "weights.safetensors").read_bytes() != first
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    code, out, err = train("output=mine", "overwrite=true")
    assert (code, out) == (2, []) and "thesis.tex" in err
    assert (tmp_path / "mine" / "thesis.tex").exists() and len(list((tmp_path / "mine").iterdir())) == 4
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_the_description_and_the_settings_are_kept_with_the_model(train):
    directory = trained(train("description=a trial", "trainer.l2=7.5"))
    assert read(directory, "config.json")["description"] == "a trial"
    assert read(directory, "config.json")["model"]["aligner"]["backward"]["l2"] == 7.5
    assert "trainer.l2=7.5" in read(directory, "signature.json")["overrides"]


def test_a_tilde_is_the_home_directory(train, files, monkeypatch):
    monkeypatch.setenv("HOME", str(files.parent))
    assert (trained(train(f"data.root=~/{files.name}")) / "config.json").is_file()


def test_dev_pairs_are_scored(train):
    directory = trained(train("data.dev=[dev.jsonl]"))
    assert read(directory, "signature.json")["measured_on"] == ["dev.jsonl"]
    assert read(directory.parent, "scores.json")["forward"]["pairs"] == 12


def test_pairs_are_left_out_by_id_and_by_limit(train):
    code, out, err = train("data.drop_ids=[some-ids.txt]")
    assert code == 0 and "10 pairs left out" in err and "30 pairs to train on" in err
    assert "25 pairs to train on" in train("data.drop_ids=[some-ids.txt]", "data.limit=25")[2]
    assert "no-such-ids" in train("data.drop_ids=[no-such-ids.txt]")[2]


def test_possible_links_count_with_the_option(train, files):
    lines = [json.loads(line) for line in (files / "words.jsonl").read_text().splitlines()]
    for row in lines:
        row["possible"] = row["sure"][1:]
        row["sure"] = row["sure"][:1]
    (files / "possible.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    sure, every = (
        read(trained(train(f"links={links}", corpus="possible.jsonl")).parent, "scores.json")["union"]
        for links in ("sure", "all")
    )
    assert sure["gold_links"] == 40 and every["gold_links"] > 200
    assert sure["links"] == "sure" and every["links"] == "all"


def test_the_aligner_is_built_once(train, monkeypatch):
    built, initialise = [], Crf.__post_init__
    monkeypatch.setattr(Crf, "__post_init__", lambda self: built.append(self) or initialise(self))
    trained(train())
    assert len(built) == 2, "one per direction"


# Families and annotators


def test_a_dropped_family_is_gone_from_the_model(train):
    directory = trained(train("drop=[position,wordnet]"))  # wordnet is known, and not on anyway
    families = read(directory, "config.json")["model"]["aligner"]["forward"]["families"]
    assert list(families) == ["string", "distortion"]
    names = jacana_torch.load(directory).aligner.forward.names
    assert {name.split(".")[0] for name in names} == {"string", "distortion"}


def test_an_unknown_family_is_an_error_that_lists_the_known(train):
    code, out, err = train("drop=[positon]")
    assert (code, out) == (2, []) and "positon" in err and "wordnet" in err and "Traceback" not in err
    code, out, err = train("drop=[string,position]", "features=[string,position]")
    assert (code, out) == (2, []) and "all were dropped" in err


def test_without_families_that_read_layers_no_annotator_is_needed(train, monkeypatch):
    from jacana_torch import resources

    def missing(name):
        raise AssertionError(f"{name} was asked for")

    monkeypatch.setattr(resources, "path", missing)
    families = "features=[string,pos,wordnet]"
    directory = trained(train("annotate=nltk", families, "drop=[pos,wordnet]"))
    config = read(directory, "config.json")
    assert config["model"]["annotate"] is None and config["resources"] == []


def test_missing_resources_are_reported_before_any_work(train, monkeypatch, tmp_path):
    for name in ("JACANA_DATA", "NLTK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JACANA_PPDB", str(tmp_path / "nowhere"))
    code, out, err = train("features=[string,ppdb]", "features.ppdb.lemma=false", "annotate=nltk")
    assert (code, out) == (2, []) and "JACANA_PPDB" in err and "pairs to train on" not in err


def test_missing_layers_are_reported_before_any_work(train):
    code, out, err = train("annotate=nltk", "features=[string,dependency]")
    assert (code, out) == (2, []) and "head" in err and "annotate=spacy" in err
    assert "pairs to train on" not in err


def test_corpora_may_have_their_own_layers(train):
    directory = trained(train("features=[string,pos,dependency]", corpus="layers.jsonl"))
    assert any(name.startswith("dependency.") for name in jacana_torch.load(directory).aligner.forward.names)
    code, out, err = train("features=[string,pos]")  # these have none
    assert (code, out) == (2, []) and "annotate=nltk" in err


def test_given_annotation_comes_from_the_sidecars_in_order(train):
    given = ["annotate=given", "annotate.lemmas=lower", "features=[string,pos,dependency]", "data.dev=[dev.jsonl]"]
    both = "data.sidecar=[words.parse.jsonl,dev.parse.jsonl]"
    plain = trained(train(*given, both))
    assert read(plain, "config.json")["model"]["annotate"] is None
    from_layers = trained(train("features=[string,pos,dependency]", corpus="layers.jsonl"))
    assert jacana_torch.load(plain).aligner.forward.names == jacana_torch.load(from_layers).aligner.forward.names
    # matched before pairs are left out
    trained(train(*given, both, "data.limit=7", "data.drop_ids=[some-ids.txt]"))
    code, _, err = train(*given)
    assert code == 2 and "data.sidecar" in err
    code, _, err = train(*given, "data.sidecar=[a.mst,b.mst,c.mst]")
    assert code == 2 and "words.jsonl, dev.jsonl" in err
    code, _, err = train(*given, "data.sidecar=[dev.parse.jsonl,words.parse.jsonl]")
    assert code == 2 and "parse.jsonl" in err and "Traceback" not in err


# Cross-validation and sweeps


def test_cross_validation_scores_every_pair_and_writes_predictions_but_no_model(train, files):
    code, out, err = train("cv=5", "workers=1")
    assert code == 0 and len(out) == 1
    folder = Path(out[0])
    assert not (folder / "model").exists()
    scores = read(folder, "scores.json")
    assert scores["intersection"]["pairs"] == 40
    gold, answers = (list(corpora.read(path)) for path in (files / "words.jsonl", folder / "predictions.jsonl"))
    assert [e.pair.source.tokens for e in answers] == [e.pair.source.tokens for e in gold]
    own = score_of([e.gold for e in gold], [e.gold for e in answers])
    assert own.f1 == pytest.approx(scores["intersection"]["f1"])
    assert "fold 5 of 5" in err and "5-fold cross-validation over 40 pairs" in err
    for bad in ("cv=1", "cv=41", "cv=x"):
        assert train(bad)[0] == 2
    assert "no such run" in train("cv=2", "resume=somewhere")[2]


@pytest.mark.slow
def test_the_score_is_what_a_sweep_maximises(train, files, capsys):
    given = [f"data.root={files}", "data.train=[words.jsonl]", *FAST, "data.dev=[dev.jsonl]"]
    single = [hydra.train([*given, f"trainer.l2={l2}"]) for l2 in ("1", "1000")]
    folders = capsys.readouterr().out.splitlines()
    for (score,), folder in zip(single, folders, strict=True):
        assert score == read(Path(folder).parent, "scores.json")["intersection"]["f1"]
    both = hydra.train([*given, "-m", "trainer.l2=1,1000"])
    out, err = capsys.readouterr()
    assert both == [single[0][0], single[1][0]] and len(set(both)) == 2
    assert len(out.splitlines()) == 2
    ranked = [line.split() for line in err.splitlines() if line.split()[1:2] and "trainer.l2=" in line.split()[1]]
    assert [f"{100 * score:.2f}" for score in sorted(both, reverse=True)] == [row[0] for row in ranked]


def test_a_family_that_hydra_cannot_read_is_reported(tmp_path, capsys):
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "mine.yaml").write_text("mine: {null: true}")
    assert main(["train", "--config-dir", str(tmp_path), "+features=[mine]"]) == 2
    out, err = capsys.readouterr()
    assert not out and "Incompatible key type" in err and "mine" in err


@pytest.mark.slow
def test_a_sweep_by_name(train):
    code, out, err = train("-m", "+sweep=l2", "data.limit=10", "trainer.max_iterations=5")
    assert code == 0 and len(out) == 4
    used = [read(Path(d), "config.json")["model"]["aligner"]["forward"]["l2"] for d in out]
    assert len(set(used)) == 4


def test_a_sweep_does_its_other_jobs_and_then_fails(train):
    overrides = ["-m", "drop=[],[string],[string,position]", "features=[string,position]", "data.limit=10"]
    code, out, err = train(*overrides, "trainer.max_iterations=5")
    assert code == 2 and len(out) == 2
    assert "drop=[string,position]" in err and "failed: " in err and err.count("all were dropped") == 2
    assert err.rstrip().splitlines()[-1].startswith("jacana-torch: error:")


# Mistakes


@pytest.mark.parametrize(
    ("override", "says"),
    variants(
        [
            ("experiment=nope", "msr"),
            ("features=[nope]", "wordnet"),
            ("symmetrize=nope", "grow_diag,"),
            ("trainer.l2=strong", "l2"),
            ("trainer.l2=-1", "positive"),
            ("trainer.max_iterations=0", "max_iterations"),
            ("trainer.l3=1", "l3"),
            ("trainer.device=abacus", "abacus"),
            ("trainer.threads=many", "threads"),
            ("aligner.forward.policy=best", "monotone"),
            ("aligner.forward.policy=[first,best]", "monotone"),
            ("aligner.forward.policy=[[first]]", "monotone"),
            ("aligner.forward.policy=[]", "monotone"),
            ("aligner.forward.policy=3", "monotone"),
            ("data.limit=none", "data.limit"),
            ("data.limit=0", "data.limit"),
            ("data.limit=-5", "data.limit"),
            ("links=some", "sure"),
            ("resume=nowhere", "nowhere"),  # before the corpus is read
            ("aligner=null", "must be a string or a list"),
            ("~aligner", "aligner"),
            ("seed=${nope}", "nope"),
            ("seed=[", "'['"),
            ("--config-dir=/no/such/folder", "/no/such/folder"),
            ("--config-name=nope", "nope"),
            ("hydra/launcher=nope", "basic"),
            ("aligner._target_=os.system", "JACANA_TRUST"),
            ("aligner._target_=jacana_torch.types.Sentence", "jacana_torch.types.Sentence"),
            ("+aligner.forward.colour=red", "colour"),
        ],
        always=14,
    ),
)
def test_mistakes_are_short_and_exit_with_2(train, override, says):
    code, out, err = train(override)
    assert (code, out) == (2, []), err
    message = err[err.index("jacana-torch: error:") :]
    assert says in message and "Traceback" not in err and "Config search path" not in err
    assert len(message.splitlines()) <= 4


def test_files_that_cannot_be_trained_on_are_named(train, files):
    (files / "unaligned.txt").write_text("a b\tc\n")
    (files / "empty.jsonl").write_text("")
    for name in ("unaligned.txt", "empty.jsonl", "nowhere.jsonl"):
        code, out, err = train(corpus=name)
        assert (code, out) == (2, []) and name in err


def test_a_file_of_this_folder_is_not_taken_for_one_of_data_root(train, files):
    Path("here.jsonl").write_bytes((files / "words.jsonl").read_bytes())
    code, _, err = train(corpus="here.jsonl")
    assert code == 2 and f"{files}/here.jsonl: there is no such file" in err and "write $PWD/here.jsonl" in err


@pytest.mark.slow
def test_the_module_is_the_same_command(files, tmp_path):
    """Nothing heavy is loaded to report a mistake."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "jacana_torch.cli.hydra",
        f"data.root={files}",
        "data.train=[words.jsonl]",
        *FAST,
    ]

    def start(*more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*command, *more], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60
        )

    done = start("output=model")
    assert (done.returncode, done.stdout) == (0, "model\n"), done.stderr
    done = start("drop=[nope]")
    assert (done.returncode, done.stdout) == (2, "") and "jacana-torch: error: drop=['nope']" in done.stderr
    assert "Traceback" not in done.stderr


def test_overrides_that_do_not_compose_are_reported_without_loading_torch():
    code = (
        "import sys; from jacana_torch.cli import main; main(['train', 'seed=[']); print('torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.stdout == "False\n" and "error" in done.stderr
