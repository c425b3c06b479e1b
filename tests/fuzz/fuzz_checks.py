"""What must hold for every input, and the targets that inputs are made for: ways to read each format and sidecar.

A read gives examples or raises a CorpusError that names file and line. It loses no line, takes less than a second,
and whatever it gives can be written in every format, or is a CorpusError there. What jsonl holds comes back equal;
from other formats, what comes back is written as it was.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from fuzz_mutations import mutated
from fuzz_seeds import ALIGNED, ANNOTATED, SIDECARS, TAGGED, documents, links_alone, quiet, sidecars, written

from jacana_torch import corpora
from jacana_torch.annotate.given import GivenAnnotator
from jacana_torch.annotate.sidecars import READERS
from jacana_torch.corpora._tables import Row
from jacana_torch.errors import CorpusError, JacanaError
from jacana_torch.types import Example, SentencePair

SLOWEST = 1.0  # seconds of this process
LONGEST_MESSAGE = 600
# Errors of a whole file, which no line can be named for.
WHOLE_FILE = re.compile(
    r"the gzip data is damaged|this is UTF-16|cannot tell the format|this could be|\w+ holds links without"
    r"|has \d+ pairs, and gold has|pair \d+ .*has no alignment|the (source|target) of pair \d+ .*has \d+ tokens"
)
WRITTEN = corpora.formats(lambda one: corpora.can_write(one) and not one.binary)
# The formats that hold everything that a corpus says.
LOSSLESS = corpora.formats(
    lambda one: one.read is not None and one.holds_confidence and bool(one.left_out and not one.write_table)
)


class Broken(Exception):
    """A property that does not hold."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


@dataclass
class Tally:
    """What became of the inputs of one target."""

    inputs: int = 0
    read: int = 0  # without any error
    partly: int = 0
    refused: int = 0  # nothing was read
    records: int = 0
    bad: int = 0
    slowest: float = 0.0
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # the number of the input, kind and message

    def count(self, kind: str) -> int:
        return sum(each == kind for _, each, _ in self.failures)


class Check:
    """One input on its way through the properties."""

    def __init__(self, tally: Tally, number: int, seen: set[str], folder: Path) -> None:
        self.tally, self.number, self.seen, self.folder = tally, number, seen, folder

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        start = time.process_time()
        yield
        taken = time.process_time() - start
        self.tally.slowest = max(self.tally.slowest, taken)
        if taken > SLOWEST:
            raise Broken("stall", f"{what} took {taken:.1f} s")

    def report(self, records: int, bad: int) -> None:
        self.tally.read += not bad
        self.tally.partly += bool(bad and records)
        self.tally.refused += bool(bad and not records)
        self.tally.records += records
        self.tally.bad += bad


def texts() -> tuple[str, ...]:
    """The formats that are text; another library reads the others."""
    return corpora.formats(lambda one: not one.binary)


def say(kind: str, holds: bool, message: object) -> None:
    if not holds:
        raise Broken(kind, str(message))


def located(error: JacanaError, file: str) -> None:
    """Check that an error says where it is, in a message for a person."""
    message = str(error)
    say("message", isinstance(error, CorpusError) and error.file == file, f"does not name the file: {error!r}")
    assert isinstance(error, CorpusError)
    named = error.line is not None and error.line >= 1
    say("message", named or WHOLE_FILE.match(error.reason) is not None, f"does not name the line: {message!r}")
    say(
        "message", len(message) < LONGEST_MESSAGE and message.isprintable(), f"not for a person: {message[:900]!r}"
    )


# ---- corpora


def deep(one: Example) -> tuple[object, ...]:
    """Everything in an example, also what alignments do not compare."""
    gold = one.gold
    links = None if gold is None else (gold, dict(gold.confidence), gold.score)
    return one.pair.id, one.pair.source, one.pair.target, links, dict(one.extra) if one.extra else None


