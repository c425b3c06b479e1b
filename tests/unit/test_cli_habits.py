"""What users of command lines expect: the nearest name, usage of the command, short options, quiet, completion."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from commands import whole

from jacana_torch.cli import COMMANDS, completion
from jacana_torch.cli.parser import command_parser
from jacana_torch.symmetrize import symmetrizer

PAIR = "red dog\tred dog\n"


@pytest.mark.parametrize(
    ("line", "usage", "says"),
    [
        ("algin", "usage: jacana-torch [-h]", "no command 'algin'; did you mean align?"),
        ("align --confidnce", "usage: jacana-torch align", "no option --confidnce; did you mean --confidence?"),
        ("evaluate --formt=json one", "usage: jacana-torch evaluate", "no option --formt; did you mean --format?"),
        ("evaluate --format jsn a b", "usage: jacana-torch evaluate", "'jsn'; did you mean json?"),
        ("resources instal", "usage: jacana-torch resources", "'instal'; did you mean install?"),
        ("resources install wordent", "", "no resource 'wordent'; did you mean wordnet?"),
        ("align -m standrad", "", "no model 'standrad'; did you mean standard?"),
        ("align --to jsnl", "", "no corpus format 'jsnl'; did you mean jsonl?"),
        ("align --symmetrize grow-daig", "", "no symmetrizer 'grow-daig'; did you mean grow-diag?"),
        ("align --symmetrize zzz", "", "no symmetrizer 'zzz'; there are intersection, union"),
        ("view gold.jsonl --symmetrize union", "", "name one with --model"),
        ("view gold.jsonl --predicted-from talp", "", "name that file after the first"),
        ("resources install --json", "", "without `install`"),
        ("-vv align", "usage: jacana-torch [-h]", "-vv: the name of a command comes first"),
        ("align -v -q", "usage: jacana-torch align", "not allowed with"),
    ],
)
def test_a_mistake_names_what_was_probably_meant(cli, line, usage, says):
    code, out, err = cli(*line.split())
    assert (code, out) == (2, "") and err.startswith(usage) and says in err and "Traceback" not in err


def test_a_value_that_looks_like_an_option_is_no_unknown_option(cli):
    code, _, err = cli("convert", "--", "--confidnce.talp", "b.jsonl")
    assert code == 2 and "no option" not in err and "--confidnce.talp" in err
    assert "the following arguments are required" in cli("convert", "--skip")[2]  # an abbreviation


@pytest.mark.parametrize(
    "line, says",
    [
        ("align --model core -m standard", "-m/--model: it is given twice, as core and as standard"),
        ("evaluate --rounds 10 a b --rounds=20", "--rounds: it is given twice, as 10 and as 20"),
    ],
)
def test_a_second_value_is_refused_unless_it_is_the_same(cli, line, says):
    code, out, err = cli(*line.split())
    assert (code, out) == (2, "") and says in err and "Traceback" not in err
    assert command_parser("align").parse_args(["-m", "core", "--model", "core"]).model == "core"


def test_a_list_may_also_be_given_one_by_one():
    serve, annotate = command_parser("serve"), command_parser("annotate")
    assert serve.parse_args(["-m", "core", "--model", "a", "b"]).model == ["core", "a", "b"]
    assert annotate.parse_args(["x", "--annotator", "ann", "--annotator", "ben"]).annotator == ["ann", "ben"]
    assert annotate.parse_args(["x", "--compare"]).compare == []


def test_short_options_are_the_long_ones(cli, model, tmp_path):
    out = str(tmp_path / "out.talp")
    assert whole(cli("align", "-m", model, "-o", out, stdin=PAIR)) == ""
    assert (tmp_path / "out.talp").read_text() == "0-0 1-1\n"
    assert whole(cli("-V")) == whole(cli("--version"))
    for name in COMMANDS:
        known = command_parser(name)._option_string_actions
        for short, long in (("-m", "--model"), ("-o", "--output"), ("-v", "--verbose"), ("-q", "--quiet")):
            assert known.get(short) is known.get(long), (name, short)


@pytest.mark.parametrize("line", ["-q convert {0} {1}", "convert --quiet {0} {1}", "convert {0} {1}"])
def test_quiet_leaves_out_notes_and_keeps_errors(cli, tmp_path, line):
    one, other = tmp_path / "a.talp", tmp_path / "b.jsonl"
    one.write_text("a b\tb\t1-0\n")
    code, _, err = cli(*line.format(one, other).split())
    assert code == 0 and err == ("" if "-q" in line else "jacana-torch: 1 pairs\n")
    one.write_text("a b\tb\t7-0\n")
    assert "a.talp:1" in cli(*line.format(one, other).split())[2]


def test_usual_names_of_symmetrizers(cli, model):
    assert symmetrizer("gdfa") is symmetrizer("grow-diag-final-and")
    assert symmetrizer("GDF") is symmetrizer("grow_diag_final") and symmetrizer("gd") is symmetrizer("grow-diag")
    assert symmetrizer("intersect") is symmetrizer("inter") is symmetrizer("intersection")
    assert whole(cli("align", "-m", model, "--symmetrize", "gdfa", stdin=PAIR)) == "0-0 1-1\n"
    out = whole(cli("train", "--cfg", "job", "symmetrize=gdfa"))
    assert "_target_: jacana_torch.symmetrize.grow_diag_final_and" in out


def test_lists_as_json(cli):
    rows = json.loads(whole(cli("resources", "--json")))
    assert {"name", "path", "size_mb", "licence", "how"} <= rows[0].keys()
    assert [row["name"] for row in rows][:2] == ["wordnet", "tagger"]
    rows = json.loads(whole(cli("models", "--json")))
    assert {"core", "standard", "neural", "ted"} <= {row["name"] for row in rows} and "card" not in rows[0]
    (core,) = json.loads(whole(cli("models", "core", "--json")))
    assert core["missing"] == [] and core["pairs"] == 1514 and core["card"]["licence"]


def test_models_shows_cards(cli):
    text = whole(cli("models", "core", "ted"))
    assert "Out of domain: other corpora" in text and "ted: " in text and "has no card" in text
    code, out, err = cli("models", "cor")
    assert (code, out) == (2, "") and "did you mean core?" in err


# Completion. A shell is given a line, and lists what may follow.

LINES = {
    "jacana-torch al": {"align"},
    "jacana-torch align --fr": {"--from"},
    "jacana-torch align --from j": {"jsonl", "jacana", "journal"},
    "jacana-torch align --symmetrize grow-diag-final-": {"grow-diag-final-and"},
    "jacana-torch evaluate --links s": {"sure"},
    "jacana-torch resources install glo": {"glove-6b", "glove-840b"},
    "jacana-torch view -m stan": {"standard"},
    "jacana-torch convert corp": {"corpus.talp"},
}
BASH = """
source {script}
while read -r line; do
  COMP_WORDS=($line); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _jacana_torch; echo "${{COMPREPLY[*]}}"
