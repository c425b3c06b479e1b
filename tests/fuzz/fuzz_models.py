"""Small trained models, and ways to damage their directories, each drawn from a seed."""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
import struct
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from templates import corpus

import jacana_torch
from jacana_torch.model import persist

MODEL = "jacana_torch.model.model.Model"
BOTH = "jacana_torch.aligners.bidirectional.Bidirectional"


def _families(*names: str) -> dict[str, Any]:
    """The configs of families by name, `module.Class`."""
    return {
        name.split(".")[0]: {"_target_": f"jacana_torch.features.families.{name}"}
        for name in (*names, "distortion.Distortion")
    }


def _both(direction: dict[str, Any], symmetrize: Any = "union", target: str = BOTH) -> dict[str, Any]:
    return {"_target_": target, "forward": direction, "backward": direction, "symmetrize": symmetrize}


def _chain(*names: str, **settings: Any) -> dict[str, Any]:
    target = "jacana_torch.aligners.crf.Crf"
    return {"_target_": target, "families": _families(*names), "max_iterations": 15, "l2": 1.0, **settings}


def _configs() -> dict[str, Any]:
    posterior = {"_target_": "jacana_torch.aligners.posterior.Posterior", "folds": 0, "threshold": 0.5}
    union = {"_target_": "jacana_torch.symmetrize.union", "_partial_": True}
    systems = "jacana_torch.systems"
    own = {"own": True, "steps": [0.5], "vectors": [], "counts": None}
    network = {
        "_target_": "jacana_torch.aligners.neural.neural.Neural", "families": _families("string.String"),
        "width": 4, "blocks": 1, "epochs": 1, "layers": [], "rarest": 2, "encoder": None, "start": None,
    }  # fmt: skip
    remembering = _chain("string.String", "context.Context", remember=True, priors={"string.": 2.0})
    with_parse = _chain("position.Position", "dependency.Dependency", "ner.Ner")
    with_parse["families"]["distsim"] = {"_target_": "jacana_torch.features.families.distsim.DistSim", **own}
    hmm = {"_target_": f"{systems}.unsupervised.unsupervised.Hmm", "iterations": 2, "text": []}
    phrase = {**_chain("string.String"), "_target_": f"{systems}.phrase.phrase_crf.PhraseCrf", "longest": 2}
    edits = {"wordnet": False, "vectors": None, "epochs": 2, "burn_in": 0, "max_phrase": 2}
    return {
        "posterior": _both(remembering, posterior),
        "parse": _both(with_parse, union),
        "phrase": _both(phrase, "backward"),
        "mixed": {
            "_target_": "jacana_torch.aligners.neural.mixed.Mixed", "network": network,
            "linear": _both(_chain("pos.Pos")), "weights": [0.5, 0.5],
        },
        "agreement": _both(hmm, "intersection", f"{systems}.unsupervised.unsupervised.Agreement"),
        "manli": {"_target_": f"{systems}.manli.manli.ManliExact", **edits},
        "stanford": {"_target_": f"{systems}.stanford.stanford.Stanford", **dict.fromkeys(("wordnet",), False),
                     "vectors": None, "epochs": 2},
        "words": {"_target_": f"{systems}.bag_of_words.BagOfWords", "ties": "first", "frequencies": None},
        "sultan": {"_target_": f"{systems}.sultan.sultan.TunedSultan", "paraphrases": "none", "grid": [0.5, 0.9]},
    }  # fmt: skip


