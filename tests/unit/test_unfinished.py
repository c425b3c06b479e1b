"""Files and folders that are written whole or not at all, and what killed processes leave of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jacana_torch.resources.store import put_in_place, sweep, unfinished, write_whole

ROOT = Path(__file__).parents[2]

WRITER = """
import sys, time
from pathlib import Path
from jacana_torch.resources import store as u
with u.unfinished(Path(sys.argv[1]), folder=sys.argv[2] == "folder") as part:
    ({action})
    print("ready", flush=True)
    time.sleep(60)
"""
SET_ASIDE = "(part / '.replaced').mkdir(), (Path(sys.argv[1]) / 'model').rename(part / '.replaced' / 'model')"


def writer(folder: Path, kind: str = "file", action: str = "0") -> subprocess.Popen:
    """A process that has begun to write, and waits."""
    code = WRITER.format(action=action)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), kind], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: subprocess.Popen, how: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_swept_and_what_a_living_one_writes_stays(tmp_path, kind):
    (tmp_path / ".other.part").write_text("another program's")
    dead, alive = writer(tmp_path, kind), writer(tmp_path, kind)
    ended(dead)
    assert len(list(tmp_path.glob(".jacana-*.part"))) == 2
    write_whole(tmp_path / "new", b"content")
    (left,) = tmp_path.glob(".jacana-*.part")
    assert (tmp_path / "new").read_bytes() == b"content"
    sweep(tmp_path)
    assert left.exists()
    ended(alive)
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".other.part", "new"]


def test_a_folder_that_was_set_aside_comes_back(tmp_path):
    """Killed between the two renames that replace a folder."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("years")
    ended(writer(tmp_path, "folder", SET_ASIDE))
    assert not (tmp_path / "model").exists()
    sweep(tmp_path)
    assert (tmp_path / "model" / "weights").read_text() == "years" and os.listdir(tmp_path) == ["model"]


def test_a_replaced_folder_is_not_brought_back(tmp_path):
    for content in ("old", "new"):
        with unfinished(tmp_path, folder=True) as part:
            (part / "weights").write_text(content)
            put_in_place(part, tmp_path / "model")
    sweep(tmp_path)
    assert (tmp_path / "model" / "weights").read_text() == "new" and os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o777 & ~umask()
    assert (tmp_path / "model" / "weights").stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_an_error_leaves_what_was_there(tmp_path):
    write_whole(tmp_path / "file", b"old")
    with pytest.raises(ZeroDivisionError), unfinished(tmp_path) as part:
        part.write_bytes(b"half")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_bytes() == b"old"


def test_links_and_pipes_of_that_name_are_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis").write_text("x")
    (tmp_path / ".jacana-a.part").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / ".jacana-b.part")
    sweep(tmp_path)
    assert (tmp_path / "precious" / "thesis").exists() and (tmp_path / ".jacana-a.part").is_symlink()
