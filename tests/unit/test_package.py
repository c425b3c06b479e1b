"""The sdist, the wheel built from it, and the wheel installed without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from jacana_torch.version import __version__

CHECKOUT = Path(__file__).parents[2]
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
