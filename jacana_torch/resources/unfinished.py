"""Write files and folders whole or not at all, and remove what killed processes left unfinished.

What is being written stands beside its later place as `.jacana-*.part`, locked by its process until it is renamed.
The lock of a killed process is gone: the next one that writes into the same folder removes the rest.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX, SUFFIX = ".jacana-", ".part"
ABANDONED = 24 * 3600  # seconds after which unfinished things are removed on systems without locks
_REPLACED = ".replaced"  # holds a folder, by its name, while another takes its place


@contextmanager
def unfinished(parent: Path, folder: bool = False) -> Iterator[Path]:
    """Make a locked file or folder in `parent`, to be written and then renamed; removed if it was not renamed.

    Also removes what killed processes left in `parent`.
    """
    sweep(parent)
    path, lock = _locked(parent, folder)
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that it also survives a loss of power."""
    with unfinished(path.parent) as part:
        with open(part, "wb") as stream:
            stream.write(content)
        put_in_place(part, path)


def put_in_place(part: Path, path: Path, durable: bool = True) -> None:
    """Rename a finished file or folder to `path`; if `durable`, after its content has reached the disk.

    A folder that is not empty cannot be replaced in one step: it is set aside first. If the process is killed
    between the two steps, `sweep` puts it back.
    """
    for one in [part, *part.rglob("*")]:  # temporary files are readable by their owner alone
        one.chmod((0o777 if one.is_dir() else 0o666) & ~_umask())
        if durable and one.is_file():
            _sync(one)
    if part.is_dir() and path.exists():
        with unfinished(path.parent, folder=True) as aside:
            (aside / _REPLACED).mkdir()
            os.replace(path, aside / _REPLACED / path.name)
            try:
                os.replace(part, path)
            except BaseException:
                os.replace(aside / _REPLACED / path.name, path)
                raise
    else:
        os.replace(part, path)
    if durable:
        _sync(path.parent)


def sweep(parent: Path) -> None:
    """Remove the unfinished files and folders of killed processes, never those of a running one."""
    for left in sorted(parent.glob(f"{PREFIX}*{SUFFIX}")):
        with suppress(OSError):  # another process removed it, or it is another user's
            lock = os.open(left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                free = try_lock(lock)
                if free or (free is None and time.time() - left.stat().st_mtime > ABANDONED):
                    _put_back(left)
                    _remove(left)
            finally:
                os.close(lock)


def try_lock(file: int) -> bool | None:
    """Return whether the lock of an open file could be taken; closing it releases the lock. None without locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _locked(parent: Path, folder: bool) -> tuple[Path, int | None]:
    """Make a file or folder, and lock it. Until it is locked, another process may sweep it: then try again."""
    while True:
        if folder:
            path = Path(tempfile.mkdtemp(SUFFIX, PREFIX, parent))
        else:
            number, name = tempfile.mkstemp(SUFFIX, PREFIX, parent)
            os.close(number)
            path = Path(name)
        try:
            lock = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        except OSError:  # Windows opens no folders
            return path, None
        if try_lock(lock) is not False and path.exists():
            return path, lock
        os.close(lock)


def _put_back(left: Path) -> None:
    """Put a folder back that a killed process set aside and did not replace."""
    if (left / _REPLACED).is_dir():
        for aside in (left / _REPLACED).iterdir():
            if not (left.parent / aside.name).exists():
                os.replace(aside, left.parent / aside.name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with suppress(OSError):  # folders of some systems cannot be opened
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