def recorded(one: Example) -> Example:
    """Return the example as a JSON record holds it.

    The texts of a table stay under the names of their columns. A column with the name of a key that records of
    alignments read themselves is reported when it is written, and left out.
    """
    if not one.extra:
        return one
    extra = dict(one.extra)
    if isinstance(one.extra, Row):
        extra |= one.extra.texts()
    own = {"id", "source", "target", "sure", "possible", *(("confidence", "score") if one.gold else ("links",))}
    extra = {name: value for name, value in extra.items() if name not in own}
    return replace(one, extra=extra or None)


def items(source: io.BytesIO, format: str | None, **more) -> tuple[list[Example], list[CorpusError], bool]:
    """Read all that can be read: (examples, errors, whether the end was reached)."""
    found: list[Example] = []
    errors: list[CorpusError] = []
    try:
        for example in corpora.read(source, format, on_bad=errors.append, **more):
            found.append(example)
    except CorpusError as error:
        return found, [*errors, error], False
    return found, errors, True


def expected(data: bytes, format: str) -> int | None:
    """Count the records of a document without its reader; None if only the reader can tell."""
    read = corpora.format_named(format).read
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, ValueError):
            return None
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    if isinstance(read, partial) and read.func is corpora.per_line:
        if lines:
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        if read.keywords.get("header") and lines and is_header(lines[0]):
            lines = lines[1:]
        return sum(bool(line.strip(b" \t\r")) for line in lines) if read.keywords.get("skip_blank") else len(lines)
    if format == "msr":
        clean = [line.replace(b"\xef\xbb\xbf", b"").strip(b" \t\r") for line in lines]
        at = [k for k, line in enumerate(clean) if re.match(rb"# *sentence pair( |$)", line, re.IGNORECASE)]
        before = clean[: at[0]] if at else clean
        return len(at) + any(before) if all(b"#" in lines[k][:80] for k in at) else None
    if format == "jacana":
        try:
            array = json.loads(data.decode().removeprefix("\ufeff").strip("\ufeff"))
        except (ValueError, RecursionError):
            return None
        objects = isinstance(array, list) and all(isinstance(each, dict) for each in array)
        return len(array) if objects else None
    return None


def is_header(line: bytes) -> bool:
    """Whether a line has the names of columns that the seeds have, in their order."""
    try:
        text = line.decode().removesuffix("\r")
    except UnicodeDecodeError:
        return False
    columns = text.split("\t") if "\t" in text else re.split(r"(?<![^ ])\|\|\|(?![^ ])", text)
    columns = [column if "\t" in text else column.strip(" ") for column in columns]
    short = [column if len(column) <= 30 and column.count(" ") <= 4 else "" for column in columns]
    names = [re.sub(r"[ \t_\"'-]", "", column).lower() for column in short]
    known = (("source", "target"), ("premise", "hypothesis"), ("sentence1", "sentence2"))
    return any({*pair} <= {*names} and names.index(pair[0]) < names.index(pair[1]) for pair in known)


def check_corpus(check: Check, data: bytes, format: str | None, text: object = None) -> None:
    more = {"text": text()} if callable(text) else {}
    with check.timed("reading"):
        found, errors, ended = items(io.BytesIO(data), format, **more)
    check.report(len(found), len(errors))
    for error in errors:
        located(error, "<stream>")
    if ended and format is not None and text is None and (wanted := expected(data, format)) is not None:
        got = len(found) + len(errors)
        say("lost", got == wanted, f"{wanted} records, of which {len(found)} were read and {len(errors)} reported")
    if check.number % 8 == 0:
        check_strict(data, format, found, errors, text)
    new = []
    for example in found:
        key = repr(deep(example))
        if key not in check.seen:
            check.seen.add(key)
            new.append(example)
    if new:
        check_written(check, new)


def check_strict(
    data: bytes, format: str | None, found: Sequence[Example], errors: Sequence[CorpusError], text: object
) -> None:
    """Without a handler of errors, the same examples come before the first error."""
    before: list[Example] = []
    try:
        for example in corpora.read(io.BytesIO(data), format, text=text() if callable(text) else None):
            before.append(example)
    except CorpusError as error:
        say("lost", str(error) == str(errors[0]), f"{error} and not {errors[0]}")
    else:
        say("lost", not errors, f"no error, and {errors} when they are collected")
    same = list(map(deep, before)) == list(map(deep, found[: len(before)]))
    say("lost", same, "other examples without a handler of errors")


