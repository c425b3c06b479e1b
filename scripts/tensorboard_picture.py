"""Make the picture of TensorBoard in docs: python scripts/tensorboard_picture.py GOLD docs/tensorboard.png

Trains on three quarters of the pairs of GOLD and scores the rest. The sentences that it shows are our own.
Needs Playwright and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import sync_playwright
from view_page import FLAGS, stories

from jacana_torch import corpora

SHOWN = "^dev/f1/grow_diag_final$|^loss/backward$|reliability|matrix_[02]/final"
WIDTH, HEIGHT = 1180, 980
SETTINGS = ("features=[string,pos,position,context,distortion]", "name=picture", "logger.examples=3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", metavar="GOLD")
    parser.add_argument("picture", metavar="PNG")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trained(arguments.gold, Path(folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = ["tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", str(port)]
        board = subprocess.Popen([sys.executable, "-m", *command])
        try:
            pictured(f"http://127.0.0.1:{port}/", arguments.picture)
        finally:
            board.terminate()
            board.wait()


def trained(gold: str, folder: Path) -> None:
    examples = list(corpora.read(gold))
    held_out = [example for k, example in enumerate(examples) if k % 4 == 0]
    corpora.write([e for k, e in enumerate(examples) if k % 4], str(folder / "train.jsonl"))
    corpora.write([*stories(), *held_out], str(folder / "dev.jsonl"))
    files = [f"data.root={folder}", "data.train=[train.jsonl]", "data.dev=[dev.jsonl]"]
    where = f"hydra.run.dir={folder}/runs/picture"
    subprocess.run([sys.executable, "-m", "jacana_torch", "train", *files, *SETTINGS, where], check=True)


def pictured(address: str, path: str) -> None:
    for _ in range(60):
        try:
            urlopen(address).close()
            break
        except OSError:
            time.sleep(1)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{address}?tagFilter={quote(SHOWN)}#timeseries")
        page.wait_for_selector("image-card img")
        page.get_by_role("button", name="Settings").first.click()  # hide them
        page.wait_for_timeout(5000)  # wait until the curves are drawn
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
