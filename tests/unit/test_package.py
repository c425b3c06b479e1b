"""The sdist, the wheel built from it, and the wheel installed without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from jacana_torch.errors import ModelError
from jacana_torch.model import card, persist
from jacana_torch.version import __version__

CHECKOUT = Path(__file__).parents[2]
LARGEST_WHEEL = 10_000_000  # bytes
NOT_SOURCE = shutil.ignore_patterns(
    ".git",
    ".venv",
    "venv",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "outputs",
    "runs",
)


def run(*command, cwd: Path, **more) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        **more,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def clean_environment() -> dict[str, str]:
    """The environment without Python settings, so that the checkout is not importable."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "PIP_"))}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    source = folder / "source"  # setuptools writes into the source, so it gets a copy
    shutil.copytree(CHECKOUT, source, ignore=NOT_SOURCE)
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, folder / "dist", cwd=source)
    (archive,) = (folder / "dist").glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "tarfile", "--extract", sdist, folder, cwd=folder)
    (source,) = folder.iterdir()
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index")
    run(*pip, "--wheel-dir", folder / "dist", source, cwd=folder)
    (made,) = (folder / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The bin folder of an environment with the wheel, whose dependencies come from our site-packages."""
    folder = tmp_path_factory.mktemp("env")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    run(
        sys.executable, "-m", "pip", "--python", folder / "bin" / "python",
        "install", "--no-deps", "--no-index", wheel, cwd=folder,
    )  # fmt: skip
    (packages,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth is searched, but .pth files inside it (an editable install of the checkout) are not read.
    ours = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(ours)))
    return folder / "bin"


def files_under(folder: str, pattern: str) -> set[str]:
    return {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / folder).rglob(pattern) if path.is_file()}


def test_the_wheel_holds_every_module_config_and_model(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = files_under("jacana_torch", "*.py") | {"jacana_torch/py.typed"}
    wanted |= files_under("jacana_torch/model/shipped", "*")
    wanted |= {f"jacana_torch/{path}" for path in files_under("conf", "*.yaml")}
    assert len(wanted) > 20
    assert wanted - held == set()


def test_the_wheel_holds_nothing_else(wheel):
    held = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in held} == {"jacana_torch", f"jacana_torch-{__version__}.dist-info"}
    assert not [name for name in held if name.endswith((".pyc", ".orig", "~")) or "/tests/" in name]
    assert any(name.endswith("LICENSE") for name in held)
    endings = {Path(name).suffix for name in held if ".dist-info/" not in name}
    assert not endings & {".tsv", ".csv", ".jsonl", ".mst", ".npz", ".pkl", ".gz"}, "no corpora, no resources"
    models = {name.split("/")[3] for name in held if name.startswith("jacana_torch/model/shipped/")}
    files = {name.split("/")[-1] for name in held if name.startswith("jacana_torch/model/shipped/")}
    assert models == set(persist.names()) >= {"core", "standard", "neural"}
    assert files == {"config.json", "weights.safetensors", "signature.json", "card.json"}
    assert wheel.stat().st_size < LARGEST_WHEEL


def test_the_sdist_holds_what_reading_and_testing_it_takes(sdist):
    with tarfile.open(sdist) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    wanted = files_under("tests", "*.py") | files_under("docs", "*.md") | files_under("conf", "*.yaml")
    wanted |= files_under("examples", "*") | files_under("scripts", "*.py") | files_under("tests/golden", "*.txt")
    wanted = {name for name in wanted if "__pycache__" not in name and "_build" not in name}
    wanted |= {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "constraints.txt", ".ci/smoke_wheel.sh"}
    assert len(wanted) > 200 and wanted - held == set()
    assert not [name for name in held if name.endswith(".pyc") or name.startswith(("runs", "build"))]


def test_the_installed_command_is_the_installed_package(installed, tmp_path):
    assert run(installed / "jacana-torch", "--version", cwd=tmp_path).stdout == f"jacana-torch {__version__}\n"
    where = run(
        installed / "python", "-c", "import jacana_torch; print(jacana_torch.__file__)", cwd=tmp_path
    ).stdout
    assert Path(where.strip()).is_relative_to(installed.parent)
    describe = "from importlib.metadata import metadata; d = metadata('jacana-torch'); "
    describe += "print(d['Version'], d['Requires-Python'])"
    described = run(installed / "python", "-c", describe, cwd=tmp_path)
    assert described.stdout == f"{__version__} >=3.10\n"


def test_the_installed_package_scores(installed, tmp_path):
    (tmp_path / "gold.pharaoh").write_text("a red bike ||| a red bicycle ||| 0-0 1-1 2-2\n")
    (tmp_path / "guess.pharaoh").write_text("0-0 1-1\n")
    done = run(installed / "jacana-torch", "evaluate", "gold.pharaoh", "guess.pharaoh", cwd=tmp_path)
    assert done.stdout.splitlines()[1].split()[:5] == ["guess.pharaoh", "100.00", "66.67", "80.00", "0.00"]


def test_the_installed_package_trains_and_aligns(installed, tmp_path):
    words = "red old small bridge dog house river book tall green teacher walks sings reads under near".split()
    lines = []
    for start in range(12):
        source = [words[(start + step * (start % 3 + 1)) % len(words)] for step in range(5)]
        target = source[::-1][: 3 + start % 3]
        links = " ".join(f"{source.index(word)}-{j}" for j, word in enumerate(target))
        lines.append(f"{' '.join(source)}\t{' '.join(target)}\t{links}\n")
    (tmp_path / "corpus.pharaoh").write_text("".join(lines))
    done = run(
        installed / "jacana-torch", "train", "data.root=.", "data.train=[corpus.pharaoh]", "annotate=none",
        "features=[string,position,distortion]", "symmetrize=grow_diag", "output=tiny", cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "tiny\n"
    assert {"config.json", "weights.safetensors"} <= {path.name for path in (tmp_path / "tiny").iterdir()}
    done = run(
        installed / "jacana-torch", "align", "--model", "tiny", cwd=tmp_path, input="old red dog\tdog old\n"
    )
    assert done.stdout == "0-1 2-0\n"


def test_the_installed_package_aligns_with_a_shipped_model(installed, tmp_path):
    listed = run(
        installed / "python",
        "-c",
        "import jacana_torch; print(*(m.name for m in jacana_torch.shipped()))",
        cwd=tmp_path,
    )
    if "core" not in listed.stdout.split():
        pytest.skip("this checkout ships no core model")
    line = "The old bridge was closed .\tThey closed the old bridge .\n"
    done = run(installed / "jacana-torch", "align", "--model", "core", cwd=tmp_path, input=line)
    links = done.stdout.split()
    assert done.stdout.count("\n") == 1 and {"1-3", "2-4", "5-5"} <= set(links)


def test_lowest_versions_are_those_of_pyproject():
    """The script reads every requirement, and what it prints is a constraint for pip."""
    command = [sys.executable, str(CHECKOUT / "scripts" / "lowest_versions.py")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    for line in lines:
        assert f'"{line.replace("==", ">=")}' in text, line
    names = {line.partition("==")[0] for line in lines}
    assert {"torch", "numpy", "rapidfuzz", "pytest", "transformers", "uvicorn"} <= names and len(names) == len(
        lines
    )
    fewer = subprocess.run([*command, "--without", "torch"], capture_output=True, text=True, check=True).stdout
    assert "torch==" not in fewer and len(fewer.splitlines()) == len(lines) - 1


# The release


def test_workflows_and_classifiers_name_the_same_pythons():
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    known = [line.split(" :: ")[2].strip('",') for line in text.splitlines() if ":: Python :: 3." in line]
    jobs = {
        name: yaml.safe_load((CHECKOUT / ".github" / "workflows" / f"{name}.yml").read_text())["jobs"]
        for name in ("ci", "release")
    }
    assert jobs["release"]["test"]["strategy"]["matrix"]["python"] == known and len(known) >= 4
    assert [one["python"] for one in jobs["ci"]["test"]["strategy"]["matrix"]["include"]] == known
    assert jobs["release"]["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["release"]["publish"]["needs"] == "test" and jobs["release"]["test"]["needs"] == "build"


def test_the_citation_is_of_this_version_and_of_five_papers():
    cited = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__ and cited["cff-version"] == "1.2.0"
    assert [(paper["authors"][0]["family-names"], paper["year"]) for paper in cited["references"]] == [
        ("MacCartney", 2008), ("Thadani", 2011), ("Yao", 2013), ("Sultan", 2014), ("Sharma", 2018),
    ]  # fmt: skip


def test_templates_are_yaml_that_the_forge_reads():
    for path in (CHECKOUT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert path.name == "config.yml" or {"name", "description", "body"} <= form.keys()


# Model cards


@pytest.mark.parametrize("info", persist.shipped(), ids=lambda info: info.name)
def test_the_card_is_of_these_weights(info):
    """After a training of a shipped model: python scripts/model_card.py NAME"""
    made = card.read(info.path)
    assert made is not None and made["weights_sha256"] == card.checksum(info.path)
    assert made["size"]["bytes"] < 10_000_000 and made["speed"]["pairs_per_second"] > 0
    assert {row["corpus"] for row in made["out_of_domain"]} == {"MTRef dev", "Wiki dev"} and made["in_domain"]
    assert made["conventions"] and len(made["limits"]) > 4
    for row in made["out_of_domain"]:
        value, low, high = row["f1"]
        assert 50 < low < value < high < 100 and 0 < row["ece"] < 20
    text = card.text(info, made)
    for title in ("In domain", "Out of domain", "Conventions", "Limits", "Licence", "Speed", "Size"):
        assert f"\n{title}" in text
    assert max(map(len, text.splitlines())) < 130


def test_a_card_of_other_weights_is_an_error(tmp_path):
    folder = shutil.copytree(persist.locate("core"), tmp_path / "core")
    with open(folder / "weights.safetensors", "ab") as weights:
        weights.write(b" ")
    with pytest.raises(ModelError, match="made for other weights: python scripts/model_card.py core"):
        card.read(folder)
