"""`align --output FOLDER/`: blocks, parts, the manifest, shards, and runs that are killed and go on."""

from __future__ import annotations

import csv
import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time
from itertools import chain

import pytest
from commands import WORDS
from variants import variants

from jacana_torch.cli import main
from jacana_torch.cli.blocks import cut

COLUMNS = ("--columns", "premise,hypothesis")
PAIRS = [(" ".join(WORDS[k % 7 : k % 7 + 3]), " ".join(WORDS[k % 5 : k % 5 + 4])) for k in range(40)]


def text(folder):
    path = folder / "x.txt"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS).removesuffix("\n"))
    return path, ()


def headed(folder):
    path = folder / "x.txt"
    path.write_text("source\ttarget\n" + "".join(f"{source}\t{target}\r\n" for source, target in PAIRS))
    return path, ()


def json_lines(folder):
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps({"premise": a, "n": n, "hypothesis": b}) + "\n" * (1 + n % 2)
                            for n, (a, b) in enumerate(PAIRS)))  # fmt: skip
    return path, (*COLUMNS, "--to", "jsonl")


def table(folder):
    path = folder / "x.csv"
    with open(path, "w", newline="", encoding="utf-8-sig") as stream:
        rows = csv.writer(stream, lineterminator="\r\n")
        rows.writerow(["n\nn", "premise", "hypothesis"])
        for n, (source, target) in enumerate(PAIRS):
            rows.writerow(["x\n" * (n % 3), source + '\n"dog", cat' * (n % 2), target])
    return path, COLUMNS


def packed(folder):
    path, options = table(folder)
    (folder / "x.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    return folder / "x.csv.gz", options


def parts_of(folder) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("part-"))


def joined(folder, to: str) -> str:
    """The parts after each other, tables without the headers of all but the first."""
    parts = []
    for name in parts_of(folder):
        content = (folder / name).read_bytes().decode()
        if parts and to == "csv":
            lines = content.splitlines(keepends=True)
            header = next(csv.reader(lines))
            content = "".join(lines[1 + sum(name.count("\n") for name in header) :])
        parts.append(content)
    return "".join(parts)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("make", variants([packed, text, headed, json_lines, table], 3))
def test_parts_are_the_output_of_one_process(cli, model, tmp_path, make, size):
    path, options = make(tmp_path)
    command = ("align", str(path), *options, "--model", model, "--workers", "1")
    code, one, err = cli(*command, *(() if "--to" in options or not options else ("--to", "csv")))
    assert code == 0, err
    code, said, err = cli(*command, "--output", f"{tmp_path}/out/", "--block-size", str(size))
    assert code == 0 and not said, err
    to = parts_of(tmp_path / "out")[0].rpartition(".")[2]
    assert joined(tmp_path / "out", to) == one
    assert len(parts_of(tmp_path / "out")) >= 40 // size
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".jacana")]


