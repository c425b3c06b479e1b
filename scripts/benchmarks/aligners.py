"""One aligner in one process, for scripts/neighbours.py: `python aligners.py JOB OUT` reads and writes JSON.

This file is run by the Python in which the neighbours are installed, so it imports nothing of this package, except
to run its models. A system is made once, which loads it, and then aligns sets of pairs. It returns links by the
name of the variant; "forward" and "backward" are two directions, which the caller combines.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Pair = tuple[list[str], list[str]]
Links = list[list[tuple[int, int]]]
Found = dict[str, Links]
BATCH = 32


class Jacana:
    """A model of ours."""

    def __init__(self, job: dict[str, Any]) -> None:
        import jacana_torch as jt
        from jacana_torch.types import Sentence, SentencePair

        self.model = jt.load(job["model"])
        self.made = lambda pair: SentencePair(Sentence(tuple(pair[0])), Sentence(tuple(pair[1])))

    def align(self, pairs: Sequence[Pair]) -> Found:
        found = self.model.align([self.made(pair) for pair in pairs], confidence=False)
        return {"": [sorted(one.links) for one in found]}


# Aligners that count the words of the text that they align


class FastAlign:
    """fast_align as SYSTRAN packages it. It returns both directions combined by grow-diag-final."""

    def __init__(self, job: dict[str, Any]) -> None:
        import systran_align

        self.library = systran_align

    def train(self, text: Sequence[Pair]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            given, forward, backward = (f"{folder}/{name}" for name in ("text", "forward", "backward"))
            Path(given).write_text("".join(f"{' '.join(s)} ||| {' '.join(t)}\n" for s, t in map(plain, text)))
            recommended = {"favor_diagonal": True, "optimize_tension": True, "variational_bayes": True}  # -d -o -v
            self.library.generate_alignment_probabilities(given, forward, backward, **recommended)
            self.aligner = self.library.Aligner(forward, backward)

    def align(self, pairs: Sequence[Pair]) -> Found:
        words = [plain(pair) for pair in pairs]
        found = self.aligner.align_batch([s for s, _ in words], [t for _, t in words])
        return {"grow-diag-final": [one["alignments"] for one in found]}


class ThotFastAlign:
    """fast_align as sil-thot has it, with the iterations of fast_align."""

    def __init__(self, job: dict[str, Any]) -> None:
        from thot.alignment import FastAlignModel

        self.make = FastAlignModel

    def train(self, text: Sequence[Pair]) -> None:
        words = [plain(pair) for pair in text]
        self.models = [self.trained(words), self.trained([(t, s) for s, t in words])]

    def trained(self, words: Sequence[Pair]) -> Any:
        model = self.make()
        model.variational_bayes = True
        for given, made in words:
            model.add_sentence_pair(given, made, 1.0)
        model.start_training()
        for _ in range(5):
            model.train()
        model.end_training()
        return model

    def align(self, pairs: Sequence[Pair]) -> Found:
        words = [plain(pair) for pair in pairs]
        one = [self.best(0, s, t) for s, t in words]
        other = [[(i, j) for j, i in self.best(1, t, s)] for s, t in words]
        return {"forward": one, "backward": other}

    def best(self, which: int, given: list[str], made: list[str]) -> list[tuple[int, int]]:
        _, matrix = self.models[which].get_best_alignment(given, made)
        return [(i - 1, j) for j, i in enumerate(matrix.to_list()[: len(made)]) if i > 0]


class Eflomal:
    """eflomal aligns the text that it is trained on, in one step: `text` holds the pairs too."""

    def __init__(self, job: dict[str, Any]) -> None:
        import eflomal

        self.aligner = eflomal.Aligner()

    def train(self, text: Sequence[Pair]) -> None:
        self.links = {}
        words = [plain(pair) for pair in text]
        with tempfile.TemporaryDirectory() as folder:
            files = {name: f"{folder}/{name}" for name in ("forward", "backward")}
            self.aligner.align(
                [" ".join(s) + "\n" for s, _ in words],
                [" ".join(t) + "\n" for _, t in words],
                links_filename_fwd=files["forward"],
                links_filename_rev=files["backward"],
            )
            for name, path in files.items():
                self.links[name] = [pharaoh(line) for line in Path(path).read_text().splitlines()]

    def align(self, pairs: Sequence[Pair]) -> Found:
        return {name: links[: len(pairs)] for name, links in self.links.items()}


def plain(pair: Pair) -> Pair:
    """Lower-case words that can stand in a file with blanks between them."""
    source, target = (
        [word.lower().replace(" ", "_").replace("|||", "_") or "_" for word in side] for side in pair
    )
    return source, target


def pharaoh(line: str) -> list[tuple[int, int]]:
    """Read a line of links, as in `0-0 1-2`."""
    links = []
    for item in line.split():
        i, j = item.split("-")
        links.append((int(i), int(j)))
    return links


# Aligners on the vectors of an encoder


class SimAlign:
    """simalign itself, on a local encoder."""

    def __init__(self, job: dict[str, Any]) -> None:
        from simalign import SentenceAligner

        self.aligner = SentenceAligner(
            job["encoder"], token_type=job["tokens"], matching_methods="ai", layer=job["layer"]
        )

    def align(self, pairs: Sequence[Pair]) -> Found:
        found = [self.aligner.get_word_aligns(*pair) for pair in pairs]
        return {name: [[(int(i), int(j)) for i, j in one[name]] for one in found] for name in ("inter", "itermax")}


class AwesomeAlign:
    """awesome-align itself, from file to file. Its own code for BERT reads no encoder of another architecture."""

    def __init__(self, job: dict[str, Any]) -> None:
        from awesome_align import modeling, run_align
        from awesome_align.configuration_bert import BertConfig
        from awesome_align.tokenization_bert import BertTokenizer

        self.run, self.job = run_align.word_align, job
        folder = job["encoder"]
        self.tokenizer = BertTokenizer.from_pretrained(folder)
        self.model = modeling.BertForMaskedLM.from_pretrained(folder, config=BertConfig.from_pretrained(folder))
        for name in ("pad", "cls", "sep"):
            setattr(modeling, f"{name.upper()}_ID", getattr(self.tokenizer, f"{name}_token_id"))

    def align(self, pairs: Sequence[Pair]) -> Found:
        with tempfile.TemporaryDirectory() as folder:
            given, out = Path(folder, "pairs"), Path(folder, "links")
            given.write_text("".join(f"{' '.join(s)} ||| {' '.join(t)}\n" for s, t in pairs))
            args = Namespace(
                data_file=str(given), output_file=str(out), output_prob_file=None, output_word_file=None,
                num_workers=0, batch_size=BATCH, device="cpu", align_layer=self.job["layer"],
                extraction="softmax", softmax_threshold=self.job["threshold"],
            )  # fmt: skip
            self.run(args, self.model, self.tokenizer)
            return {"": [pharaoh(line) for line in out.read_text().splitlines()]}


class Vectors:
    """Vectors of the word pieces of sentences, at one layer of a transformer. The layers above it are left out."""

    def __init__(self, folder: str, layer: int) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()
        self.model.encoder.layer = self.model.encoder.layer[:layer]

    def of(self, sentences: Sequence[list[str]]) -> list[tuple[Any, list[int]]]:
        """Return the vectors [pieces, size] of each sentence, and the word of each piece."""
        import torch

        tokens = self.tokenizer(
            list(sentences), is_split_into_words=True, padding=True, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            hidden = self.model(**tokens).last_hidden_state
        made = []
        for number in range(len(sentences)):
            places = [(k, word) for k, word in enumerate(tokens.word_ids(number)) if word is not None]
            made.append((hidden[number, [k for k, _ in places]], [word for _, word in places]))
        return made


class OnVectors:
    """A method that links what is strong enough, in batches of pairs of similar length."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.vectors = job, Vectors(job["encoder"], job["layer"])

    def align(self, pairs: Sequence[Pair]) -> Found:
        order = sorted(range(len(pairs)), key=lambda k: len(pairs[k][0]))
        found: Found = {f"threshold {least}": [[] for _ in pairs] for least in self.job["thresholds"]}
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            sides = [self.vectors.of([pairs[k][side] for k in batch]) for side in (0, 1)]
            for k, one, other in zip(batch, *sides, strict=True):
                strength, words, others = self.strength(*one, *other)
                for least, links in zip(self.job["thresholds"], found.values(), strict=True):
                    cells = zip(*(strength > least).nonzero(), strict=True)
                    links[k] = sorted({(words[i], others[j]) for i, j in cells})
        return found

    def strength(self, x: Any, words: list[int], y: Any, others: list[int]) -> tuple[Any, list[int], list[int]]:
        """Return an array, and the source word of each row and the target word of each column.

        x [pieces, size] and y are vectors of pieces, `words` and `others` the word of each piece.
        """
        raise NotImplementedError


