"""The report as a page of HTML in a real browser, where there is one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from chromium import BROWSER, DRIVER, chromium
from full_run import write_full_run

from ssbench.cli.master import main

#: What stands out of the screen to the right, and texts whose colour is like the ground's.
LOOK = """
const light = text => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(part => part / 255).map(
    part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const ground = light(getComputedStyle(document.body).backgroundColor);
const texts = [...document.querySelectorAll("h1, h2, p, td, th, li, strong, figcaption, button")];
const pale = texts.filter(each => {
  const [a, b] = [light(getComputedStyle(each).color), ground].sort((x, y) => y - x);
  return (a + .05) / (b + .05) < 4;
});
return [document.documentElement.scrollWidth - innerWidth, pale.map(each => each.textContent)];
"""
#: Whether each chart has a canvas of some size.
DRAWN = """
const canvases = root => [...root.querySelectorAll("*")].flatMap(
  node => node.tagName == "CANVAS" ? [node] : node.shadowRoot ? canvases(node.shadowRoot) : []);
return [...document.querySelectorAll("figure")].every(
  figure => canvases(figure).some(canvas => canvas.width * canvas.height > 10000));
"""
#: How many glyphs of the first curve of the page are to be seen.
SHOWN = """
const all = [...Bokeh.documents[0].all_models];
return all.filter(each => each.name == "curve0" && each.visible).length;
"""


@pytest.mark.skipif(find_spec("bokeh") is None, reason="Bokeh is not installed")
@pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
def test_it_opens_offline_and_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    run = write_full_run(tmp_path / "run.stat.gz")
    assert main(["-q", "report-scenario", "-s", str(run), "-f", "/dev/null", "--html", str(file)]) == 0
    with chromium(tmp_path) as browser:
        browser.requests()  # those of its own first page
        for scheme in ("light", "dark"):
            for width in (400, 1600):
                browser.show(file.as_uri(), width, scheme)
                browser.wait_for("return document.documentElement.dataset.charts == 'ready'")
                browser.wait_for(DRAWN)
                assert browser.run(LOOK) == [0, []], (scheme, width)
                assert browser.run(SHOWN) > 0
                browser.run("document.querySelector('.series').click()")
                assert browser.run(SHOWN) == 0
                assert browser.console() == []
        asked = {url for url in browser.requests() if not url.startswith(("data:", "chrome:"))}
        assert asked == {file.as_uri()}
