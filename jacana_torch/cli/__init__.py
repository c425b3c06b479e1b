"""The command line: arguments in, one plain function called, an exit code out.

stdout is data, stderr is for people. A user's mistake is one line on stderr and exit code 2, an interrupt 130,
a reader that went away 141. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

from ..errors import JacanaError
from ..version import __version__
from . import evaluate as cli_evaluate
from . import explain as cli_explain
from . import serve as cli_serve
from . import view as cli_view

USER_ERROR, INTERRUPTED, READER_GONE = 2, 130, 141
LONGEST_MESSAGE = 2000

EXAMPLES = {
    "": """
examples:
  printf 'The cat sat down .\\tA cat was sitting .\\n' | jacana-torch align
  jacana-torch evaluate gold.jsonl predicted.txt
  jacana-torch resources
  jacana-torch COMMAND --help""",
    "align": """
examples:
  jacana-torch align pairs.txt > links.txt           source TAB target in, 0-0 1-2 ... out
  jacana-torch align --to jsonl --confidence < pairs.txt
  jacana-torch align gold.jsonl --to talp --symmetrize grow-diag-final-and --output out.talp
  jacana-torch align big.txt.gz --workers 4 --output big.links
  tail -f pairs.txt | jacana-torch align             answers when nothing more comes for a moment

Raw text (source TAB target, or source ||| target) is tokenised first: links count those tokens, which
--to jsonl shows. With --pretokenized the tokens are what spaces separate. Other formats bring their own tokens.
One line goes out for each line that comes in; with --skip-bad a bad line gives an empty alignment.""",
    "evaluate": cli_evaluate.EXAMPLES,
    "convert": """
examples:
  jacana-torch convert RTE2_dev_M.align.txt dev.jsonl
  jacana-torch convert gold.json gold.talp --from jacana --to talp
  jacana-torch convert - - --from msr --to jsonl < RTE2_dev_M.align.txt > dev.jsonl""",
    "count": """
examples:
  jacana-torch count pairs.txt counts.npz
  jacana-torch count pairs.jsonl counts.npz --contexts dependency
  jacana-torch train experiment=msr features.distsim.counts=$PWD/counts.npz""",
    "train": """
Everything after `train` is handed to Hydra: overrides such as features.pos=null, --multirun, --cfg job,
--hydra-help, ... The last line of stdout is the model's directory. Ctrl-C keeps the best weights so far, says how
to go on from them, and exits with 130.

examples:
  jacana-torch train data.train=$PWD/my.jsonl data.dev=$PWD/my-dev.jsonl output=my-model
  jacana-torch train experiment=msr data.root=~/corpora cv=5          cross-validate
  jacana-torch train -m experiment=msr cv=5 +sweep=l2                 one run for each value; see conf/sweep
  jacana-torch train experiment=msr 'features=[string,pos]'           choose feature families
  jacana-torch train experiment=msr resume=runs/msr/...               go on where a run was left
  jacana-torch train --cfg job                                        show the whole configuration and stop""",
    "compare": """
Everything after `compare` is handed to Hydra, as it is for `train`. Systems that learn are trained on the pairs
that they are scored on, as in the papers; cv=K cross-validates them. What was measured is kept: after Ctrl-C it
says how to go on. A system that cannot run is a row that says why.

examples:
  jacana-torch compare data=msr annotate=given 'aligners=[sultan,hmm,crf]'
  jacana-torch compare data=msr cv=5 'train=[same,cv]' 'aligners=[crf]' symmetrizers=all output=table.tex
  jacana-torch compare data=msr 'aligners=[crf,{bare: "crf features=[string,position]"},standard,my/model]'""",
    "serve": cli_serve.EXAMPLES,
    "view": cli_view.EXAMPLES,
    "explain": cli_explain.EXAMPLES,
    "models": """
examples:
  jacana-torch models""",
    "resources": """