def models(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of each small model, by name, and those of `core`."""
    found = {"core": persist.SHIPPED / "core"}
    for name, aligner in _configs().items():
        config = {"_target_": MODEL, "aligner": aligner, "annotate": None}
        model = persist.build(copy.deepcopy(config))
        model.aligner.fit(corpus(8))
        about = {"description": "small", "resources": list(model.resources), "model": config}
        found[name] = persist.save(model, folder / name, about, {"pairs": 8})
    return {name: {path.name: path.read_bytes() for path in sorted(at.iterdir())} for name, at in found.items()}


@cache
def targets() -> tuple[str, ...]:
    """Every class and function of the package, and some that are of Python."""
    names = ["os.system", "subprocess.Popen", "pathlib.Path", "builtins.eval", "jacana_torch", ""]
    for module in pkgutil.walk_packages(jacana_torch.__path__, "jacana_torch."):
        if module.name.endswith("__main__"):
            continue
        try:
            found = importlib.import_module(module.name)
        except ModuleNotFoundError:  # a library that is an extra
            continue
        for name, value in vars(found).items():
            if callable(value) and not name.startswith("__"):
                names.append(f"{module.name}.{name}")
    return tuple(sorted(names))


# JSON

CHOICES = (
    "backward", "both", "cells", "chains", "diagonal", "exact", "first", "forward", "grow-diag", "intersection",
    "last", "lower", "monotone", "ner", "none", "posterior", "stem", "tags", "together", "union", "viterbi",
)  # fmt: skip
FILES = dict.fromkeys(("counts", "encoder", "frequencies", "start", "text", "vectors"))
DEEP = "nested 900 deep"  # stands for a value that is


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container inside a value, with a key or an index of it."""
    found: list[tuple[Any, Any]] = []
    level = [value]
    while level:
        inner: list[Any] = []
        for one in level:
            keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
            found += [(one, key) for key in keys]
            inner += [one[key] for key in keys]
        level = inner
    return found


def odd(random: Random, outside: str) -> Any:
    """A value that few settings take."""
    part = {"_target_": random.choice(targets()), "path": outside, "directory": outside, "_partial_": False}
    return random.choice(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            2,
            3,
            10**9,
            -(10**9),
            2**63,
            10**400,
            0.5,
            -0.5,
            1e308,
            1e-308,
            "",
            "x",
            "auto",
            "none",
            "cuda",
            "wordnet",
            "a.b",
            "\ud800",
            "x" * 100_000,
            outside,
            "/etc/passwd",
            "~/x",
            "file://x",
            "../..",
            [],
            {},
            [[]],
            [1, "a", None],
            ["a"] * 5000,
            {"a": 1},
            {"": {}},
            DEEP,
            part,
            {**part, "_partial_": True},
            {"_target_": random.choice(targets())},
            {"_target_": "jacana_torch.symmetrize.grow", "_partial_": True},
        ]  # fmt: skip
    )


def near(random: Random, value: Any) -> Any:
    """Another value of the same type, which more settings take."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice([0, 1, 2, 5, 12, 40, 100, 4096, 10**6, 10**9, -1, value * 2, value + 1])
    if isinstance(value, float):
        return random.choice([0.0, 0.3, 1.0, 2, 0.999, 1e-9, 100.0, 1e6, 1e15, 1e300, -1.0, value * 2])
    if isinstance(value, str):
        return random.choice([*CHOICES, *targets()]) if "." in value else random.choice(CHOICES)
    if isinstance(value, list):
        return random.choice([value * 2, value[:-1], [*value, *value[:1]], value[::-1], value * 60])
    return {} if value is None else dict(list(value.items())[:-1])


def config_of(random: Random, content: bytes, outside: str) -> bytes:
    """Change a file of JSON: a value, a key, the structure, or bytes."""
    value = json.loads(content)
    for _ in range(random.choice((1, 1, 1, 1, 2))):
        container, key = random.choice(places(value))
        way = random.randrange(16)
        if way > 13:
            parts = [
                one for one, key in places({"": value}) if isinstance(one, dict) and FILES.keys() & one.keys()
            ]
            container = random.choice(parts or [value])
            key = random.choice([*FILES.keys() & container.keys()] or ["frequencies"])
            container[key] = random.choice([outside, [outside], f"file://{outside}", f"glove-6b/../{outside}"])
        elif way > 8:
            container[key] = near(random, container[key])
        elif way < 4:
            container[key] = odd(random, outside)
        elif way == 4:
            del container[key]
        elif way == 5 and isinstance(container, dict):
            container[random.choice(["x", "", "_target_", "_partial_", key.upper(), "names"])] = container.pop(key)
        elif way == 6 and isinstance(container, dict):
            name = random.choice(["x", "_partial_", "_target_", "weights", "window", "encoder", "start", "text"])
            container[name] = odd(random, outside)
        elif way == 7:
            other, place = random.choice(places(value))
            container[key] = json.loads(json.dumps(other[place]))
        else:
            container[key] = random.choice(targets())
        if not places(value):
            break
    text = json.dumps(value).replace(f'"{DEEP}"', "[" * 900 + "1" + "]" * 900)
    return bytes_of(random, text.encode(), outside) if random.random() < 0.1 else text.encode()


def bytes_of(random: Random, content: bytes, outside: str) -> bytes:
    """Cut, flip, repeat or insert bytes anywhere."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 8))):
        place = random.randrange(len(data) + 1)
        if way := random.randrange(5):
            with_these = [b"\x00", b"\xff", b"NaN", b"1e999", b"9" * 5000, b"[" * 2000, b'"x": 1, "x": 2,']
            piece = [random.choice(with_these), bytes([random.randrange(256)]), data[place : place + 40], b""][
                way - 1
            ]
            data[place : place + random.choice((0, 1, 1, 7))] = piece
        else:
            del data[place:]
    return bytes(data)


