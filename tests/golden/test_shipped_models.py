"""The shipped models go on saying what they said: a change here is one for every user, and belongs in CHANGELOG.

To accept one: jacana-torch align examples/pairs.txt --model NAME > tests/golden/pairs.NAME.txt
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jacana_torch import resources
from jacana_torch.cli import main
from jacana_torch.model import persist

HERE = Path(__file__).parent
LARGEST = dict.fromkeys(("core", "standard", "syntactic"), 2_000_000)  # bytes
LARGEST |= dict.fromkeys(("neural", "neural_small"), 6_000_000)
PAIRS = HERE.parents[1] / "examples" / "pairs.txt"


@pytest.mark.parametrize("info", persist.shipped(), ids=lambda info: info.name)
def test_alignments_of_the_example_file(info, tmp_path):
    lacking = [name for name in info.resources if not resources.available(name)]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} not installed: jacana-torch resources install {' '.join(lacking)}")
    if "spacy-en" in info.resources:  # the parser's weights may be here without the library that reads them
        pytest.importorskip("spacy")
    found = tmp_path / "links.pharaoh"
    assert main(["align", str(PAIRS), "--model", info.name, "--output", str(found)]) == 0
    assert found.read_text() == (HERE / f"pairs.{info.name}.txt").read_text()


@pytest.mark.parametrize("info", persist.shipped(), ids=lambda info: info.name)
def test_models_are_small_trained_to_the_end_and_say_on_what(info):
    assert info.size < LARGEST[info.name] and info.description
    assert info.signature["converged"] and not info.signature["interrupted"] and info.signature["pairs"] == 1514
    assert all(not Path(file).is_absolute() for file in info.signature["data"])


def test_all_models_are_here_and_the_richer_one_comes_first():
    assert [info.name for info in persist.shipped()] == ["neural", "neural_small", "standard", "syntactic", "core"]
    assert [info.name for info in persist.shipped() if info.quick] == ["standard", "core"]  # chosen unasked
