"""Sidecars: layers as in the file, matched to the right sentence, and errors with file and line."""

from __future__ import annotations

import json
import logging
import pickle

import pytest

from jacana_torch import resources
from jacana_torch.annotate import annotate
from jacana_torch.annotate.given import GivenAnnotator
from jacana_torch.annotate.sidecars import read_conllu, read_mst, read_parse_jsonl
from jacana_torch.corpora import read
from jacana_torch.errors import ConfigError, CorpusError, MissingResource
from jacana_torch.types import Sentence, SentencePair

ROW = {
    "id": "one",
    "source_pos": ["NNS", "VBD", "NN"],
    "source_heads": [2, 0, 2],
    "source_deprels": ["nsubj", "root", "dobj"],
    "source_lemma_auto": ["goose", "ate", "Grass"],
    "source_ner": ["O", "PER-DESC-B", "PER-DESC-I"],
    "target_pos": ["NNS", "VBP"],
    "target_heads": [2, 0],
    "target_deprels": ["nsubj", "root"],
    "target_lemma_auto": ["gees", "eat"],
}
MST = (
    "Geese\tate\t-LRB-\nNNS\tVBD\tNN\nnsubj\troot\tdobj\n2\t0\t2\n-\t-\t-\n\n"
    "Geese\teat\nNNS\tVBP\nnsubj\troot\n2\t0\n-\t-\n\n"
)
CONLLU = (
    "# sent_id = 1\n# text = Geese didn't eat\n"
    "1\tGeese\tgoose\tNOUN\tNNS\t_\t4\tnsubj\t_\tNER=B-ANIMAL\n"
    "2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tdid\tDo\tAUX\tVBD\t_\t4\taux\t_\t_\n"
    "3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\tSpaceAfter=No|NER=S-X\n"
    "3.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "4\teat\t_\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
    "1\tGeese\tgoose\tNOUN\t_\t_\t_\t_\t_\t_\n"
)
PAIR = SentencePair(Sentence(("Geese", "ate", "grass")), Sentence(("Geese", "eat")), "one")
needs_wordnet = pytest.mark.skipif(not resources.available("wordnet"), reason="WordNet is not installed")