# Weights


def weights_of(random: Random, content: bytes, outside: str) -> bytes:
    """Change the header or the data of a safetensors file."""
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:end]), bytearray(content[end:])
    lists = header.get("__metadata__", {})
    tensors = [name for name in header if name != "__metadata__"]
    way = random.randrange(12) if tensors else random.randrange(8, 12)
    name = random.choice(tensors) if tensors else ""
    if way == 0:
        header[name]["dtype"] = random.choice(["BF16", "F8_E4M3", "F16", "F32", "F64", "I64", "U8", "BOOL", "", 5])
    elif way == 1:
        header[name]["shape"] = random.choice([[], [0], [-1], [1, 1], [10**18], ["a"], None, [2**62, [1]], [True]])
    elif way == 2:
        header[name]["data_offsets"] = random.choice([[0, 0], [5, 1], [0, 10**30], [], None, ["a", "b"], [0.5, 8]])
    elif way == 3:
        header[random.choice(["x", "", f"{name}.x", name.upper(), "1." + name])] = header.pop(name)
    elif way == 4:
        other = random.choice(tensors)
        header[name], header[other] = header[other], header[name]
    elif way == 5:
        _drop(header, data, name)
    elif way == 6:
        header["extra"] = {"dtype": "F64", "shape": [1], "data_offsets": [len(data), len(data) + 8]}
        data += struct.pack("<d", 1.0)
    elif way == 7:
        _fill(random, header[name], data)
    elif way == 8 and lists:
        key = random.choice([key for key in lists if key != "jacana_torch"] or ["none"])
        lists[key] = json.dumps(_changed_list(random, json.loads(lists.get(key, "[]")), outside))
    elif way == 9:
        lists[random.choice(["x", "forward.names", "names", *lists])] = random.choice(
            ["", "5", "null", "[1]", "[" * 900 + "]" * 900, '["a"]', '{"a": 1}', '["\\ud800.x"]', "[[]]"]
        )
    elif way == 10:
        return bytes_of(random, content, outside)
    text = json.dumps(header).encode()
    if way == 11:
        text = bytes_of(random, text, outside)
    size = random.choice((len(text),) * 9 + (0, 1, 2**63, len(text) + 10**6, len(text) - 1))
    return struct.pack("<Q", max(size, 0)) + text + bytes(data)


def _drop(header: dict[str, Any], data: bytearray, name: str) -> None:
    """Remove a tensor as if it had never been."""
    begin, end = header.pop(name)["data_offsets"]
    del data[begin:end]
    for entry in header.values():
        if "data_offsets" in entry and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [place - (end - begin) for place in entry["data_offsets"]]


def _fill(random: Random, entry: dict[str, Any], data: bytearray) -> None:
    """Put numbers into a tensor that no training leaves there."""
    begin, end = entry["data_offsets"]
    codes = {"F64": "<d", "F32": "<f", "F16": "<e", "I64": "<q", "I32": "<i", "U8": "<B"}
    code = codes[entry["dtype"]]
    size = struct.calcsize(code)
    values = [float("nan"), float("inf"), 1e4, -1e4, 0.0] if entry["dtype"][0] == "F" else [0, 1, 2**7, -(2**7)]
    if entry["dtype"] == "F64":
        values += [1e300, 1e11, -1e11, 1e-300, 1.5, -1.0]
    value = random.choice([v for v in values if code != "<B" or 0 <= v < 256])
    places = range(begin, end, size)
    for place in places if random.random() < 0.5 else random.choices(places, k=1) if places else ():
        data[place : place + size] = struct.pack(code, value)


def _changed_list(random: Random, words: list[Any], outside: str) -> list[Any]:
    place = random.randrange(len(words) + 1)
    way = random.randrange(6)
    if way == 0:
        del words[place:]
    elif way == 1:
        del words[place : place + 1]
    elif way == 2:
        words.insert(place, random.choice(["x", "", "string.x", "a.b.c", 5, None, [], *words[:1], outside]))
    elif way == 3:
        words[place : place + 1] = [random.choice(["unknown.column", "string.new", "none"])]
    elif way == 4:
        random.shuffle(words)
    else:
        words = words * 2
    return words


WAYS: dict[str, Callable[[Random, bytes, str], bytes]] = {
    persist.CONFIG: config_of,
    persist.WEIGHTS: weights_of,
    persist.SIGNATURE: config_of,
}


def damaged(files: dict[str, bytes], name: str, random: Random, outside: str) -> Iterator[tuple[str, bytes]]:
    """The files of a model, one of them changed."""
    for file, content in files.items():
        if file == name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                content = WAYS[file](random, content, outside)
        yield file, content
