"""Plant edits in twenty documents, and measure how many `jt.diff` finds, with kind and words.

    python scripts/diff_planted.py [--model standard] [--seed 1] [--show]

In each document of diff_documents.txt, words are replaced by paraphrases, deleted and inserted,
opening phrases move to the end of their sentence, and sentences move, vanish and appear. An edit is found if one
of the same kind has the same words, but for case and punctuation. `--time N` measures N words instead.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from outcome import outcome

import jacana_torch as jt
from jacana_torch.differences import Diff

DOCUMENTS = (Path(__file__).parent / "diff_documents.txt").read_text(encoding="utf-8").strip().split("\n\n")
REPLACED = dict(
    line.split(" = ")
    for line in """approved = accepted
large sums = much money|residents = inhabitants|welcomed = greeted|fear = worry
promised = pledged|finish = complete|bought = purchased|small = little|picture = painting
several = many|believe = think|famous = well-known|gift = present|told = informed|modest = low
strong = powerful|damaged = harmed|destroyed = wrecked|closed = shut|hurt = injured|elderly = old
refused = declined|repaired = fixed|quickly = fast|warned = cautioned|heavy = intense
illness = disease|costly = expensive|begin = start|bigger = larger|purchase = buy
cheaply = at a low price|built = constructed|observed = watched|gathered = collected|firm = company
autumn = fall|discovered = found|wooden = timber|short = brief|helper = assistant|study = examine
collect = gather|unknown = unfamiliar|mission = expedition|powerful = strong|pupils = students
complained = grumbled|stare = gaze|answered = replied|discuss = talk about|rose = increased
slightly = a little|gets up = rises|remote = distant|recently = lately|start = open|stole = took
valuable = precious|thieves = robbers|assumed = supposed|cheap = inexpensive|generous = large
useful = helpful|agreement = treaty|limits = restricts|argued = quarrelled|check = inspect
historic = momentous|dismissed = fired|demanded = called for|named = appointed|tough = hard
boss = chief|happy = glad|huge = enormous|arrived = came|remove = take away|tiny = very small
appeared = emerged|cancelled = called off|angry = furious|staff = employees|handed out = distributed
faulty = defective|resumed = continued|apologised = said sorry|hates = detests|bright = brilliant
copy = imitate|quiet = calm|present = current|noisy = loud|travel = commute|difficult = hard
intends = plans|performed = played|wrote = composed|praised = lauded|clear = distinct
attracted = drew|careless = reckless|brave = courageous|designed = developed|slowly = gradually
drives = powers|showed = presented|ordered = requested|clean = purify|claimed = asserted
examined = inspected|rejected = dismissed|strict = firm|celebrated = marked""".replace("\n", "|").split("|")
)  # fmt: skip
DELETED = set(
    """large new wide old narrow small main similar rich strong high elderly heavy simple rare costly single bigger
    rural young ripe soft long dusty rusty wooden short deep hot expensive spare late thin lighter average dark big
    tiny thick torn cheap generous useful shared dry joint former temporary huge angry free faulty full bright
    regional quiet empty forgotten very clear careless brave eastern dirty older strict slightly rather
    quickly""".split()
)
INSERTED = {
    "plan": "bold", "street": "busy", "director": "proud", "picture": "lovely", "boats": "wooden",
    "patients": "young", "machine": "clever", "robot": "noisy", "film": "funny", "crew": "skilled",
    "camera": "modern", "parents": "worried", "teachers": "local", "baker": "friendly",
    "guard": "sleepy", "manager": "nervous", "ministers": "tired", "captain": "loyal", "club": "famous",
    "birds": "white", "workers": "municipal", "passengers": "thirsty", "shelves": "wide",
    "reporter": "curious", "employees": "loyal", "student": "clever", "audience": "grateful",
    "boy": "small", "rangers": "careful", "motor": "electric", "founders": "proud", "experts": "foreign",
    "judge": "elderly", "owner": "stubborn", "mayor": "popular", "council": "regional", "ship": "grey",
    "coins": "golden", "farmers": "poor",
}  # fmt: skip
NEW = """Scholars from Norway translated the poem last year.|Her neighbour keeps four goats and a donkey.
Snow fell on the hills while the train stood still.|A retired pilot writes crossword puzzles for the newspaper.
Cheese from this region ripens in cool caves.|The violin teacher moved to Lisbon with her cats.
Bees prefer lavender to roses in hot weather.|Chess players meet in the library every Thursday.
An astronomer named the comet after her daughter.|Their cousin repairs clocks in a cellar."""
SENTENCES = NEW.replace("\n", "|").split("|")

Key = tuple[str, tuple[str, ...], tuple[str, ...]]


def words(text: str) -> tuple[str, ...]:
    kept = ("".join(c for c in word.lower() if c.isalnum() or c in "-'") for word in text.split())
    return tuple(word for word in kept if word)


def planted(text: str, rng: random.Random) -> tuple[str, list[Key]]:
    """Return the document with edits, and the edits."""
    sentences = [f"{sentence.rstrip('.')}." for sentence in text.split(". ")]
    gold: list[Key] = []
    changed: list[str] = []
    for sentence in sentences:
        changed.append(_reworded(sentence, rng, gold))
    move, gone = rng.sample(range(len(changed)), 2)
    untouched = [k for k, sentence in enumerate(changed) if sentence == sentences[k]]
    if len(untouched) > 1:
        move, gone = rng.sample(untouched, 2)
    else:  # whole sentences move and vanish as they were
        for k in (move, gone):
            old = [key for key in gold if set(key[1] + key[2]) <= set(words(sentences[k]) + words(changed[k]))]
            for key in old:
                gold.remove(key)
            changed[k] = sentences[k]
    rest = [k for k in range(len(changed)) if k not in (move, gone)]
    place = rng.choice([p for p in range(len(rest) + 1) if _crosses(rest, p, move, gone)])
    out = [changed[k] for k in rest]
    out.insert(place, changed[move])
    gold += [("move", words(changed[move]), words(changed[move])), ("delete", words(sentences[gone]), ())]
    new = rng.choice(SENTENCES)
    out.insert(rng.randrange(len(out) + 1), new)
    gold.append(("insert", (), words(new)))
    return " ".join(out), gold


def _crosses(rest: list[int], place: int, move: int, gone: int) -> bool:
    """Whether a sentence at this place stands at least two sentences from where it was."""
    here = sum(k < move for k in rest)
    return abs(place - here) >= 2


def _reworded(sentence: str, rng: random.Random, gold: list[Key]) -> str:
    """Plant at most one edit of each kind in a sentence, never next to each other."""
    tokens = sentence.split(" ")
    used: set[int] = set()
    kinds = rng.sample(["replace", "delete", "insert", "move"], rng.randint(0, 2))
    edits: list[tuple[int, int, list[str]]] = []  # first, last, words
    for kind in kinds:
        places = [p for p in _places(tokens, kind) if not used & set(range(p[0] - 2, p[1] + 2))]
        if not places:
            continue
        first, last, new = rng.choice(places)
        used.update(range(first - 1, last + 1))
        old = " ".join(tokens[first:last])
        if kind == "move":
            phrase = [old[0].lower() + old[1:].rstrip(",")]
            edits.append((first, last, []))
            edits.append((len(tokens), len(tokens), phrase))
            used.add(len(tokens) - 1)
            gold.append(("move", words(old), words(old)))
        elif kind == "insert":
            gold.append(("insert", (), words(" ".join(new))))
            edits.append((first, first, new))
        else:
            gold.append(("substitute" if new else "delete", words(old), words(" ".join(new))))
            edits.append((first, last, new))
    for first, last, new in sorted(edits, reverse=True):
        if first == len(tokens):
            tokens[-1] = tokens[-1].rstrip(".")
            tokens += [f"{new[0]}."]
        else:
            tokens[first:last] = new
    text = " ".join(tokens)
    return text[0].upper() + text[1:]


def _places(tokens: list[str], kind: str) -> list[tuple[int, int, list[str]]]:
    found = []
    plain = [token.strip(",.").lower() for token in tokens]
    if kind == "move":
        ends = [k for k, token in enumerate(tokens[:5]) if token.endswith(",")]
        if ends and plain[0] in ("in", "on", "at", "during", "after", "for"):
            return [(0, ends[0] + 1, [])]
        return []
    for k in range(1, len(tokens) - 1):
        if tokens[k] != plain[k]:
            continue
        if (
            kind == "delete"
            and plain[k] in DELETED
            and plain[k - 1] not in ("a", "an", "is", "was", "too", "much", "are", "felt")
        ):
            found.append((k, k + 1, []))
        if kind == "insert" and plain[k] in INSERTED and plain[k - 1] in ("the", "its", "her", "his", "two"):
            found.append((k, k + 1, [INSERTED[plain[k]]]))
        for size in (1, 2):
            if (
                kind == "replace"
                and (new := REPLACED.get(" ".join(plain[k : k + size])))
                and k + size < len(tokens)
            ):
                found.append((k, k + size, new.split()))
    return found


def found_in(diff: Diff) -> list[Key]:
    out = []
    for piece, edit in diff.changes:
        if piece.paired.kind == "moved" and edit.kind != "move":
            continue
        key = edit.kind, words(edit.before), words(edit.after)
        if any(key[1:]):
            out.append(key)
    return out


def measure(model: str, seed: int, show: bool, most: int = len(DOCUMENTS)) -> None:
    rng = random.Random(seed)
    right: Counter[str] = Counter()
    planted_, told = Counter[str](), Counter[str]()
    for number, text in enumerate(DOCUMENTS[:most], start=1):
        new, gold = planted(text, rng)
        assert not jt.diff(text, text, model).changes
        ours = Counter(found_in(jt.diff(text, new, model)))
        for key in (Counter(gold) & ours).elements():
            right[key[0]] += 1
        planted_.update(key[0] for key in gold)
        told.update(key[0] for key in ours.elements())
        if show:
            for name, some in (("missed", Counter(gold) - ours), ("spurious", ours - Counter(gold))):
                for kind, old, after in some.elements():
                    print(f"{number:2} {name:8} {kind:10} {' '.join(old)} -> {' '.join(after)}")
    print("| edits | planted | found | right | P | R | F1 |\n|---|---:|---:|---:|---:|---:|---:|")
    for kind in [*sorted(planted_), "all"]:
        p, t, r = (sum(c.values()) if kind == "all" else c[kind] for c in (planted_, told, right))
        print(
            f"| {kind} | {p} | {t} | {r} "
            f"| {100 * r / max(1, t):.1f} | {100 * r / p:.1f} | {200 * r / (p + t):.1f} |"
        )


def timed(model: str, size: int, seed: int) -> None:
    rng = random.Random(seed)
    old, new = [], []
    while sum(map(len, map(str.split, old))) < size:
        text = rng.choice(DOCUMENTS).replace("two", f"{rng.randrange(3, 99)}")
        old.append(text)
        new.append(planted(text, rng)[0])
    loaded = jt.load(model)
    loaded.align([("a warm start", "a warm start")])
    jt.diff(DOCUMENTS[0], planted(DOCUMENTS[0], rng)[0], loaded)
    begun = time.perf_counter()
    found = jt.diff("\n\n".join(old), "\n\n".join(new), loaded)
    seconds = time.perf_counter() - begun
    again = jt.diff("\n\n".join(old), "\n\n".join(new), loaded)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sizes = f"{len(found.source_sentences)} and {len(found.target_sentences)}"
    print(f"{size} words, {sizes} sentences: {seconds:.1f} s, "
          f"{megabytes:.0f} MB at most, {len(found.changes)} changes, "
          f"{'the same' if again.to_dict() == found.to_dict() else 'ANOTHER'} result again")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="standard")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was missed and what is spurious")
    parser.add_argument("--time", type=int, metavar="WORDS", help="measure time and memory instead")
    options = parser.parse_args()
    work = (lambda: timed(options.model, options.time, options.seed)) if options.time else (
        lambda: measure(options.model, options.seed, options.show))  # fmt: skip
    return outcome(work)


if __name__ == "__main__":
    sys.exit(main())