def check_written(check: Check, examples: Sequence[Example]) -> None:
    """Write the examples in every format; read what was written in jsonl and one other."""
    other = WRITTEN[check.number % len(WRITTEN)]
    for format in WRITTEN:
        refused: list[CorpusError] = []
        stream = io.BytesIO()
        with check.timed(f"writing {format}"):
            count = corpora.write(examples, stream, format, on_bad=refused.append)
        for error in refused:
            say("message", len(str(error)) < LONGEST_MESSAGE and str(error).isprintable(), repr(str(error)[:900]))
        say("lost", count + len(refused) == len(examples), f"{count} of {len(examples)} written as {format}")
        if format == other or format in LOSSLESS:
            check_read_back(examples, stream.getvalue(), format, count)


def check_read_back(examples: Sequence[Example], once: bytes, format: str, count: int) -> None:
    if corpora.format_named(format).read is None:
        return  # links without text; examples of it have no sizes
    found, errors, _ = items(io.BytesIO(once), format)
    say("lost", not errors and len(found) == count, f"{count} written as {format}, {len(found)} read: {errors}")
    if format in LOSSLESS:
        say("lost", count == len(examples), f"{format} refused what was read")
        for example, again in zip(examples, found, strict=True):
            before, after = deep(recorded(example)), deep(again)
            say("changed", before == after, f"{before!r} became {after!r}")
    say("changed", written(found, format) == once, f"{format} is written differently when it is read back")


def check_predictions(check: Check, data: bytes) -> None:
    """Read a document as predictions for gold pairs: an alignment for each, or one error."""
    try:
        with check.timed("matching"):
            found = corpora.align_to(ALIGNED, io.BytesIO(data))
    except CorpusError as error:
        check.report(0, 1)
        located(error, "<stream>")
        return
    check.report(len(found), 0)
    wanted = [(len(example.pair.source), len(example.pair.target)) for example in ALIGNED]
    say("lost", [(one.n_source, one.n_target) for one in found] == wanted, f"{found}")


# ---- sidecars


def check_sidecar(check: Check, data: bytes, name: str) -> None:
    path = check.folder / f"fuzz.{name}"
    path.unlink(missing_ok=True)  # some file systems are slow to overwrite
    path.write_bytes(data)
    try:
        with check.timed("reading"):
            records = READERS[name](path)
    except CorpusError as error:
        check.report(0, 1)
        located(error, str(path))
    else:
        check.report(len(records), 0)
        for record in records:
            sizes = {len(values) for values in record.layers.values()} | {len(record.tokens or ())} - {0}
            say("lost", len(sizes) <= 1, f"layers of different lengths: {record}")
        wanted = count_sidecar(data, name)
        say("lost", len(records) == wanted, f"{len(records)} sentences of {wanted}")
    lemmas = ("lower", "given", "none")[check.number % 3]
    annotator = GivenAnnotator(path, name, lemmas, "keep" if check.number % 2 else "error", overwrite=True)
    try:
        with check.timed("annotating"):
            pairs = annotator(ANNOTATED)
    except CorpusError as error:
        say("message", error.file == str(path) and str(error).isprintable(), f"{error!r}")
        say("message", len(str(error)) < LONGEST_MESSAGE, str(error)[:900])
        return
    check_annotated(check, pairs)


def check_annotated(check: Check, pairs: Iterable[SentencePair]) -> None:
    for pair in pairs:
        for sentence in (pair.source, pair.target):
            for values in sentence.layers.values():
                say("lost", len(values) == len(sentence), f"{values} for {sentence}")
        key = repr(pair)
        if key not in check.seen:
            check.seen.add(key)
            check_written(check, [Example(pair)])


