"""Files of labelled spans and of judged pairs: what must hold of their readers and writers for every input."""

from __future__ import annotations

import json
from functools import partial

from fuzz_checks import LONGEST_MESSAGE, Check, Target, located, say

from jacana_torch.errors import ConfigError, CorpusError
from jacana_torch.projection import Projected
from jacana_torch.tasks import data as judged
from jacana_torch.tasks import spans

_GEESE = "Geese ate the old grass ."
_SPANS = (
    {"text": _GEESE, "spans": [{"start": 0, "end": 5, "label": "BIRD"}], "target": "Old grass ended .", "meta": 1},
    {"id": 7, "text": _GEESE, "label": [[0, 5, "BIRD"], [14, 23, "FOOD"]]},
    {"text": _GEESE, "entities": [{"start_offset": 14, "end_offset": 23, "label": "FOOD"}], "note": "x"},
)
_JUDGED = (
    {"id": "a", "source": _GEESE, "target": "Grass was eaten .", "label": 1},
    {"source": ["Geese", "ate"], "target": ["Nobody", "ate"], "label": 0},
    {"source": _GEESE, "target": "Grass", "score": 2.5},
)
_BIO = "Geese\tB-BIRD\nate\tO\nthe\tO\nold\tB-FOOD\ngrass\tI-FOOD\n.\tO\n\nRain\tNN\tO\nfell\tVBD\tO\n\n"


def targets() -> list[Target]:
    found = []
    for name, records in (("spans.jsonl", _SPANS), ("judged.jsonl", _JUDGED)):
        seeds = "".join(json.dumps(record) + "\n" for record in records).encode(), json.dumps(records[1]).encode()
        check = check_spans if name == "spans.jsonl" else check_judged
        found.append(Target(name, seeds, partial(check, name=name)))
    return [
        *found,
        Target("spans.bio", (_BIO.encode(), _BIO.rstrip().encode()), partial(check_spans, name="x.bio")),
    ]


def check_spans(check: Check, data: bytes, name: str) -> None:
    path = check.folder / name
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    try:
        with check.timed("reading"):
            records = spans.read(str(path))
    except CorpusError as error:
        check.report(0, 1)
        located(error, str(path))
        return
    check.report(len(records), 0)
    wanted = sum(bool(line.strip(b" \t\r")) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    if name.endswith(".jsonl") and not data.startswith(b"\x1f\x8b"):
        say("lost", len(records) == wanted, f"{len(records)} records of {wanted}")
    onto = [(one, one.sentence, [Projected(at[:2], (at[:2],), at[2]) for at in one.spans]) for one in records]
    with check.timed("writing jsonl"):
        lines = list(spans.chunks(onto, "jsonl"))
    for line, record in zip(lines, records, strict=True):
        assert isinstance(line, str)
        found = json.loads(line.encode(), parse_constant=int)
        say("changed", found["text"] == record.sentence.text, line)
        say("lost", len(found[record.layout]) == len(record.spans), line)
    try:
        with check.timed("writing bio"):
            "".join(map(str, spans.chunks(onto, "bio"))).encode()
    except ConfigError as error:
        say("message", len(str(error)) < LONGEST_MESSAGE and str(error).isprintable(), repr(error))


def check_judged(check: Check, data: bytes, name: str) -> None:
    path = check.folder / name
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    try:
        with check.timed("reading"):
            found = judged.read(path)
    except CorpusError as error:
        check.report(0, 1)
        if error.reason != "has no pairs":
            located(error, str(path))
        return
    check.report(len(found), 0)
    if not data.startswith(b"\x1f\x8b"):
        wanted = sum(bool(line.strip(b" \t\r")) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
        say("lost", len(found) == wanted, f"{len(found)} pairs of {wanted}")
    for pair in found.pairs:
        json.dumps([pair.source.tokens, pair.target.tokens, pair.id], ensure_ascii=False).encode()
