"""What the files of a model directory may hold: everything else is an error that names the file."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from templates import corpus

from jacana_torch.cli import main
from jacana_torch.errors import ModelError
from jacana_torch.model import persist

FAMILIES = {
    name: {"_target_": f"jacana_torch.features.families.{name}.{name.title()}"}
    for name in ("string", "pos", "distortion")
}
CRF = {"_target_": "jacana_torch.aligners.crf.Crf", "families": FAMILIES, "max_iterations": 15}
BOTH = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional", "forward": CRF, "backward": CRF}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": BOTH}}
    model = persist.build(config["model"])
    model.aligner.fit(corpus(12))
    return persist.save(model, tmp_path_factory.mktemp("models") / "made", config, {"pairs": 12})


@pytest.fixture
def directory(saved, tmp_path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def change(directory: Path, how) -> None:
    config = json.loads((directory / "config.json").read_text())
    how(config)
    (directory / "config.json").write_text(json.dumps(config))


# Weights


def header_of(directory: Path) -> tuple[dict, bytes]:
    content = (directory / "weights.safetensors").read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def write_weights(directory: Path, header: dict | str, data: bytes) -> None:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    (directory / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


DTYPES = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
    "bool",
)  # fmt: skip


def test_weights_are_read_as_the_library_reads_them(tmp_path):
    from safetensors import safe_open

    rng = np.random.default_rng(1)
    shapes = ((), (0,), (3,), (2, 5), (0, 4), (1, 1, 2))
    state = {
        f"{dtype}.{shape}": np.asarray(9 * rng.normal(size=shape)).astype(dtype)
        for dtype in DTYPES
        for shape in shapes
    }
    state["words"] = ["a", "ä", "\u2028", ""]
    persist._write_state(tmp_path / "made", state)
    for path in (tmp_path / "made", *persist.SHIPPED.glob("*/weights.safetensors")):
        found = persist._read_weights(path)
        with safe_open(path, framework="numpy") as file:
            arrays = {key: file.get_tensor(key) for key in file.keys()}
            words = {key: json.loads(value) for key, value in file.metadata().items() if key != "jacana_torch"}
        assert found.keys() == arrays.keys() | words.keys()
        assert all(found[key] == value for key, value in words.items())
        for key, value in arrays.items():
            assert found[key].dtype == value.dtype and found[key].shape == value.shape
            assert np.array_equal(found[key], value) and found[key].flags.writeable


def test_arrays_that_no_model_has(directory):
    header, data = header_of(directory)
    own = header["forward.weights"]
    n, size = own["shape"][0], len(data)
    wrong = [
        ({"dtype": "BF16"}, "is in BF16"), ({"dtype": "F8_E4M3"}, "is in F8_E4M3"),
        ({"dtype": None}, "is in None"), ({"dtype": ["F64"]}, ""), ({"dtype": "F32"}, ""),
        ({"dtype": "I64"}, "not between"),
        ({"dtype": "BOOL", "shape": [8 * n]}, "array of numbers"), ({"shape": [n + 1]}, "should be in bytes"),
        ({"shape": [n, 1]}, "has the shape"), ({"shape": [-n]}, "has the shape"), ({"shape": n}, ""),
        ({"shape": [10**30, 10**30]}, "should be in bytes"), ({"shape": [2**60, [1]]}, "has the shape"),
        ({"shape": [True] * n}, ""), ({"data_offsets": [0, size + 8]}, ""), ({"data_offsets": [8, 8]}, ""),
        ({"data_offsets": []}, ""), ({"data_offsets": None}, ""),
    ]  # fmt: skip
    for change, says in wrong:
        write_weights(directory, {**header, "forward.weights": {**own, **change}}, data)
        with pytest.raises(ModelError, match=rf"weights\.safetensors: .*{says}"):
            persist.load(directory)
    for more, says in (
        ({"x": {"dtype": "F64", "shape": [0], "data_offsets": [size, size]}}, "holds x, which the aligner"),
        ({"forward.x": {"dtype": "F64", "shape": [0], "data_offsets": [size, size]}}, "holds forward.x"),
        (
            {"x": {"dtype": "F64", "shape": [1], "data_offsets": [size, size + 8]}},
            "should be in bytes .* Copy or train it again",
        ),
        ({"x": own}, "should be in bytes"),
        ({"x": 5}, "cannot be read"),
        ({"forward.names": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}}, "both words and numbers"),
    ):
        write_weights(directory, {**header, **more}, data)
        with pytest.raises(ModelError, match=rf"weights\.safetensors: .*{says}"):
            persist.load(directory)
    write_weights(directory, header, data + b"more")
    with pytest.raises(ModelError, match="4 bytes belong to no array"):
        persist.load(directory)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_weights_that_are_no_weights(directory, value):
    state = dict(persist._read_weights(directory / "weights.safetensors"))
    state["backward.weights"][3] = value
    persist._write_state(directory / "weights.safetensors", state)
    with pytest.raises(ModelError, match=r"weights\.safetensors: .*not finite"):
        persist.load(directory)
    persist._write_state(directory / "weights.safetensors", {"any": np.array([[1.0, value]])})
    if not np.isfinite(value):  # whatever the aligner
        with pytest.raises(ModelError, match="'any' holds numbers that are not finite"):
            persist.read_state(directory)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2]", "not a list of words"), ("{}", "not a list of words"), ("5", "not a list of words"), ("", ""),
        ('"string.a"', "not a list of words"), ("[" * 990 + "]" * 990, ""), ('[["a"]]', "not a list of words"),
        ('["\\ud800"]', "surrogate"), ("[NaN]", "NaN is not a number"), ("9" * 5000, ""), (None, ""), (["a"], ""),
    ],
)  # fmt: skip
def test_names_that_are_no_names(directory, text, says):
    header, data = header_of(directory)
    header["__metadata__"]["forward.names"] = text
    write_weights(directory, header, data)
    with pytest.raises(ModelError, match=rf"weights\.safetensors: .*{says}"):
        persist.load(directory)


def test_headers_that_are_no_headers(directory):
    header, data = header_of(directory)
    text = json.dumps(header)
    twice = text.replace('"forward.weights"', '"backward.weights": {}, "forward.weights"', 1)
    twice_words = text.replace('"forward.names"', '"backward.names": "[]", "forward.names"', 1)
    for wrong in (twice, twice_words, text[:-1], "[]", "5", "{", "", "\x00", "[" * 2000):
        write_weights(directory, wrong, data)
        with pytest.raises(ModelError, match=r"weights\.safetensors"):
            persist.load(directory)
    for size in (0, 2**63, 2**64 - 1, len(text) + len(data) + 1, len(text) - 1, 10):
        content = size.to_bytes(8, "little") + text.encode() + data
        (directory / "weights.safetensors").write_bytes(content)
        with pytest.raises(ModelError, match=r"weights\.safetensors"):
            persist.load(directory)


def renamed(names: list[str], old: str, new: str) -> list[str]:
    return [name.replace(old, new) for name in names]


@pytest.mark.parametrize("part", ["forward", "backward"])
def test_columns_are_those_of_the_families(directory, part):
    state = persist._read_weights(directory / "weights.safetensors")
    names, path = list(state[f"{part}.names"]), directory / "weights.safetensors"
    for wrong, says in (
        (["x", *names[1:]], "1 columns belong to no feature family of the config, the first 'x'"),
        (renamed(names, "pos.", "poss."), "belong to no feature family .* families are string, pos, distortion"),
        (renamed(names, "pos.", "string.pos."), "no weights for the feature families pos"),
        (renamed(names, "distortion.", "string.d."), "no weights for the feature families distortion"),
        (renamed(names, "distortion.same", "distortion.sane"), "'distortion' has no column 'distortion.sane'"),
        (renamed(names, "distortion.same", "distortion.gap_same"), "has no column"),
        (names[:-1], "names"),
        ([names[0], names[0], *names[2:]], "distinct"),
    ):
        persist._write_state(path, {**state, f"{part}.names": wrong})
        with pytest.raises(ModelError, match=rf"weights\.safetensors: .*{says}"):
            persist.load(directory)
    persist._write_state(path, {**state, f"{part}.names": [], f"{part}.weights": np.zeros(0)})
    persist.load(directory)  # untrained


def test_weights_of_another_model(directory):
    for name, add in (("kinds", True), ("pos", False)):
        config = json.loads((directory / "config.json").read_text())
        families = config["model"]["aligner"]["forward"]["families"]
        if add:
            families[name] = {"_target_": f"jacana_torch.features.families.{name}.{name.title()}"}
        else:
            del families[name]
        other = directory.parent / name
        shutil.copytree(directory, other)
        (other / "config.json").write_text(json.dumps(config))
        with pytest.raises(ModelError, match=rf"weights\.safetensors: forward: .*{name}"):
            persist.load(other)


def test_pruned_models_may_lack_families(directory):
    change(directory, lambda config: config["model"]["aligner"]["forward"].update(prune=0.1))
    state = persist._read_weights(directory / "weights.safetensors")
    kept = [k for k, name in enumerate(state["forward.names"]) if not name.startswith("pos.")]
    state["forward.names"] = [state["forward.names"][k] for k in kept]
    state["forward.weights"] = state["forward.weights"][kept]
    persist._write_state(directory / "weights.safetensors", state)
    assert len(persist.load(directory).aligner.forward.names) == len(kept)


# Configs


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"format": 1, "format": 1, "model": {}}', "the key 'format' stands there twice"),
        ('{"format": 1, "model": {"a": NaN}}', "NaN is not a number"),
        ('{"format": 1, "model": {"a": -Infinity}}', "-Infinity is not a number"),
        ('{"format": true, "model": {}}', "format 'True'"),
        ('{"format": 1.0, "model": {}}', "format '1.0'"),
        ('{"format": 1, "model": {}, "extra": 1}', "'extra' is a int"),
        ('{"format": 1, "model": {}, "description": 1}', "'description' is a int"),
        ('{"format": 1, "model": {}, "resources": "wordnet"}', "'resources' is a str"),
        ('{"format": 1, "model": {}, "resources": [1]}', "'resources' should be a list of names"),
        ('{"format": 1, "model": {"a": 1e999}}', "should be a Model"),
        ('{"format": 1, "model": {"a": ' + "9" * 5000 + "}}", "JSON"),
        ('{"format": 1, "model": ' + "[" * 900 + "]" * 900 + "}", "'model' is a list"),
        ('{"format": 1, "model": {"a": ' + "[" * 900 + "]" * 900 + "}}", "nested more than 40"),
        (" " * (1 << 24) + "{}", "bytes"),
    ],
)
def test_configs_that_are_none(directory, text, says):
    (directory / "config.json").write_text(text)
    with pytest.raises(ModelError, match=rf"config\.json: .*{says}"):
        persist.load(directory)


def test_pipes_are_not_read(directory):
    for name in ("config.json", "weights.safetensors", "signature.json"):
        (directory / name).rename(directory / "kept")
        os.mkfifo(directory / name)
        with pytest.raises(ModelError, match=name):
            persist.load(directory)
        (directory / name).unlink()
        (directory / "kept").rename(directory / name)


def test_files_that_a_model_names_need_trust(directory, tmp_path, monkeypatch):
    """Also those that are only read in aligning; a pipe would hold it up."""
    os.mkfifo(tmp_path / "pipe")
    for name, settings in (("distsim", {"own": False, "counts": str(tmp_path / "pipe")}),
                           ("contextual", {"encoder": str(tmp_path)})):  # fmt: skip
        target = {"distsim": "distsim.DistSim", "contextual": "contextual.Contextual"}[name]
        family = {"_target_": f"jacana_torch.features.families.{target}", **settings}
        families = {**FAMILIES, "x": family}
        change(
            directory, lambda config, given=families: config["model"]["aligner"]["forward"].update(families=given)
        )
        with pytest.raises(ModelError, match=rf"config\.json: .*JACANA_TRUST={tmp_path}"):
            persist.load(directory)
        with monkeypatch.context() as patch:
            patch.setenv("JACANA_TRUST", str(tmp_path))
            with pytest.raises(ModelError, match="no weights for"):
                persist.load(directory)


def test_the_command_line_says_what_is_wrong_with_a_model(directory, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b\tb a\n")))
    change(directory, lambda config: config["model"]["aligner"].update(symmetrize=1))
    assert main(["align", "--model", str(directory)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    assert f"{directory}/config.json: " in err and "symmetrize=1 should be a function" in err