def count_sidecar(data: bytes, name: str) -> int:
    """Count the sentences of a document that its reader accepts."""
    lines = [line.strip(b" \t\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    if name == "parse.jsonl":
        return 2 * sum(map(bool, lines))
    blocks = [block for block in b"\n".join(lines).split(b"\n\n") if block.strip(b"\n")]
    if name == "conllu":  # a block of comments alone is none
        blocks = [block for block in blocks if re.search(rb"^1\t", block, re.MULTILINE)]
    return len(blocks)


# ---- targets


@dataclass(frozen=True)
class Target:
    """A way to read documents: its name, seeds, and the check of an input."""

    name: str
    seeds: tuple[bytes, ...]
    check: Callable[[Check, bytes], None]


def targets() -> dict[str, Target]:
    """Every way to read a format or a sidecar."""
    found = []
    text = written(ALIGNED, LOSSLESS[0])
    for name in texts():
        format = corpora.format_named(name)
        if format.read is not None:
            found.append(Target(name, tuple(documents(name)), partial(check_corpus, format=name)))
        if format.read_links is not None or format.read_numbered is not None:
            beside = partial(check_corpus, format=name, text=lambda: io.BytesIO(text))
            found.append(Target(f"{name} beside its text", tuple(links_alone(name)), beside))
    every = tuple(seed for target in found for seed in target.seeds)
    found.append(Target("guessed", every, partial(check_corpus, format=None)))
    found.append(Target("predictions", (*every, *(written(ALIGNED, name) for name in WRITTEN)), check_predictions))
    found.append(Target("text of two files", TAGGED[:1], check_two_files))
    for name in READERS:
        found.append(Target(name, tuple(sidecars(name)), partial(check_sidecar, name=name)))
    from fuzz_tasks import targets as of_tasks  # it checks by what is here

    found += of_tasks()
    return {target.name: target for target in found}


def check_two_files(check: Check, data: bytes) -> None:
    links = b"1 1 1 S\n2 2 1 P\n"

    def text() -> tuple[io.BytesIO, io.BytesIO]:
        return io.BytesIO(data), io.BytesIO(TAGGED[1])

    check_corpus(check, links, "naacl", text)


def input_of(target: Target, number: int) -> bytes:
    """Return an input of a target by its number."""
    return mutated(target.seeds, _every_document(), target.name, number)


@lru_cache(maxsize=1)
def _every_document() -> tuple[bytes, ...]:
    found = [document for name in SIDECARS for document in sidecars(name)]
    return tuple(found + [document for name in texts() for document in documents(name)])


def run(target: Target, numbers: Iterable[int], folder: Path) -> Tally:
    """Check inputs of a target."""
    return run_on(target, ((number, input_of(target, number)) for number in numbers), folder)


def run_on(target: Target, inputs: Iterable[tuple[int, bytes]], folder: Path) -> Tally:
    """Check numbered inputs."""
    tally, seen = Tally(), set[str]()
    with quiet():
        for number, data in inputs:
            tally.inputs += 1
            try:
                target.check(Check(tally, number, seen, folder), data)
            except Broken as broken:
                tally.failures.append((number, broken.kind, str(broken)[:2000]))
            except Exception:  # the very thing that is looked for
                tally.failures.append((number, "traceback", traceback.format_exc()[-2000:]))
    return tally


def table(tallies: dict[str, Tally]) -> str:
    """Format what became of the inputs of each target."""
    counted = ("inputs", "read", "in part", "refused", "records", "bad")
    rows: list[tuple[str, ...]] = [("", *counted, "tracebacks", "stalls", "lost", "other", "slowest")]
    for name, tally in tallies.items():
        kinds = Counter(kind for _, kind, _ in tally.failures)
        other = kinds.total() - kinds["traceback"] - kinds["stall"] - kinds["lost"]
        counts = (tally.inputs, tally.read, tally.partly, tally.refused, tally.records, tally.bad)
        failures = (kinds["traceback"], kinds["stall"], kinds["lost"], other)
        rows.append((name, *(f"{count:,}" for count in (*counts, *failures)), f"{tally.slowest * 1000:.0f} ms"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *figures in rows:
        cells = [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join((name.ljust(widths[0]), *cells)))
    return "\n".join(lines)
