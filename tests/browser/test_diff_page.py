"""The page of `jacana-torch diff` in Chromium: accessible in any light, and narrow on a phone."""

from __future__ import annotations

import pytest

import jacana_torch as jt

OLD = "The council met on Monday. Boats leave every hour. Nobody objected. It rained, and the road was closed."
NEW = "The council met on Friday. Nobody objected. It rained. The road was closed. Boats left every hour. Why?"


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(tmp_path, visit, violations, scheme, width):
    path = tmp_path / "page.html"
    path.write_text(jt.diff(OLD, NEW, "core").to_html("Old and new"), encoding="utf-8")
    page = visit(path, color_scheme=scheme, viewport={"width": width, "height": 800})
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".same > p:visible").count() == (2 if width > 640 else 1)
    assert page.locator(".moved .sub").all_inner_texts() == ["leave", "left"]
