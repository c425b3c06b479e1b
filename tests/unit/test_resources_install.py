"""Look-up, installation and the status table, with real pip on wheels built here, without network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from jacana_torch import resources
from jacana_torch.errors import ConfigError, JacanaError, MissingResource
from jacana_torch.resources import (
    available,
    build,
    catalogue,
    download,
    format_status,
    install,
    path,
    status,
)
from jacana_torch.resources.catalogue import CATALOGUE, Resource, Wheel
from jacana_torch.resources.download import scratch

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {"toy_words/data/words.txt": b"alpha\nbeta\n" * 2000, "toy_words/data/deep/more.txt": b"gamma\n"}


def make_wheel(folder: Path, package: str, files: dict[str, bytes], version: str = "1.0") -> str:
    """A wheel that pip accepts, and its sha256. Importing it would raise."""
    folder.mkdir(parents=True, exist_ok=True)
    module = package.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        out.writestr(f"{module}/__init__.py", "raise SystemExit('this package must not be imported')")
        for name, content in files.items():
            out.writestr(name, content)
        out.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def toy(sha256: str, **changes) -> Resource:
    row = {
        "name": "toy", "title": "A toy", "needed_by": "these tests", "licence": "none", "files": ("words.txt",),
        "wheels": (Wheel("toy-words", "1.0", sha256),), "member": "toy_words/data",
    }  # fmt: skip
    return Resource(**{**row, **changes})


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, no NLTK data anywhere, and pip confined to tmp_path/wheels."""
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.delenv("JACANA_PPDB", raising=False)
    monkeypatch.setattr(resources, "nltk_roots", lambda: [tmp_path / "nltk_data"])
    monkeypatch.setattr(resources, "in_package", lambda _: None)
    return tmp_path / "home"


def use(monkeypatch, *rows: Resource) -> None:
    table = {row.name: row for row in rows}
    for module in (resources, download):
        monkeypatch.setattr(module, "CATALOGUE", table)


def left_over(home: Path) -> list[Path]:
    return list((home / "tmp").iterdir()) if (home / "tmp").exists() else []


def test_install_unpacks_the_member_and_nothing_else(home, tmp_path, monkeypatch):
    use(monkeypatch, toy(make_wheel(tmp_path / "wheels", "toy-words", FILES)))
    assert not available("toy")
    install(["toy"])
    there = path("toy")
    assert there == home / "data" / "toy"
    found = {file.relative_to(there).as_posix(): file.read_bytes() for file in there.rglob("*") if file.is_file()}
    receipt = json.loads(found.pop("installed.json"))
    assert found == {"words.txt": FILES["toy_words/data/words.txt"], "deep/more.txt": b"gamma\n"}
    assert receipt["files"] == {name: len(content) for name, content in found.items()}
    assert left_over(home) == []


def test_a_second_install_changes_nothing_and_needs_no_index(home, tmp_path, monkeypatch):
    use(monkeypatch, toy(make_wheel(tmp_path / "wheels", "toy-words", FILES)))
    install(["toy"])
    before = (path("toy") / "words.txt").stat()
    next((tmp_path / "wheels").iterdir()).unlink()
    install(["toy", "toy"])
    assert (path("toy") / "words.txt").stat() == before


def test_force_replaces_the_whole_directory(home, tmp_path, monkeypatch):
    use(monkeypatch, toy(make_wheel(tmp_path / "wheels", "toy-words", FILES)))
    install(["toy"])
    (path("toy") / "stray.txt").write_text("left by someone")
    install("toy", force=True)
    assert not (path("toy") / "stray.txt").exists() and available("toy")
    assert left_over(home) == []