class AwesomeMethod(OnVectors):
    """awesome-align's extraction: both softmaxes of the products have to be above the threshold."""

    def strength(self, x: Any, words: list[int], y: Any, others: list[int]) -> tuple[Any, list[int], list[int]]:
        product = x @ y.T
        return product.softmax(1).minimum(product.softmax(0)).numpy(), words, others


class TransportMethod(OnVectors):
    """OTAlign's unsupervised method: unbalanced optimal transport between words; large flows are links.

    Arase, Bao and Yokoi 2023. Cost: cosine distance from 0 to 1; mass: lengths of vectors; flows from 0 to 1.
    """

    def strength(self, x: Any, words: list[int], y: Any, others: list[int]) -> tuple[Any, list[int], list[int]]:
        import ot

        x, y = of_words(x, words), of_words(y, others)
        lengths = [side.norm(dim=1, keepdim=True).clamp_min(1e-9) for side in (x, y)]
        cost = scaled(1 - (x / lengths[0]) @ (y / lengths[1]).T).double().numpy()
        mass = [(side[:, 0] / side.sum()).double().numpy() for side in lengths]
        flow = ot.unbalanced.sinkhorn_unbalanced(*mass, cost, reg=self.job["reg"], reg_m=self.job["tau"])
        return scaled(flow), sorted(set(words)), sorted(set(others))