examples:
  jacana-torch resources                             what is here, what is missing, what needs it
  jacana-torch resources install wordnet tagger
  jacana-torch resources install                     all but the very large ones""",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        _plain_streams()
        code = _run(argv)
        sys.stdout.flush()  # a reader that went away is noticed here, not at interpreter shutdown
        return code
    except BrokenPipeError:
        # What is still buffered has nowhere to go; without this the interpreter complains while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except JacanaError as error:
        return _failed(f"error: {error}", USER_ERROR)
    except MemoryError as error:
        return _failed(f"error: this takes more memory than there is ({error}): split long texts up", USER_ERROR)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"error: {where}{error.strerror or error}", USER_ERROR)


def _run(argv: list[str]) -> int:
    parser = build_parser()
    if argv[:1] in (["train"], ["compare"]) and not {"-h", "--help"} & set(argv[1:]):
        return {"train": _train, "compare": _compare}[argv[0]](argv[1:])  # argparse would read Hydra's own options
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return USER_ERROR
    level = logging.INFO if arguments.verbose else logging.WARNING
    logging.basicConfig(level=level, format="jacana-torch: %(message)s", stream=sys.stderr)
    return arguments.call(arguments) or 0


def _plain_streams() -> None:
    """UTF-8 and \\n whatever the locale: what goes out is data, and is read by programs."""
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors=errors, newline="\n")


def _failed(message: str, code: int) -> int:
    try:
        sys.stdout.flush()  # what came before the mistake is good
    except (OSError, ValueError):
        pass
    sys.stderr.write(f"jacana-torch: {presentable(message)}\n")
    return code


def presentable(message: str, longest: int = LONGEST_MESSAGE) -> str:
    """A message that a terminal can be shown: control characters escaped, and not endless."""
    clean = "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in message)
    return clean if len(clean) <= longest else f"{clean[: longest - 20]} ... ({len(clean)} characters)"


def build_parser() -> argparse.ArgumentParser:
    """Every command with its options; each knows the function that it calls."""
    parser = _described(
        argparse.ArgumentParser, "", "Align the words of two English sentences.", prog="jacana-torch"
    )
    parser.add_argument("--version", action="version", version=f"jacana-torch {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="say more on stderr")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, call: Callable, about: str) -> argparse.ArgumentParser:
        added = _described(commands.add_parser, name, about, name, help=about[0].lower() + about[1:].rstrip("."))
        added.set_defaults(call=call)
        return added

    _align_options(command("align", _align, "Align sentence pairs."))

    cli_evaluate.add_options(command("evaluate", cli_evaluate.run, "Score predicted links against gold ones."))

    convert = command("convert", _convert, "Rewrite aligned pairs in another format.")
    convert.add_argument("input", metavar="IN", help="a file, or - for stdin")
    convert.add_argument("output", metavar="OUT", help="a file, or - for stdout")
    convert.add_argument("--from", dest="from_", metavar="F", help="format of IN (guessed)")
    convert.add_argument("--to", metavar="F", help="format of OUT (guessed from its name)")
    convert.add_argument("--skip-bad", action="store_true", help="leave bad items out, and say how many")

    count = command("count", _count, "Count word vectors over a corpus, for the distsim features.")
    count.add_argument("input", metavar="IN", help="sentence pairs in any format, or - for stdin")
    count.add_argument("output", metavar="OUT", help="an .npz file")
    count.add_argument("--contexts", choices=("window", "dependency"), default="window", help="(window)")
    count.add_argument("--window", type=_positive, default=2, metavar="N", help="words to either side (2)")
    count.add_argument("--min-count", type=_positive, default=2, metavar="N", help="leave rarer words out (2)")
    count.add_argument("--from", dest="from_", metavar="F", help="format of IN (guessed)")

    train = command("train", lambda arguments: _train(arguments.overrides), "Train a model.")
    train.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="Hydra overrides and options")

    compare = command("compare", lambda arguments: _compare(arguments.overrides), "Compare systems on a corpus.")
    compare.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="Hydra overrides and options")

    cli_serve.add_options(command("serve", cli_serve.run, "Serve a page and an API that align and explain."))

    cli_explain.add_options(command("explain", cli_explain.run, "Tell why two words are linked, or are not."))

    cli_view.add_options(command("view", cli_view.run, "Make a page that shows alignments."))

    command("models", _models, "List the models that come with this.")

    resources = command("resources", _resources, "List linguistic data, or install it.")
    resources.add_argument("action", nargs="?", choices=("install",), help="get what is missing")
    resources.add_argument("names", nargs="*", metavar="NAME", help="which ones (all but the very large)")
    return parser


def _described(make: Callable, name: str, about: str, *positional: str, **more: str) -> argparse.ArgumentParser:
    return make(
        *positional,
        description=about,
        epilog=EXAMPLES[name].strip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )


def _align_options(align: argparse.ArgumentParser) -> None:
    align.add_argument("input", nargs="?", default="-", metavar="FILE", help="a file, or - for stdin (stdin)")
    align.add_argument("--model", metavar="NAME|DIR", help="a model of `jacana-torch models`, or a directory")
    align.add_argument("--from", dest="from_", metavar="F", help="input format (guessed; text on stdin)")
    align.add_argument("--to", metavar="F", help="output format: pharaoh, talp, jsonl, jacana, naacl (pharaoh)")
    align.add_argument("--pretokenized", action="store_true", help="tokens of raw text are what spaces separate")
    align.add_argument(
        "--symmetrize", metavar="S", help="how the two directions are combined (the model's own way)"
    )
    align.add_argument("--confidence", action="store_true", help="write each link's confidence")
    align.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda, cuda:1, mps ... (cpu)")
    align.add_argument(
        "--batch-size",
        type=_positive,
        default=1024,
        metavar="N",
        help="pairs aligned at a time (1024; fewer where they are long)",
    )
    align.add_argument(
        "--workers", type=_positive, metavar="N", help="processes to share the work (as many as processors)"
    )
    align.add_argument("--skip-bad", action="store_true", help="an empty alignment for a bad line, and go on")
    align.add_argument("--output", metavar="FILE", help="written whole or not at all (stdout)")


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def _align(arguments: argparse.Namespace) -> int:
    from . import align as cli_align

    return cli_align.align(
        arguments.input,
        model=arguments.model,
        from_=arguments.from_,
        to=arguments.to,
        pretokenized=arguments.pretokenized,
        symmetrize=arguments.symmetrize,
        confidence=arguments.confidence,
        device=arguments.device,
        batch_size=arguments.batch_size,
        workers=arguments.workers,
        skip_bad=arguments.skip_bad,
        output=arguments.output,
    )


def _convert(arguments: argparse.Namespace) -> int:
    from . import files as cli_files

    return cli_files.convert(
        arguments.input, arguments.output, from_=arguments.from_, to=arguments.to, skip_bad=arguments.skip_bad
    )


def _count(arguments: argparse.Namespace) -> int:
    from . import files as cli_files

    return cli_files.count(
        arguments.input,
        arguments.output,
        contexts=arguments.contexts,
        window=arguments.window,
        min_count=arguments.min_count,
        from_=arguments.from_,
    )


def _train(overrides: Sequence[str]) -> int:
    from . import hydra as run

    run.main(list(overrides))
    return 0


def _compare(overrides: Sequence[str]) -> int:
    from . import hydra as run

    run.compare(list(overrides))
    return 0


def _models(arguments: argparse.Namespace) -> int:
    from . import files as cli_files

    return cli_files.models()


def _resources(arguments: argparse.Namespace) -> int:
    from . import files as cli_files

    return cli_files.resources(arguments.action, arguments.names)
