"""Whether half precision is faster, and whether the neural aligner uses it."""

from __future__ import annotations

import pytest
import torch

from jacana_torch.aligners.neural.neural import Neural, quick_halves
from jacana_torch.features.families.string import String


def test_half_precision_is_chosen_if_it_is_faster(monkeypatch):
    for quick in (True, False):
        monkeypatch.setattr("jacana_torch.aligners.neural.neural.quick_halves", lambda device, quick=quick: quick)
        assert Neural({"string": String()}, mixed=None).halves is quick
        assert Neural({"string": String()}, mixed=False).halves is False
        assert Neural({"string": String()}, mixed=True).halves is True


@pytest.mark.parametrize("unit", ["amx_tile", "avx512_bf16"])
def test_half_precision_depends_on_the_units_of_the_cpu(unit, monkeypatch):
    for name in ("amx_tile", "avx512_bf16"):
        monkeypatch.setattr(torch.cpu, f"_is_{name}_supported", lambda name=name: name == unit, raising=False)
    assert quick_halves("cpu")
    assert not quick_halves("meta")
    monkeypatch.setattr(torch.cpu, f"_is_{unit}_supported", lambda: False, raising=False)
    assert not quick_halves("cpu")
