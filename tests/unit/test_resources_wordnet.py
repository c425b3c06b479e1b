"""WordNet against NLTK's own reader: on small made-up databases, and on the real one where it is installed."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from wordnet_twin import STEMS, check_relations, nltk_reader, write_database

from jacana_torch.annotate.tokens import lemmas
from jacana_torch.errors import JacanaError
from jacana_torch.resources import available, path, store, wordnet_graph
from jacana_torch.resources.wordnet_graph import RELATIONS, load


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch, request):
    if "real" not in request.node.name and "known_facts" not in request.node.name:
        monkeypatch.setenv("JACANA_HOME", str(tmp_path / "home"))
    load.cache_clear()
    yield
    load.cache_clear()


@pytest.fixture
def database(tmp_path):
    return write_database(tmp_path / "corpora" / "wordnet", 1)


FORMS = sorted(
    {s.lower() for s in STEMS} | {"cats", "wolf", "bods", "jogged", "lower", "fish", "dresses", "nothing"}
)


def test_made_up_databases_give_what_nltk_gives(tmp_path, monkeypatch):
    total = dict.fromkeys(RELATIONS, 0)
    for seed in range(4):
        folder = write_database(tmp_path / f"made{seed}" / "wordnet", seed)
        net, reader = load(folder), nltk_reader(folder, monkeypatch)
        queries = [(form, pos) for form in FORMS for pos in (None, "n", "v", "a", "r")]
        for form, pos in queries:
            assert net.morphy(form, pos) == reader.morphy(form, pos), (form, pos)
            ours = [net.offset(s) for s in net.synsets(form, pos).tolist()]
            assert ours == [(s.pos(), s.offset()) for s in reader.synsets(form, pos)], (form, pos)
        rng = random.Random(seed)
        left, right = rng.choices(queries, k=500), rng.choices(queries, k=500)
        monkeypatch.setattr(wordnet_graph, "_PAIRS_AT_ONCE", (7, 100_000)[seed % 2])
        for name, count in check_relations(net, reader, left, right, depth=1 + seed).items():
            total[name] += count
    assert min(total.values()) > 0, total  # every relation was put to the test


def _real():
    if not available("wordnet"):
        pytest.skip("WordNet is not installed: jacana-torch resources install wordnet")
    source = path("wordnet")
    if not source.is_dir():
        pytest.skip("NLTK's reader is compared on a directory, and this WordNet is a zip")
    return source


@pytest.fixture(scope="module")
def real_reader():
    with pytest.MonkeyPatch.context() as patch:
        yield nltk_reader(_real(), patch)


@pytest.mark.slow
def test_real_wordnet_morphology_is_nltks(real_reader):
    net = load(_real())
    rng = random.Random(5)
    forms = rng.sample(sorted(real_reader._lemma_pos_offset_map), 700)
    exceptions = [form for pos in "nvar" for form in real_reader._exception_map[pos]]
    endings = [
        "",
        "s",
        "es",
        "ies",
        "ed",
        "d",
        "ing",
        "er",
        "r",
        "est",
        "men",
        "ves",
        "ches",
        "shes",
        "xes",
        "zes",
    ]
    forms = [form[: len(form) - rng.randint(0, 2)] + rng.choice(endings) for form in forms] + forms + exceptions
    everything = sorted(real_reader._lemma_pos_offset_map)
    for base, inflected in INFLECTED:
        fitting = [form for form in everything if form.endswith(base)]
        forms += [form[: len(form) - len(base)] + inflected for form in rng.sample(fitting, 60)]
    forms += ["", "s", "ing", "Dogs", "U.S.", "naïve", "\ud800", "ice cream"]
    for form in forms:
        for pos in (None, "n", "v", "a", "r"):
            assert net.morphy(form, pos) == real_reader.morphy(form, pos), (form, pos)


def test_real_wordnet_gives_the_lemmas_of_tagged_words_that_nltk_gives(real_reader):
    """For words of every inflection that the rules know, and some that they do not."""
    _real()
    stems = "wolf dish pass buy try big fast sing woman axis Zorblax mill- 42 % child up United die".split()
    endings = ("", "s", "es", "ies", "ed", "ing", "er", "est", "ves", "men")
    words = [stem + end for stem in stems for end in endings]
    for tag, pos in (("NN", "n"), ("NNPS", "n"), ("VBG", "v"), ("JJR", "a"), ("RBS", "r")):
        expected = tuple(real_reader.morphy(word.lower(), pos) or word.lower() for word in words)
        assert lemmas([words, words[::-1]], [[tag] * len(words)] * 2) == [expected, expected[::-1]], tag


def test_real_wordnet_senses_are_nltks_in_order(real_reader):
    net = load(_real())
    forms = random.Random(6).sample(sorted(real_reader._lemma_pos_offset_map), 1200)
    for form in [*forms, "Dogs", "run", "well", "better", "saw", "leaves", "qwxz"]:
        for pos in (None, "n", "v", "a", "r"):
            ours = [net.offset(s) for s in net.synsets(form, pos).tolist()]
            assert ours == [(s.pos(), s.offset()) for s in real_reader.synsets(form, pos)], (form, pos)


INFLECTED = [
    ("", "s"), ("s", "ses"), ("f", "ves"), ("x", "xes"), ("z", "zes"), ("ch", "ches"), ("sh", "shes"),
    ("man", "men"), ("y", "ies"), ("e", "es"), ("", "es"), ("e", "ed"), ("", "ed"), ("e", "ing"), ("", "ing"),
    ("", "er"), ("", "est"), ("e", "er"), ("e", "est"),
]  # fmt: skip


PAIRS = """car automobile|dog canine|canine dog|dog animal|animal dog|snore sleep|sleep snore|kill die|die kill
tree forest|forest tree|finger hand|hand finger|water ice|steel iron|iron steel|hot cold|cold hot|decide decision
decision decide|quickly quick|quick quickly|cat dog|paris city|bought purchase|feet inch|large big|heavy hefty
show prove|oxygen air|air oxygen|ice_cream dessert|Ice-cream food|wet damp|member club|give have
France Europe|better good"""


def test_real_wordnet_relations_are_nltks(real_reader):
    net = load(_real())
    named = [tuple(pair.split()) for pair in PAIRS.replace("\n", "|").split("|")]
    queries = [((a, pos), (b, pos)) for a, b in named for pos in (None, "n", "v", "a")]
    rng = random.Random(7)
    words = [a for pair in named for a in pair]
    queries += [((rng.choice(words), None), (rng.choice(words), None)) for _ in range(400)]
    counts = check_relations(net, real_reader, [a for a, _ in queries], [b for _, b in queries], depth=3)
    assert min(counts.values()) > 0, counts


def test_real_wordnet_is_fast():
    net = load(_real())
    load.cache_clear()
    begun = time.perf_counter()
    net = load(_real())
    opening = time.perf_counter() - begun
    rng = random.Random(8)
    words = rng.sample([form for form in net.forms.all() if "_" not in form], 8000)
    left = [(rng.choice(words), None) for _ in range(150_000)]
    right = [(rng.choice(words), None) for _ in range(150_000)]
    begun = time.perf_counter()
    net.related(left, right)
    asking = time.perf_counter() - begun
    assert opening < 1 and asking < 5, (opening, asking)  # 0.04 and 0.15 s here; bounds for a busy machine


def test_known_facts_that_other_implementations_got_wrong():
    net = load(_real())
    facts = net.related(
        [("cat", "n"), ("dog", "n"), ("dog", "n")], [("dog", "n"), ("canine", "n"), ("animal", "n")]
    )
    assert facts["hypernym"].tolist() == [False, True, False]  # sharing a hypernym is not being one
    assert facts["sister"].tolist()[0] is False and facts["hypernym_deep"].tolist() == [False, True, True]


def test_morphy_keeps_case_and_never_fails(database):
    net = load(database)
    assert net.morphy("cats", "n") == "cat"  # the list of exceptions has hen before it, which is no noun here
    assert net.morphy("zzyzx") is None and net.morphy("") is None
    assert net.morphy("Cat") is None  # as NLTK's
    assert net.morphy_all([], []) == []


def test_no_pairs_unequal_pairs_and_bad_depth(database):
    net = load(database)
    assert all(values.shape == (0,) for values in net.related([], []).values())
    unknown = net.related([("zzyzx", None)], [("qwxz", "n")])
    assert not any(values.any() for values in unknown.values())
    with pytest.raises(ValueError, match="2 left words"):
        net.related([("cat", None)] * 2, [("cat", None)])
    with pytest.raises(ValueError, match="depth"):
        net.related([], [], depth=0)


def test_the_second_opening_reads_no_source_and_a_changed_source_is_read_anew(database, caplog):
    caplog.set_level("INFO")
    load(database)
    load.cache_clear()
    load(database)
    assert caplog.text.count("preparing") == 1
    load.cache_clear()
    with open(database / "noun.exc", "a") as out:
        out.write("kine bod\n")
    net = load(database)
    assert caplog.text.count("preparing") == 2 and net.morphy("kine", "n") == "bod"


def test_damaged_arrays_are_built_again(database, tmp_path, caplog):
    before = load(database).related([("cat", None)], [("hen", None)])
    load.cache_clear()
    (compiled,) = (tmp_path / "home" / "compiled").iterdir()
    for file, content in (("senses.synset", b"x"), ("index.json", b"{"), ("forms.bytes", None)):
        (compiled / file).unlink() if content is None else (compiled / file).write_bytes(content)
        again = load(database).related([("cat", None)], [("hen", None)])
        load.cache_clear()
        assert all(np.array_equal(before[name], again[name]) for name in before)
    assert caplog.text.count("built again") >= 2


def test_without_a_writable_home_it_works_from_memory(database, tmp_path, monkeypatch, caplog):
    expected = load(database).related([("cat", None)] * 3, [("hen", None), ("kin", None), ("low", None)])
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("JACANA_HOME", str(tmp_path / "file" / "home"))
    load.cache_clear()
    found = load(database).related([("cat", None)] * 3, [("hen", None), ("kin", None), ("low", None)])
    assert all(np.array_equal(expected[name], found[name]) for name in expected)
    assert "kept in memory" in caplog.text


def test_a_pickle_is_small_and_opens_the_same_arrays(database):
    net = load(database)
    data = pickle.dumps(net)
    assert len(data) < 1000
    assert pickle.loads(data) is net


def test_two_processes_may_compile_at_once(database, tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from jacana_torch.resources.wordnet_graph import load\n"
        "print(len(load(Path(sys.argv[2])).forms))"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parents[2]), str(database)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    ends = [process.communicate() for process in running]
    assert len({out for out, _ in ends}) == 1 and all(p.returncode == 0 for p in running), ends
    assert len(list((tmp_path / "home" / "compiled").iterdir())) == 1
    assert list((tmp_path / "home" / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("data.noun", lambda text: text[: len(text) // 2], r"data\.noun:\d+: |points .* which does not exist"),
        ("data.verb", lambda text: text.replace("\n", "\r\n"), r"data\.verb:\d+: .*is at byte"),
        ("data.adj", lambda text: "", r"data\.adj is empty"),
        ("index.noun", lambda text: text.replace(" n ", " n x", 1), r"index\.noun:2: "),
        ("index.adv", lambda text: text + "late r 1 1 @ 1 0 00000007\n", r"index\.adv:\d+: "),
    ],
)
def test_damaged_files_are_named_with_their_line(database, file, change, message):
    text = (database / file).read_bytes().decode()
    (database / file).write_bytes(change(text).encode())
    with pytest.raises(JacanaError, match=message):
        load(database)
    assert "jacana-torch resources install wordnet" in _message(database) or "empty" in _message(database)


def _message(database: Path) -> str:
    with pytest.raises(JacanaError) as caught:
        load(database)
    return str(caught.value)


def test_a_missing_source_is_an_error_not_a_traceback(tmp_path):
    with pytest.raises(JacanaError, match=r"cannot read .*data\.noun"):
        load(tmp_path)
    assert store.home() == tmp_path / "home"
