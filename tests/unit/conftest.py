"""What tests of the command line share: a small trained model, and a way to run commands in this process."""

from __future__ import annotations

import io
import sys

import pytest
from commands import WORDS

from jacana_torch.cli import main
from jacana_torch.types import Alignment, Example, Sentence, SentencePair


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    """A model that links equal words, trained by the real thing."""
    from jacana_torch.model import persist

    def direction() -> dict:
        families = {"string": {"_target_": "jacana_torch.features.families.string.String"}}
        families["position"] = {"_target_": "jacana_torch.features.families.position.Position"}
        return {"_target_": "jacana_torch.aligners.crf.Crf", "families": families, "max_iterations": 60}

    aligner = {"_target_": "jacana_torch.aligners.bidirectional.Bidirectional"}
    aligner |= {"forward": direction(), "backward": direction()}
    config = {"model": {"_target_": "jacana_torch.model.model.Model", "aligner": aligner}}
    made = persist.build(config["model"])
    examples = []
    for start in range(12):
        source = [WORDS[(start + step * (start % 3 + 1)) % len(WORDS)] for step in range(5)]
        target = source[::-1][: 3 + start % 3]
        links = {(source.index(word), j) for j, word in enumerate(target)}
        pair = SentencePair(Sentence(tuple(source)), Sentence(tuple(target)))
        examples.append(Example(pair, Alignment(len(source), len(target), frozenset(links))))
    made.aligner.fit(examples)
    return str(persist.save(made, tmp_path_factory.mktemp("model") / "tiny", config, {}))


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run in this process: (exit code, stdout, stderr)."""

    def run(*arguments: str, stdin: bytes | str = b"") -> tuple[int, str, str]:
        stdin = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            code = main(list(arguments))
        except SystemExit as stop:  # argparse leaves this way
            code = stop.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def own_home(tmp_path, monkeypatch, request):
    """A cache of the test's own, but for tests of what is installed (`real` in their names)."""
    if "real" not in request.node.name:
        monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))