def put(tmp_path, *rows, name="corpus.parse.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_parse_jsonl(tmp_path):
    done = GivenAnnotator(put(tmp_path, ROW), lemmas="given")([PAIR])[0]
    assert dict(done.source.layers) == {
        "pos": ("NNS", "VBD", "NN"),
        "head": (1, -1, 1),
        "deprel": ("nsubj", "root", "dobj"),
        "ner": ("O", "B-PER-DESC", "I-PER-DESC"),
        "lemma": ("goose", "ate", "grass"),
    }
    assert set(done.target.layers) == {"pos", "head", "deprel", "lemma"}
    assert not PAIR.source.layers


@needs_wordnet
def test_lemmas_are_wordnets_by_default(tmp_path):
    done = GivenAnnotator(put(tmp_path, ROW))([PAIR])[0]
    assert done.source.layer("lemma") == ("goose", "eat", "grass")
    assert done.target.layer("lemma") == ("goose", "eat")


def test_lemma_choices(tmp_path):
    path = put(tmp_path, ROW)
    assert GivenAnnotator(path, lemmas="lower")([PAIR])[0].source.layer("lemma") == ("geese", "ate", "grass")
    assert "lemma" not in GivenAnnotator(path, lemmas="none")([PAIR])[0].source.layers
    with pytest.raises(ConfigError, match="lemmas='porter'"):
        GivenAnnotator(path, lemmas="porter")
    bare = {key: value for key, value in ROW.items() if "lemma" not in key}
    with pytest.raises(CorpusError, match=r"x.parse.jsonl:1: the file gives no lemmas"):
        GivenAnnotator(put(tmp_path, bare, name="x.parse.jsonl"), lemmas="given")([PAIR])


def test_without_wordnet_lemmas_are_lower_case_with_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("JACANA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NLTK_DATA", raising=False)
    if resources.available("wordnet"):
        pytest.skip("NLTK's WordNet lies in a place of the whole machine")
    path = put(tmp_path, ROW)
    with caplog.at_level(logging.WARNING):
        done = GivenAnnotator(path)([PAIR])[0]
    assert done.source.layer("lemma") == ("geese", "ate", "grass") and "WordNet is missing" in caplog.text
    with pytest.raises(MissingResource, match="wordnet"):
        GivenAnnotator(path, lemmas="wordnet")([PAIR])


def test_existing_layers_stay_unless_overwritten(tmp_path):
    path = put(tmp_path, ROW)
    tagged = SentencePair(PAIR.source.with_layers(pos=("X", "X", "X")), PAIR.target, "one")
    assert GivenAnnotator(path, lemmas="none")([tagged])[0].source.layer("pos") == ("X", "X", "X")
    over = GivenAnnotator(path, lemmas="none", overwrite=True)([tagged])[0]
    assert over.source.layer("pos") == ("NNS", "VBD", "NN")


def test_pairs_are_matched_by_ids_in_any_order(tmp_path):
    other = {**ROW, "id": 2, "source_pos": ["A", "B", "C"]}
    path = put(tmp_path, ROW, other)
    second = SentencePair(PAIR.source, PAIR.target, "2")
    done = GivenAnnotator(path, lemmas="none")([second, PAIR])
    assert [pair.source.layer("pos")[0] for pair in done] == ["A", "NNS"]


def test_pairs_without_ids_are_matched_by_order(tmp_path):
    rows = [{k: v for k, v in ROW.items() if k != "id"} | {"source_pos": [f"T{n}"] * 3} for n in range(5)]
    path = put(tmp_path, *rows)
    bare = [SentencePair(PAIR.source, PAIR.target)] * 5
    done = annotate(bare, GivenAnnotator(path, lemmas="none"), chunk=2)
    assert [pair.source.layer("pos")[0] for pair in done] == [f"T{n}" for n in range(5)]
    with pytest.raises(CorpusError, match="5 annotated pairs for 4 pairs"):
        GivenAnnotator(path, lemmas="none")(bare[:4])


def test_pairs_without_annotation(tmp_path):
    path = put(tmp_path, ROW, {**ROW, "id": "two"})
    stranger = SentencePair(PAIR.source, PAIR.target, "three")
    with pytest.raises(CorpusError, match="nothing for 1 of 2 pairs, the first 'three'"):
        GivenAnnotator(path, lemmas="none")([PAIR, stranger])
    done = GivenAnnotator(path, lemmas="none", unmatched="keep")([PAIR, stranger])
    assert "pos" in done[0].source.layers and done[1] == stranger
    with pytest.raises(ConfigError, match="unmatched"):
        GivenAnnotator(path, unmatched="maybe")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source_pos": ["NN", "VB"]}, r"differ in length.*source_pos 2, source_heads 3"),
        ({"source_heads": [2, 0, 4]}, r"token 3 of 3 cannot have the head 4"),
        ({"source_heads": [2, 2, 0]}, r"token 2 of 3 cannot have the head 2"),
        ({"source_heads": [2, 0, -1]}, r"cannot have the head -1"),
        ({"source_heads": [2, 0, "2"]}, r"source_heads must be a list of int"),
        ({"source_heads": [2, 0, True]}, r"source_heads must be a list of int"),
        ({"source_pos": "NNS VBD NN"}, r"source_pos must be a list of str"),
        ({"source_ner": ["O", "O", "PERSON"]}, r"'PERSON' is not an entity tag"),
        ({"id": "one"}, r"duplicate id 'one', first on line 1"),
    ],
)
def test_errors_in_a_row_name_file_and_line(tmp_path, change, said):
    path = put(tmp_path, ROW, {**ROW, "id": "two", **change})
    with pytest.raises(CorpusError, match=rf"corpus.parse.jsonl:2: .*{said}"):
        GivenAnnotator(path, lemmas="none")([PAIR])


