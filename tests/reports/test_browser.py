"""report.html in a real browser: Debian's Chromium, headless, from `file://`.

Playwright drives it: it hears console, requests and dialogs as they happen, sets theme and width, and brings axe. The
browser itself is the system's; `FOLDPROOF_CHROMIUM` names another. Screenshots go to `FOLDPROOF_ARTEFACTS`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from foldproof.reports.render.html import html
from pages import POLICIES, THEOREMS, big, zoo
from samples import HOSTILE, sample

sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright here: pip install 'foldproof[browser]'")
axe_api = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe here: install foldproof[browser]")
pytestmark = pytest.mark.slow

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}


@dataclass
class Seen:
    """An open page, and what it did that a report must not do."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def quiet(self) -> None:
        """Nothing was said, asked of a network, or shown as a dialog: the file itself was read, and no more."""
        assert not self.console
        assert not self.dialogs
        assert all(url.startswith("file://") for url in self.requests)
        assert len(set(self.requests)) == 1

    def ask(self, script: str) -> Any:
        """What a script of the test says. The page's policy does not bind the test."""
        return self.page.evaluate(script)


Open = Callable[..., Seen]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = os.environ.get("FOLDPROOF_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium, or name one in FOLDPROOF_CHROMIUM")
    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A page by name, written once."""
    folder, made = tmp_path_factory.mktemp("pages"), dict[str, Path]()

    def file(name: str) -> Path:
        if name not in made:
            makers: dict[str, Callable[[Path], Any]] = {"zoo": zoo, "big": big, "plain": sample}
            fn = {f"hostile{n}": text for n, text in enumerate(HOSTILE)}.get(name)
            report = zoo(folder / name, fn, POLICIES[:2]) if fn else makers[name](folder / name)
            made[name] = folder / f"{name}.html"
            made[name].write_text(html(report), encoding="utf-8")
        return made[name]

    return file


@pytest.fixture
def opened(browser: Any, files: Callable[[str], Path]) -> Iterator[Open]:
    """Opens a page in a profile of its own, and hears it."""
    contexts = []

    def open_(name: str = "zoo", width: dict[str, int] = WIDE, **more: Any) -> Seen:
        contexts.append(browser.new_context(viewport=width, **more))
        seen = Seen(contexts[-1].new_page())
        seen.page.on("console", lambda message: seen.console.append(message.text))
        seen.page.on("pageerror", lambda error: seen.console.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        seen.page.goto(files(name).as_uri())
        return seen

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["plain", "zoo", "big"])
def test_a_page_opens_without_a_word_and_without_a_network(opened: Open, name: str) -> None:
    seen = opened(name)
    assert seen.page.title().startswith("fails: three-pass")
    assert seen.ask("document.documentElement.classList.contains('js')")
    seen.quiet()


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_names_stay_text(opened: Open, number: int) -> None:
    seen = opened(f"hostile{number}", PHONE)
    assert seen.ask("document.scripts.length") == 1
    assert (
        seen.ask(
            "[...document.querySelectorAll('*')].flatMap(n => [...n.attributes]).filter(a => /^on/.test(a.name)).length"
        )
        == 0
    )
    assert seen.ask("[...document.links].filter(a => !a.getAttribute('href').startsWith('#')).length") == 0
    assert seen.ask("document.querySelectorAll('img, iframe, object, embed, form, base').length") == 0
    assert seen.ask("document.documentElement.scrollWidth") <= PHONE["width"]
    seen.page.wait_for_timeout(100)
    seen.quiet()


def test_the_policy_stops_a_script_that_got_in(browser: Any, files: Callable[[str], Path], tmp_path: Path) -> None:
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    for name, found in (("planted", "<script>document.title = 'in'</script></body>"), ("clean", "</body>")):
        file = tmp_path / f"{name}.html"
        file.write_text(files("plain").read_text("utf-8").replace("</body>", found), encoding="utf-8")
        page.goto(file.as_uri())
        assert page.title().startswith("fails")
        assert bool(said) == (name == "planted")
        said.clear()
    page.close()


def test_filters_leave_the_rows_that_fit(opened: Open) -> None:
    seen = opened("big")
    grid = seen.page.locator("[data-grid]", has=seen.page.locator("caption", has_text="by symbolic replay"))
    rows = grid.locator("tbody > tr")
    left = grid.locator("output")
    total = rows.count()
    assert left.inner_text() == f"{total:,} rows"
    more = grid.locator("button.rest")
    assert more.inner_text() == f"The first 400 are shown. Show all {total:,}"

    def showing() -> int:
        return grid.locator("tbody > tr:not([hidden])").count()

    assert showing() == 400
    grid.locator('[data-word="differs"]').click()
    assert showing() == 7 * 5 * 3
    assert not more.is_visible()
    assert left.inner_text() == f"105 of {total:,} rows"
    grid.locator("input").fill("FINITE  norm0")
    assert showing() == 5  # pairs of the one function that ends so, in one of three domains
    grid.locator('[data-word="equal"]').click()
    assert 5 < showing() < 100
    grid.locator('[data-word="equal"]').click()
    grid.locator("input").fill("nothing like this")
    assert (showing(), left.inner_text()) == (0, f"0 of {total:,} rows")
    grid.locator("input").fill("")
    grid.locator('[data-word="differs"]').click()
    assert (showing(), left.inner_text()) == (400, f"{total:,} rows")
    more.click()
    assert showing() == total
    assert seen.ask("document.activeElement === [...document.activeElement.closest('tbody').rows][400]")
    seen.quiet()


def test_a_filter_answers_soon_on_five_thousand_rows(opened: Open) -> None:
    seen = opened("big")
    grid = seen.page.locator("[data-grid]", has=seen.page.locator("caption", has_text="Planted faults"))
    assert grid.locator("tbody > tr").count() == 5_000
    grid.locator("input").fill("m499")
    assert grid.locator("output").inner_text() == "11 of 5,000 rows"
    grid.locator('[data-word="survives"]').click()
    assert grid.locator("output").inner_text() == "1 of 5,000 rows"
    took = grid.locator("input").evaluate(
        """(input) => Math.min(...['m1', '', 'm2'].map((text) => {
        const began = performance.now();
        input.value = text;
        input.dispatchEvent(new Event('input'));
        return performance.now() - began; }))"""
    )
    assert took < 500


def test_every_row_of_the_matrix_is_reached_by_keyboard(opened: Open) -> None:
    seen = opened("zoo")
    seen.page.locator('[aria-label="Policy by theorem"]').focus()
    reached = set()
    for _ in range(len(POLICIES) * (len(THEOREMS) + 2)):
        seen.page.keyboard.press("Tab")
        if not seen.ask("document.activeElement.matches('.matrix a')"):
            break
        # The browser scrolls what has the focus into sight in its next frame.
        seen.page.wait_for_function(
            """() => { const box = document.activeElement.getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth; }"""
        )
        assert seen.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        reached.add(seen.ask("document.activeElement.closest('tr').querySelector('th').textContent"))
    assert reached == set(POLICIES)


def test_a_cell_opens_its_counterexample_and_gives_it_the_focus(opened: Open) -> None:
    seen = opened("zoo")
    last = seen.page.locator('.matrix a[href^="#case-"]').last
    target = last.get_attribute("href")[1:]
    assert not seen.ask(f"document.getElementById('{target}').open")
    last.focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function(f"document.activeElement.id === '{target}'")
    assert seen.ask(f"document.getElementById('{target}').open")
    assert seen.page.locator(f"#{target}").bounding_box()["y"] < WIDE["height"]


def test_a_cell_frees_its_row_from_a_filter(opened: Open) -> None:
    seen = opened("zoo")
    link = seen.page.locator('.matrix a[href^="#thm-"]').first
    row = seen.page.locator(f"tr{link.get_attribute('href')}")
    seen.ask("document.querySelectorAll('details.more').forEach(d => { d.open = true; })")
    seen.page.locator("details.more input").first.fill("nothing like this")
    assert not row.is_visible()
    link.click()
    seen.page.wait_for_function(f"document.activeElement.id === '{row.get_attribute('id')}'")
    assert row.is_visible()


def test_the_first_tab_skips_to_the_obligations(opened: Open) -> None:
    seen = opened("plain")
    seen.page.keyboard.press("Tab")
    assert seen.ask("document.activeElement.className") == "skip"
    assert seen.page.locator(".skip").bounding_box()["x"] >= 0
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function("document.activeElement.id === 'obligations'")


def test_everything_that_acts_is_reached_by_tab(opened: Open) -> None:
    seen = opened("plain")
    wanted = seen.ask(
        "[...document.querySelectorAll('a, button, input, summary, [tabindex=\"0\"]')]"
        ".filter(n => n.offsetParent !== null || n.className === 'skip').length"
    )
    reached = []
    for _ in range(wanted + 5):
        seen.page.keyboard.press("Tab")
        mark = "(() => { const n = document.activeElement; n.dataset.met = 1; return n.tagName; })()"
        reached.append(seen.ask(mark))
    assert seen.ask("document.querySelectorAll('[data-met]:not(body)').length") == wanted, reached


@pytest.mark.parametrize("name", ["plain", "zoo", "big"])
def test_a_phone_scrolls_tables_and_never_the_page(opened: Open, name: str) -> None:
    seen = opened(name, PHONE, is_mobile=True, has_touch=True)
    seen.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert seen.ask("document.documentElement.scrollWidth") == PHONE["width"]
    wide = seen.ask("[...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth).length")
    assert wide >= 5
    seen.ask("scrollTo(500, 0)")
    assert seen.ask("scrollX") == 0


def test_the_theme_follows_the_system_until_a_reader_chooses(opened: Open) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (opened("plain", color_scheme=scheme).ask(ground) for scheme in ("light", "dark"))
    assert light != dark
    seen = opened("plain", color_scheme="light")
    button = seen.page.locator("#theme")
    for said, expected in (("light", light), ("dark", dark)):
        button.click()
        assert (button.inner_text(), seen.ask(ground)) == (f"Theme: {said}", expected)
    seen.page.reload()
    assert (button.inner_text(), seen.ask(ground)) == ("Theme: dark", dark)
    button.click()
    assert (button.inner_text(), seen.ask(ground)) == ("Theme: auto", light)


def test_a_command_is_copied_as_it_stands(opened: Open) -> None:
    seen = opened("plain")
    seen.ask("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    row = seen.page.locator("tr[data-w=fails]").first
    row.locator(".copy").first.click()
    assert seen.ask("copied").startswith("foldproof fuzz --selector ./my-selector --against three-pass --seconds 60")
    seen.page.wait_for_function("document.getElementById('said').textContent === 'copied'")
    seen.page.locator("section", has_text="What this report speaks of").locator(".copy").first.click()
    assert seen.ask("copied") == "b" * 64


def test_without_scripts_everything_is_there_to_read(opened: Open) -> None:
    seen = opened("zoo", java_script_enabled=False)
    assert seen.page.locator(".tools:visible, .copy:visible, #theme:visible").count() == 0
    assert seen.page.locator(".matrix a:visible").count() > 90
    seen.page.locator("details.more > summary").first.click()
    assert seen.page.locator("details.more table").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Open, scheme: str) -> None:
    seen = opened("zoo", color_scheme=scheme)
    seen.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    found = axe_api.Axe().run(seen.page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", WIDE, "light"), ("dark", WIDE, "dark"), ("390px", PHONE, "light")]
)
def test_screenshots(opened: Open, tmp_path: Path, name: str, width: dict[str, int], scheme: str) -> None:
    folder = Path(os.environ.get("FOLDPROOF_ARTEFACTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    seen = opened("zoo", width, color_scheme=scheme)
    shot = seen.page.screenshot(full_page=True)
    (folder / f"report-{name}.png").write_bytes(shot)
    assert int.from_bytes(shot[16:20], "big") == width["width"]
    assert int.from_bytes(shot[20:24], "big") > 3_000
    assert len(shot) > 100_000