done
"""


@pytest.fixture
def script(cli, tmp_path, monkeypatch):
    def written(shell: str) -> str:
        path = tmp_path / shell
        path.write_text(whole(cli("completion", shell)))
        folder = tmp_path / "empty"
        folder.mkdir()
        (folder / "corpus.talp").touch()
        monkeypatch.chdir(folder)
        return str(path)

    return written


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes(script):
    code = BASH.format(script=script("bash"))
    done = subprocess.run(["bash", "-c", code], input="\n".join([*LINES, ""]), capture_output=True, text=True)
    assert [set(line.split()) for line in done.stdout.splitlines()] == list(LINES.values()), done.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
def test_fish_completes(script):
    path = script("fish")
    asked = "; echo ---; ".join(f"complete -C '{line}'" for line in LINES)
    done = subprocess.run(["fish", "-c", f"source {path}; {asked}"], capture_output=True, text=True)
    found = [{line.split("\t")[0] for line in part.split("\n") if line} for part in done.stdout.split("---")]
    assert found == list(LINES.values()), done.stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh")
def test_zsh_reads_its_script(script):
    done = subprocess.run(["zsh", "-f", "-n", script("zsh")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_completion_knows_every_option_and_loads_no_torch():
    described = completion.described()
    assert list(described) == list(COMMANDS)
    strings = {string for option in described["align"][1] for string in option.strings}
    assert {"-m", "--model", "--skip-bad", "--no-header", "--max-cells", "-h", "--quiet"} <= strings
    code = "import sys; from jacana_torch.cli import main; main(['completion', 'bash']); "
    code += "sys.exit(str({'torch', 'scipy', 'hydra'} & sys.modules.keys() or 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "0"