def test_wrong_numbers_of_values_are_errors(tmp_path):
    path = put(tmp_path, {**ROW, "id": "zero"}, ROW)
    short = SentencePair(Sentence(("Geese",)), PAIR.target, "one")
    with pytest.raises(
        CorpusError, match=r"corpus.parse.jsonl:2: 3 values of pos for the 1 tokens of the source 'Geese'"
    ):
        GivenAnnotator(path)([short])
    with pytest.raises(CorpusError, match="flipped"):
        GivenAnnotator(path)([PAIR.flip()])


def test_unreadable_files_are_errors(tmp_path):
    with pytest.raises(CorpusError, match=r"a.parse.jsonl:2: broken JSON"):
        read_parse_jsonl(write(tmp_path, json.dumps(ROW) + "\n{oops\n", "a.parse.jsonl"))
    with pytest.raises(CorpusError, match=r"b.parse.jsonl:1: expected a JSON object"):
        read_parse_jsonl(write(tmp_path, "[1]\n", "b.parse.jsonl"))
    with pytest.raises(CorpusError, match=r"c.parse.jsonl:1: there is no source_pos"):
        read_parse_jsonl(write(tmp_path, '{"id": "x"}\n', "c.parse.jsonl"))
    (tmp_path / "d.mst").write_bytes(b"Fish\n\xff\n")
    with pytest.raises(CorpusError, match=r"d.mst:2: this is not UTF-8"):
        read_mst(tmp_path / "d.mst")
    with pytest.raises(CorpusError, match="absent.mst: cannot be read"):
        GivenAnnotator(tmp_path / "absent.mst")([PAIR])
    with pytest.raises(ConfigError, match="annotation formats are parse.jsonl"):
        GivenAnnotator(tmp_path / "what.xml")


def test_mst_is_matched_by_tokens_in_any_order_and_spelling(tmp_path):
    path = write(tmp_path, "\ufeff" + MST.replace("\n", "\r\n"), "some.mst")
    asked = SentencePair(Sentence(("Geese", "eat")), Sentence(("geese", "ate", "(")), "any")
    done = GivenAnnotator(path, lemmas="none")([asked])[0]
    assert done.source.layer("pos") == ("NNS", "VBP") and done.source.layer("head") == (1, -1)
    assert done.target.layer("deprel") == ("nsubj", "root", "dobj") and done.target.tokens == ("geese", "ate", "(")
    with pytest.raises(CorpusError, match="some.mst: there is no sentence 'Geese ate grass'"):
        GivenAnnotator(path)([PAIR])


def test_a_duplicate_sentence_is_taken_from_its_own_side(tmp_path):
    block = "Geese\teat\n{0}\t{0}\nnsubj\troot\n2\t0\n\n"
    path = write(tmp_path, block.format("S") + block.format("T"), "twice.mst")
    same = Sentence(("Geese", "eat"))
    done = GivenAnnotator(path, lemmas="none")([SentencePair(same, same)])[0]
    assert (done.source.layer("pos"), done.target.layer("pos")) == (("S", "S"), ("T", "T"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb\nN\tN\nx\ty\n", r"bad.mst:1: a block has four or five lines, not 3"),
        (MST + "a\tb\nN\nx\ty\n0\t1\n", r"bad.mst:14: 1 tags for 2 tokens"),
        (MST + "a\tb\nN\tN\nx\ty\n0\n", r"bad.mst:16: 1 heads for 2 tokens"),
        (MST + "a\tb\nN\tN\nx\ty\n0\tz\n", r"bad.mst:16: a head is a number, not 'z'"),
        (MST + "a\tb\nN\tN\nx\ty\n0\t9\n", r"bad.mst:16: token 2 of 2 cannot have the head 9"),
    ],
)
def test_broken_mst(tmp_path, text, said):
    with pytest.raises(CorpusError, match=said):
        read_mst(write(tmp_path, text, "bad.mst"))