def test_blocks_of_parquet_cross_row_groups(cli, model, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = pa.table({"premise": [a for a, _ in PAIRS], "n": range(40), "hypothesis": [b for _, b in PAIRS]})
    pq.write_table(made, tmp_path / "x.parquet", row_group_size=11)
    command = ("align", f"{tmp_path}/x*.parquet", *COLUMNS, "--model", model, "--workers", "1")
    assert cli(*command, "--output", f"{tmp_path}/one.parquet")[0] == 0
    one = pq.read_table(tmp_path / "one.parquet")
    for size in (7, 11, 100):
        code, _, err = cli(*command, "--output", f"{tmp_path}/out{size}", "--block-size", str(size))
        assert code == 0, err
        names = parts_of(tmp_path / f"out{size}")
        assert len(names) == -(-40 // size)
        found = pa.concat_tables([pq.read_table(tmp_path / f"out{size}" / name) for name in names])
        assert found.equals(one) and found.drop_columns("links").equals(made)


def test_errors_name_the_line_of_the_file(cli, model, tmp_path):
    path, _ = table(tmp_path)
    lines = path.read_bytes() + b"only one field\r\n"
    path.write_bytes(lines + b"1,dog,dog\r\n")
    number = lines.count(b"\n")
    command = ("align", str(path), *COLUMNS, "--model", model, "--workers", "1", "--block-size", "6")
    code, _, err = cli(*command, "--output", f"{tmp_path}/out/")
    assert code == 2 and f"x.csv:{number}: the row has 1 fields, and the header 3" in err
    assert len(parts_of(tmp_path / "out")) == 6, "what came before is there"
    code, _, err = cli(*command, "--output", f"{tmp_path}/other/", "--skip-bad")
    assert code == 0 and f"skipped 1 bad item:\n  {path}:{number}" in err and "42 pairs" in err
    code, _, err = cli(*command, "--output", f"{tmp_path}/out/", "--skip-bad")
    assert code == 2 and "began with skip_bad=False, and now it is True" in err


def test_a_run_goes_on_only_as_it_began(cli, model, tmp_path):
    path, _ = text(tmp_path)
    begun = {"--model": model, "--output": f"{tmp_path}/out/", "--workers": "1", "--block-size": "9"}
    command = ("align", str(path), *chain(*begun.items()))
    assert cli(*command)[0] == 0
    whole = {name: (tmp_path / "out" / name).read_bytes() for name in parts_of(tmp_path / "out")}
    (tmp_path / "out" / "part-000002.pharaoh").unlink()
    kept = (tmp_path / "out" / "part-000001.pharaoh").stat().st_mtime_ns
    code, _, err = cli(*command, "--resume")
    assert code == 0 and "1 of 5 blocks to do" in err
    assert {name: (tmp_path / "out" / name).read_bytes() for name in parts_of(tmp_path / "out")} == whole
    assert (tmp_path / "out" / "part-000001.pharaoh").stat().st_mtime_ns == kept
    for more, says in (
        (("--symmetrize", "union"), "symmetrize=None, and now it is 'union'"),
        (("--block-size", "8"), "block_size=9"),
        (("--model", "core"), "its model is"),
    ):
        code, _, err = cli("align", str(path), *chain(*(begun | dict([more])).items()))
        assert code == 2 and says in err and "--no-resume" in err
    content = path.read_text()
    os.utime(path, (1, 1))
    assert cli(*command)[0] == 0, "another time is not another file"
    path.write_text(content.replace("dog", "cat", 1))
    code, _, err = cli(*command)
    assert code == 2 and "x.txt has changed since the run began" in err
    code, _, err = cli(*command, "--no-resume")
    assert code == 0 and "5 of 5 blocks to do" in err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["inputs"][0]["bytes"] == path.stat().st_size and len(manifest["blocks"]) == 5
    assert len(manifest["model"]) == len(manifest["inputs"][0]["sha256"]) == 64


def test_shards_divide_the_blocks(cli, model, tmp_path):
    path, _ = text(tmp_path)
    command = ("align", str(path), "--model", model, "--workers", "1", "--block-size", "3")
    assert cli(*command, "--output", f"{tmp_path}/one/")[0] == 0
    seen: list[str] = []
    for shard in ("2/3", "3/3", "1/3"):
        assert cli(*command, "--output", f"{tmp_path}/out/", "--shard", shard)[0] == 0
        new = [name for name in parts_of(tmp_path / "out") if name not in seen]
        assert len(new) in (4, 5)
        seen += new
    for name in os.listdir(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    for wrong in ("0/3", "4/3", "1", "a/b"):
        code, _, err = cli(*command, "--output", f"{tmp_path}/out/", "--shard", wrong)
        assert code == 2 and "as in 1/4, 2/4" in err
    code, _, err = cli(*command, "--output", f"{tmp_path}/out/", "--shard", "1/3", "--no-resume")
    assert code == 2 and "would remove what other shards do" in err


def test_mistakes(cli, model, tmp_path, monkeypatch):
    path, _ = text(tmp_path)
    command = ("align", str(path), "--model", model)
    strange = tmp_path / os.fsdecode(b"x\xe9.txt")
    strange.write_bytes(path.read_bytes())
    more = ("--workers", "1", "--output", os.fsdecode(bytes(tmp_path) + b"/\xe9/"))
    for todo in (1, 0):  # the name is known again
        code, _, err = cli("align", str(strange), "--model", model, *more)
        assert code == 0 and f"{todo} of 1 blocks to do" in err
    assert "--shard needs a folder" in cli(*command, "--shard", "1/2")[2]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    assert "holds other files (notes)" in cli(*command, "--output", f"{tmp_path}/mine")[2]
    assert "is a file" in cli(*command, "--output", str(path), "--block-size", "3")[2]
    assert "name them" in cli("align", "-", "--model", model, "--output", f"{tmp_path}/out/")[2]
    assert "--address is of a Ray cluster" in cli(*command, "--output", f"{tmp_path}/out/", "--address", "auto")[2]
    assert cli(*command, "--output", f"{tmp_path}/begun/", "--workers", "1")[0] == 0
    manifest = tmp_path / "begun" / "manifest.json"
    held = json.loads(manifest.read_text())
    bad = [{k: v for k, v in held.items() if k != key} for key in held]
    bad += [
        {**held, key: value} for key in ("blocks", "inputs", "options") for value in (None, 1, [1], {"a": 1}, "ab")
    ]
    bad += [{**held, "blocks": [{**held["blocks"][0], "file": "/etc/passwd"}]}, []]
    for damaged in [*map(json.dumps, bad), "", "{", "[" * 100_000]:
        if damaged != json.dumps({**held, "options": {"a": 1}}):  # of another run, as far as one can know
            manifest.write_text(damaged)
            code, _, err = cli(*command, "--output", f"{tmp_path}/begun/")
            assert code == 2 and "manifest.json: is no manifest of this version" in err
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = cli(*command, "--output", f"{tmp_path}/out/", "--engine", "ray")
    assert code == 2 and "pip install 'jacana-torch[ray]'" in err


def test_a_full_disk_leaves_whole_parts_alone(cli, model, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would leave modules cut short
    path, out = tmp_path / "x.txt", tmp_path / "out"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS * 25))
    command = ("align", str(path), "--model", model, "--output", f"{out}/", "--block-size", "400")
    assert cli(*command, "--workers", "1")[0] == 0
    whole = {name: (out / name).read_bytes() for name in parts_of(out)}
    for name in whole:
        (out / name).unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole["part-000000.pharaoh"]) // 2, limits[1]))
    try:
        for workers in ("1", "2"):
            code, _, err = cli(*command, "--workers", workers)
            assert code == 2 and "part-000000.pharaoh: cannot be written: File too large" in err
            assert parts_of(out) in ([], ["part-000002.pharaoh"]) and not list(out.glob(".jacana*"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert cli(*command, "--workers", "1")[0] == 0
    assert {name: (out / name).read_bytes() for name in parts_of(out)} == whole


def test_a_killed_run_goes_on(model, tmp_path):
    """SIGTERM after the first part, SIGKILL to all processes after one more; then the same command."""
    path = tmp_path / "big.txt"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS * 80))
    one = tmp_path / "one.txt"
    assert main(["align", str(path), "--model", model, "--output", str(one), "--workers", "1"]) == 0
    command = [sys.executable, "-m", "jacana_torch", "align", str(path), "--model", model, "--output",
               f"{tmp_path}/out/", "--workers", "2", "--block-size", "100"]  # fmt: skip
    out = tmp_path / "out"
    for kill, how in ((os.kill, signal.SIGTERM), (os.killpg, signal.SIGKILL)):
        done = parts_of(out) if out.is_dir() else []
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (out.is_dir() and len(parts_of(out)) > len(done)):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        kill(process.pid, how)
        process.wait()
        assert how == signal.SIGKILL or not list(out.glob(".jacana*")), "it leaves nothing unfinished"
    before = parts_of(out)
    assert 0 < len(before) < 32, "it was killed in the middle"
    assert subprocess.run(command, stderr=subprocess.DEVNULL, timeout=120).returncode == 0
    assert (
        len(parts_of(out)) == 32
        and b"".join((out / name).read_bytes() for name in parts_of(out)) == one.read_bytes()
    )
    assert not [name for name in os.listdir(out) if name.startswith(".jacana")]


def test_other_formats_are_one_block(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[{"source": "a", "target": "b"}]')
    (block,) = cut(str(path), "jacana", 1)
    assert (block.begin, block.end) == (0, path.stat().st_size)
    assert list(cut(str(text(tmp_path)[0]), "text", 1000))[0].size == 40
    (tmp_path / "empty.csv").write_text("premise,hypothesis\n")
    assert list(cut(str(tmp_path / "empty.csv"), "csv", 10)) == []


needs_ray = pytest.mark.skipif(
    not os.environ.get("JACANA_RAY"), reason="JACANA_RAY=1 starts clusters of Ray, for a minute or two"
)


@needs_ray
def test_too_few_cpus_of_ray_are_an_error(cli, model, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    from jacana_torch.cli import ray_engine

    path, _ = text(tmp_path)
    command = ("align", str(path), "--model", model, "--output", f"{tmp_path}/out/", "--engine", "ray",
               "--block-size", "10")  # fmt: skip
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        code, _, err = cli(*command, "--workers", "3")
        assert code == 2 and "the cluster has 1 for 3: ask for fewer --workers" in err
        holder = ray.remote(num_cpus=1)(lambda: time.sleep(60)).remote()
        monkeypatch.setattr(ray_engine, "PATIENCE", 3.0)
        monkeypatch.setattr(ray_engine, "CHECKED", 1.0)
        code, _, err = cli(*command)
        assert code == 2 and "no worker has run for 3 seconds: Ray has 0 CPUs free" in err
        ray.cancel(holder, force=True)
        monkeypatch.undo()
        code, _, err = cli(*command)
        assert code == 0 and len(parts_of(tmp_path / "out")) == 4, err
    finally:
        ray.shutdown()


@needs_ray
def test_on_ray(model, tmp_path):
    """Two nodes, of which a worker and then a node are killed: scripts/bulk_chaos.py on few pairs."""
    pytest.importorskip("ray")
    script = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "bulk_chaos.py")
    command = [sys.executable, script, "--model", model, "--pairs", "20000", "--block-size", "250", "--no-timing"]
    done = subprocess.run([*command, "--folder", str(tmp_path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("identical") == 2