def of_words(vectors: Any, words: list[int]) -> Any:
    """Return the mean of the pieces of each word."""
    import torch

    kept = sorted(set(words))
    return torch.stack([vectors[[k for k, one in enumerate(words) if one == word]].mean(0) for word in kept])


def scaled(values: Any) -> Any:
    """Scale from 0, the least value, to 1, the greatest."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else values * 0 + 1


KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "jacana": Jacana, "fast_align": FastAlign, "thot": ThotFastAlign, "eflomal": Eflomal, "simalign": SimAlign,
    "awesome": AwesomeAlign, "awesome_method": AwesomeMethod, "transport": TransportMethod,
}  # fmt: skip
TOY: Pair = (["a", "grey", "heron", "waded", "."], ["one", "heron", "waded", "slowly", "."])


def main(job_file: str, out: str) -> None:
    job = json.loads(Path(job_file).read_text())
    system = KINDS[job["kind"]](job)
    done(system, [TOY], [])
    report: dict[str, Any] = {"start": cpu()}
    report["versions"] = {name: importlib.metadata.version(name) for name in job["packages"]}
    report["sets"] = {name: measured(system, one["pairs"], one["text"]) for name, one in job["sets"].items()}
    report["rates"] = [measured(system, pairs, []) for pairs in job["rates"]]
    for one in report["rates"]:
        del one["links"]
    Path(out).write_text(json.dumps(report))


def measured(system: Any, pairs: Sequence[Pair], text: Sequence[Pair]) -> dict[str, Any]:
    """Align a set. `text` is more of the same without links, for systems that are trained on what they align."""
    before = cpu()
    trained, found = done(system, pairs, text)
    seconds = {"cpu": cpu() - before, "training": trained}
    return {"pairs": len(pairs), "text": len(pairs) + len(text), **seconds, "links": found}


def done(system: Any, pairs: Sequence[Pair], text: Sequence[Pair]) -> tuple[float, Found]:
    """Return CPU seconds of training, which are part of the whole, and the links."""
    before = cpu()
    if hasattr(system, "train"):
        system.train([*pairs, *text])
    return cpu() - before, system.align(pairs)


def cpu() -> float:
    """CPU seconds of this process, from its start, and of its ended children."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main(*sys.argv[1:])
