"""What a notebook shows of an alignment, with scripts and without."""

from __future__ import annotations

import pytest
from variants import variants

import jacana_torch as jt

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

# As JupyterLab does: scripts within what is shown are made anew, so that they run.
SHOW = """shown => {
    document.body.innerHTML = shown + shown;
    for (const old of document.querySelectorAll("script")) {
        const script = document.createElement("script");
        script.textContent = old.textContent;
        old.replaceWith(script);
    }
}"""


@pytest.mark.parametrize("scripts", variants([True, False]))
def test_links_open_their_reasons(visit, violations, tmp_path, scripts):
    (alignment,) = jt.load("core").align([("The cats sleep.", "The cats are sleeping.")])
    path = tmp_path / "notebook.html"
    main = "" if scripts else alignment._repr_html_()
    path.write_text(f"<!doctype html><html lang=en><title>Notebook</title><main>{main}</main>", encoding="utf-8")
    page = visit(path, java_script_enabled=scripts)
    if scripts:
        page.evaluate(SHOW, alignment._repr_html_())
        shown = page.locator("[data-jacana]").nth(1)  # shown twice, each with its own clicks
        curve = shown.locator("path[stroke-opacity='0']").nth(1)
        assert shown.locator("path[stroke-opacity='0']").count() == len(alignment.links)
        curve.dispatch_event("click")
        assert shown.locator("details[open] summary bdi").all_inner_texts() == ["cats – cats"]
        shown.locator("path[stroke-opacity='0']").nth(0).dispatch_event("click")
        page.wait_for_timeout(50)
        assert shown.locator("details[open] summary bdi").all_inner_texts() == ["The – The"]
        assert page.locator("[data-jacana]").nth(0).locator("details[open]").count() == 0
        assert [line for line in violations(page) if not line.startswith(("region", "landmark", "page-has"))] == []
    else:
        page.locator("summary").nth(1).click()
        assert alignment.explain(1, 1).reason in page.locator("details").nth(1).inner_text()
