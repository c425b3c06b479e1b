#!/usr/bin/env bash
# Install a wheel into an empty environment and use it: smoke_wheel.sh WHEEL [PYTHON]
# pip's settings apply (PIP_CONSTRAINT, PIP_EXTRA_INDEX_URL, ...). After the installation, nothing uses a network.
set -euo pipefail

wheel=$(realpath "$1")
python=$(command -v "${2:-python3}")
gold=$(realpath "$(dirname "$0")/../examples/gold.jsonl")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" # nothing of the checkout can be imported from here
unset PYTHONPATH PYTHONHOME
"$python" -m venv env
env/bin/python -m pip install --quiet "$wheel" 2>pip.log || { tail -n 5 pip.log >&2; exit 1; }
export JACANA_HOME=$work/home PIP_NO_INDEX=1 PATH=$work/env/bin:$PATH
unset PIP_EXTRA_INDEX_URL PIP_CONSTRAINT JACANA_CONF JACANA_DATA

fail() { echo "smoke: $1" >&2; exit 1; }
jacana-torch --version
for model in core standard neural; do
    jacana-torch models --json | python -c "import json, sys; sys.exit('$model' not in [m['name'] for m in json.load(sys.stdin)])" ||
        fail "the wheel lacks the model $model"
done
jacana-torch models core | grep -q licence || fail "core has no card"
jacana-torch resources --json | python -c "import json, sys; assert json.load(sys.stdin)"
links=$(printf 'The old bridge was closed .\tThey closed the old bridge .\n' | jacana-torch align --quiet --model core)
for link in 1-3 2-4 5-5; do [[ " $links " == *" $link "* ]] || fail "core aligns: $links"; done
python - <<'END'
import jacana_torch as jt

(alignment,) = jt.load("core").align([("She bought a used car.", "She purchased a used car.")])
assert (0, 0) in alignment.links and (4, 4) in alignment.links, alignment
END
jacana-torch train "data.train=[$gold]" "data.root=$work" annotate=none 'features=[string,position,distortion]' \
    symmetrize=gdfa output=tiny >trained 2>train.log || { tail -n 5 train.log >&2; fail "training"; }
[ "$(cat trained)" = tiny ] || fail "train prints $(cat trained)"
jacana-torch align --model tiny "$gold" --output links.jsonl
jacana-torch evaluate "$gold" links.jsonl --quiet --fail-under 60 >scores || fail "the trained model scores $(cat scores)"
jacana-torch completion bash | bash -n
echo "smoke: $(basename "$wheel") works on $(python --version), torch $(python -c 'import torch; print(torch.__version__)')"