def test_damage_is_reported_and_repaired_without_force(home, tmp_path, monkeypatch):
    use(monkeypatch, toy(make_wheel(tmp_path / "wheels", "toy-words", FILES)))
    install(["toy"])
    (path("toy") / "words.txt").write_bytes(b"cut")
    assert not available("toy")
    with pytest.raises(MissingResource, match=r"words\.txt has 3 bytes, not 22000.*resources install toy"):
        path("toy")
    assert "BROKEN" in format_status()
    install(["toy"])
    assert (path("toy") / "words.txt").stat().st_size == 22000


def test_another_file_under_the_name_is_refused(home, tmp_path, monkeypatch):
    make_wheel(tmp_path / "wheels", "toy-words", FILES)
    use(monkeypatch, toy("0" * 64))
    with pytest.raises(JacanaError, match=r"toy_words-1\.0.* has sha256 [0-9a-f]{64}, but toy-words==1\.0 must"):
        install(["toy"])
    assert not (home / "data").exists() and left_over(home) == []


def test_no_such_package_names_pip_and_the_way_without_network(home, tmp_path, monkeypatch):
    (tmp_path / "wheels").mkdir()
    use(monkeypatch, toy("0" * 64))
    with pytest.raises(JacanaError, match=r"(?s)No matching distribution.*PIP_FIND_LINKS"):
        install(["toy"])
    assert left_over(home) == []


def test_a_source_package_is_never_built(home, tmp_path, monkeypatch):
    import tarfile

    source = tmp_path / "toy-words-1.0"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "backend.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "wheels").mkdir()
    with tarfile.open(tmp_path / "wheels" / "toy-words-1.0.tar.gz", "w:gz") as out:
        out.add(source, "toy-words-1.0")
    use(monkeypatch, toy("0" * 64))
    with pytest.raises(JacanaError, match="could not download"):
        install(["toy"])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["toy_words/data/../../../../evil.txt", "toy_words/data//etc/../../../../evil.txt"]
)
def test_members_cannot_leave_their_directory(home, tmp_path, monkeypatch, name):
    use(monkeypatch, toy(make_wheel(tmp_path / "wheels", "toy-words", {**FILES, name: b"evil"})))
    with pytest.raises(JacanaError, match="a path outside its directory"):
        install(["toy"])
    assert not list(tmp_path.rglob("evil.txt")) and not (home / "data").exists()


@pytest.mark.slow
def test_slices_of_an_archive_are_joined_in_order(home, tmp_path, monkeypatch):
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as out:
        out.writestr("folder/words.txt", b"alpha\n" * 100)
        out.writestr("folder/desktop.ini", b"junk")
        out.writestr("elsewhere/other.txt", b"no")
    whole = inner.read_bytes()
    cuts = [whole[:100], whole[100:333], whole[333:]]
    wheels = tuple(
        Wheel(
            f"toy-part-{k}",
            "1.0",
            make_wheel(tmp_path / "wheels", f"toy-part-{k}", {f"toy-{k}/input/x.zip.{k}": c}),
        )
        for k, c in enumerate(cuts)
    )
    joined = {"member": "input/x.zip.", "joined_member": "folder"}
    use(monkeypatch, toy("", wheels=wheels, joined_sha256=hashlib.sha256(whole).hexdigest(), **joined))
    install(["toy"])
    assert sorted(f.name for f in path("toy").rglob("*")) == ["installed.json", "words.txt"]
    use(monkeypatch, toy("", wheels=wheels[::-1], joined_sha256=hashlib.sha256(whole).hexdigest(), **joined))
    with pytest.raises(JacanaError, match="the joined parts have sha256"):
        install(["toy"], force=True)
    assert available("toy")  # the one that was there stays