def test_conllu(tmp_path):
    path = write(tmp_path, CONLLU, "some.conllu")
    asked = SentencePair(Sentence(("Geese", "did", "n't", "eat")), Sentence(("Geese",)))
    done = GivenAnnotator(path)([asked])[0]
    assert dict(done.source.layers) == {
        "pos": ("NNS", "VBD", "RB", "VB"),
        "lemma": ("goose", "do", "not", "eat"),
        "head": (3, 3, 3, -1),
        "deprel": ("nsubj", "aux", "advmod", "root"),
        "ner": ("B-ANIMAL", "O", "B-X", "O"),
    }
    assert dict(done.target.layers) == {"lemma": ("goose",)}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2\tdid\tDo", "2 did Do", r"bad.conllu:5: .*ten tab-separated columns"),
        ("2\tdid", "7\tdid", r"bad.conllu:5: token number 2 is expected, not '7'"),
        ("\t0\troot", "\t_\troot", r"bad.conllu:8: a head is a number, not '_'"),
        ("NER=B-ANIMAL", "NER=ANIMAL", r"bad.conllu:1: 'ANIMAL' is not an entity tag"),
    ],
)
def test_broken_conllu(tmp_path, old, new, said):
    with pytest.raises(CorpusError, match=said):
        read_conllu(write(tmp_path, CONLLU.replace(old, new), "bad.conllu"))


def test_empty_sentences_have_empty_layers(tmp_path):
    path = write(tmp_path, MST, "some.mst")
    done = GivenAnnotator(path)([SentencePair(Sentence(()), Sentence(("Geese", "eat")))])[0]
    assert done.source.layer("pos") == () and done.source.layer("lemma") == ()


def test_a_pickled_annotator_reads_its_file_again(tmp_path):
    annotator = GivenAnnotator(put(tmp_path, ROW), lemmas="none")
    first = annotator([PAIR])
    again = pickle.loads(pickle.dumps(annotator))
    assert again._records is None and again([PAIR]) == first


@pytest.mark.parametrize("corpus", ["msr/dev", "edinburgh/train"])
def test_the_corpora_and_their_parses(data_root, corpus):
    """Every pair gets the layers of its row."""
    rows = [json.loads(line) for line in (data_root / f"{corpus}.parse.jsonl").read_text("utf-8").splitlines()]
    pairs = [example.pair for example in read(data_root / f"{corpus}.jsonl")]
    done = GivenAnnotator(data_root / f"{corpus}.parse.jsonl", lemmas="lower")(pairs)
    assert len(done) == len(rows)
    for row, pair in zip(rows, done, strict=True):
        for side, sentence in (("source", pair.source), ("target", pair.target)):
            assert sentence.layer("pos") == tuple(row[f"{side}_pos"])
            assert [head + 1 for head in sentence.layer("head")] == row[f"{side}_heads"]
            assert sentence.layer("deprel") == tuple(row[f"{side}_deprels"])
            marks = row.get(f"{side}_ner")
            assert sentence.layers.get("ner") == (marks and tuple("-".join(_swapped(m)) for m in marks))


def _swapped(mark: str) -> list[str]:
    *label, letter = mark.split("-")
    return [letter, *label]


def test_the_mst_of_msr(data_root):
    """Both files annotate the same sentences, and each sentence of the corpus is found in the one with tokens."""
    pairs = [example.pair for example in read(data_root / "msr" / "dev.jsonl")]
    by_tokens = GivenAnnotator(data_root / "msr" / "RTE2_dev_M.mst", lemmas="none")(pairs)
    by_id = GivenAnnotator(data_root / "msr" / "dev.parse.jsonl", lemmas="none")(pairs)
    differ = sum(a.source.layer("head") != b.source.layer("head") for a, b in zip(by_tokens, by_id, strict=True))
    assert differ < len(pairs) // 100 and len(by_tokens) == 800