KILLED = """
import os, signal, sys
sys.path[:0] = [{repository!r}, {tests!r}]
from jacana_torch import resources
from jacana_torch.resources import download as module
from test_resources_install import toy
resources.CATALOGUE = {{"toy": toy({sha256!r})}}
step = getattr(module, {step!r})
def die(*args):
    if {after!r}:
        step(*args)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, {step!r}, die)
module.install(["toy"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("step", "after"),
    [
        ("sha256", False),
        ("_move_into_place", True),
        pytest.param("_unpack", True, marks=pytest.mark.slow),
        pytest.param("_write_receipt", True, marks=pytest.mark.slow),
    ],
)
def test_a_killed_install_leaves_all_or_nothing(home, tmp_path, monkeypatch, step, after):
    sha256 = make_wheel(tmp_path / "wheels", "toy-words", FILES)
    script = KILLED.format(repository=str(REPOSITORY), tests=str(Path(__file__).parent), sha256=sha256, step=step, after=after)  # fmt: skip # noqa: E501
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()
    use(monkeypatch, toy(sha256))
    assert available("toy") == (step == "_move_into_place")
    assert (home / "data" / "toy").exists() == available("toy")
    (dead,) = left_over(home)
    long_ago = time.time() - 120
    os.utime(dead, (long_ago, long_ago))
    install(["toy"], force=True)
    assert available("toy") and left_over(home) == []


def test_the_directory_of_a_running_install_stays(home):
    with scratch() as other:
        long_ago = time.time() - 120
        os.utime(other, (long_ago, long_ago))
        with scratch():
            assert other.exists()
        assert other.exists()


def test_two_installs_at_once(home, tmp_path):
    sha256 = make_wheel(tmp_path / "wheels", "toy-words", FILES)
    script = KILLED.format(repository=str(REPOSITORY), tests=str(Path(__file__).parent), sha256=sha256, step="sha256", after=True)  # fmt: skip # noqa: E501
    script = script.replace("os.kill(os.getpid(), signal.SIGKILL)", f"return {sha256!r}")
    running = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], errors
    assert (home / "data" / "toy" / "words.txt").read_bytes() == FILES["toy_words/data/words.txt"]


def test_a_home_that_cannot_be_written_is_an_error_that_says_what_to_do(tmp_path, monkeypatch, home):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "file" / "home"))
    use(monkeypatch, toy("0" * 64))
    with pytest.raises(JacanaError, match="Set JACANA_HOME"):
        install(["toy"])
    assert not available("toy")


def test_unknown_names_and_resources_without_a_package_are_errors(home):
    for call in (path, available, lambda name: install([name])):
        with pytest.raises(ConfigError, match=r"no resource 'wordnett'; did you mean wordnet"):
            call("wordnett")
    with pytest.raises(JacanaError, match=r"mwa-ppdb is not on any package index.*JACANA_PPDB"):
        install(["mwa-ppdb"])


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_missing_resource_names_its_users_and_the_command(home, name):
    with pytest.raises(MissingResource) as caught:
        path(name)
    message = str(caught.value)
    assert CATALOGUE[name].needed_by in message
    assert (f"jacana-torch resources install {name}" in message) == CATALOGUE[name].installable
    (row,) = [row for row in status() if row.name == name]
    assert not row.found and row.how in format_status()


def test_every_row_is_pinned(home):
    for row in CATALOGUE.values():
        assert row.files and row.needed_by and row.licence and (row.wheels or row.otherwise)
        for wheel in row.wheels:
            assert len(wheel.sha256) == 64 and set(wheel.sha256) <= set("0123456789abcdef")


def fill(folder: Path, files: tuple[str, ...]) -> None:
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_text("x")


def test_nltk_data_comes_before_our_own_as_directory_or_zip(home, tmp_path):
    files = CATALOGUE["wordnet"].files
    fill(home / "data" / "wordnet", files)
    assert path("wordnet") == home / "data" / "wordnet"
    corpora = tmp_path / "nltk_data" / "corpora"
    corpora.mkdir(parents=True)
    with zipfile.ZipFile(corpora / "wordnet.zip", "w") as out:
        for file in files:
            out.writestr(f"wordnet/{file}", f"it is {file}")
    assert path("wordnet") == corpora / "wordnet.zip"
    assert build.read_member(path("wordnet"), "data.noun") == b"it is data.noun"
    fill(corpora / "wordnet", files[1:])  # incomplete: the zip still counts
    assert path("wordnet") == corpora / "wordnet.zip"
    (corpora / "wordnet" / files[0]).write_text("x")
    assert path("wordnet") == corpora / "wordnet"


def test_the_latest_folder_of_a_package_is_found_without_importing_it(tmp_path, monkeypatch):
    (tmp_path / "some_model").mkdir()
    (tmp_path / "some_model" / "__init__.py").write_text("raise SystemExit('this package must not be imported')")
    for version in ("3.7.0", "3.8.0", "3.9.0"):
        fill(
            tmp_path / "some_model" / f"some_model-{version}",
            ("meta.json",) if "9" in version else ("config.cfg",),
        )
    monkeypatch.syspath_prepend(tmp_path)
    found = resources.in_package(catalogue.Place("package", "some_model/some_model-*", ("config.cfg",)))
    assert found == tmp_path / "some_model" / "some_model-3.8.0"
    assert resources.in_package(catalogue.Place("package", "no_such_model/x", ())) is None


def test_paths_are_remembered_until_settings_change(home, tmp_path, monkeypatch):
    files = CATALOGUE["wordnet"].files
    with pytest.raises(MissingResource):
        resources.located("wordnet")
    fill(home / "data" / "wordnet", files)  # what was missing is not remembered
    assert resources.located("wordnet") == home / "data" / "wordnet"
    shutil.rmtree(home / "data")
    assert resources.located("wordnet") == home / "data" / "wordnet"
    fill(tmp_path / "other" / "data" / "wordnet", files)
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "other"))
    assert resources.located("wordnet") == tmp_path / "other" / "data" / "wordnet"
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk_data"))
    fill(tmp_path / "nltk_data" / "corpora" / "wordnet", files)
    assert resources.located("wordnet") == tmp_path / "nltk_data" / "corpora" / "wordnet"


def test_a_broken_zip_is_skipped(home, tmp_path):
    corpora = tmp_path / "nltk_data" / "corpora"
    corpora.mkdir(parents=True)
    (corpora / "wordnet.zip").write_bytes(b"PK\3\4 not much of a zip")
    assert not available("wordnet")


def test_the_setting_for_ppdb(home, tmp_path, monkeypatch):
    monkeypatch.setenv("JACANA_PPDB", str(tmp_path / "nowhere"))
    with pytest.raises(MissingResource, match="JACANA_PPDB is .*nowhere.*, which is neither a file nor a folder"):
        path("mwa-ppdb")
    assert "JACANA_PPDB" in format_status()
    fill(tmp_path / "pairs", (catalogue.PPDB_FILE,))
    for given in (tmp_path / "pairs", tmp_path / "pairs" / catalogue.PPDB_FILE):
        monkeypatch.setenv("JACANA_PPDB", str(given))
        assert path("mwa-ppdb") == given


def test_nltk_roots_are_those_of_nltk(tmp_path):
    script = f"""
import os, sys
sys.path.insert(0, {str(REPOSITORY)!r})
from jacana_torch.resources import nltk_roots
every = {["", str(tmp_path), f"{tmp_path}{os.pathsep}~/mine"]}
ours = []
for given in every:
    os.environ["NLTK_DATA"] = given
    ours.append([str(p) for p in nltk_roots()])
assert "nltk" not in sys.modules
import importlib, nltk.data
for given, found in zip(every, ours):
    os.environ["NLTK_DATA"] = given
    importlib.reload(nltk.data)
    theirs = [os.path.expanduser(p) for p in map(str, nltk.data.path)]  # older ones leave ~ as it is
    assert found == theirs, (found, theirs)
nltk.data.path.append("/one/more")
assert str(nltk_roots()[-1]).endswith("more")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_resources_loads_nothing_heavy():
    script = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
import jacana_torch.resources as r
r.status(), r.format_status()
assert not {{"numpy", "scipy", "torch", "spacy", "nltk"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
