"""report.html without a browser: its policy, its structure, its links, its size, and hostile names as text."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from foldproof.reports.changes import Change, Comparison
from foldproof.reports.events import CampaignRan
from foldproof.reports.limits import limits
from foldproof.reports.render.grid import LONGEST, Budget, Column, Row, cost, grid, shown, tone
from foldproof.reports.render.html import html
from foldproof.reports.render.sections import worst
from foldproof.reports.view import Report
from pages import POLICIES, THEOREMS, big, zoo
from samples import HOSTILE, sample

VOID = {"br", "input", "link", "meta"}
TAGS = {
    "a", "b", "body", "br", "button", "caption", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure",
    "footer", "h1", "h2", "h3", "head", "header", "html", "i", "input", "li", "link", "main", "mark", "meta", "nav",
    "output", "p", "script", "section", "small", "span", "style", "summary", "table", "tbody", "td", "th", "thead",
    "title", "tr", "ul", "svg", "g", "path", "rect", "text", "use", "defs", "clippath",
}  # fmt: skip
CLOSED_BY = {"td": {"td", "th"}, "th": {"td", "th"}, "tr": {"td", "th", "tr"}}
"""Elements whose end tag is left out, by the start tag that ends them."""
TARGETS = {"href", "src", "action", "xlink:href", "srcset", "data", "poster", "background"}


@dataclass
class Page(HTMLParser):
    """Every element of a page with its attributes and its own text."""

    text: str
    nodes: list[tuple[str, dict[str, str], list[str]]] = field(default_factory=list)
    open: list[tuple[str, list[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.open and self.open[-1][0] in CLOSED_BY.get(tag, ()):
            self.open.pop()
        self.nodes.append((tag, {name: value or "" for name, value in attrs}, []))
        if tag not in VOID:
            self.open.append((tag, self.nodes[-1][2]))

    def handle_endtag(self, tag: str) -> None:
        while self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1][1].append(data)

    def of(self, tag: str, **attributes: str) -> list[tuple[dict[str, str], str]]:
        """The elements of a tag whose attributes have these values (`class_` is class), each with its own text."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            (given, "".join(said).strip())
            for name, given, said in self.nodes
            if name == tag and all(given.get(key) == value for key, value in wanted.items())
        ]


def harmless(page: Page) -> bool:
    """Whether the page has elements and attributes of ours alone, and nothing that leads outside it or runs."""
    for tag, attributes, _ in page.nodes:
        leads = [
            value for name, value in attributes.items() if name in TARGETS and not value.startswith(("#", "data:,"))
        ]
        runs = [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc", "formaction"}]
        if tag not in TAGS or leads or runs:
            return False
    ((_, script),) = page.of("script")
    ((_, style),) = page.of("style")
    return not re.search(r"https?:|@import|url\(|fetch|eval|innerHTML", script + style)


def parsed(report: Report) -> Page:
    return Page(html(report))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return sample(tmp_path_factory.mktemp("plain") / "evidence")


@pytest.fixture(scope="module")
def plain_page(plain: Report) -> Page:
    return parsed(plain)


@pytest.fixture(scope="module")
def zoo_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return parsed(zoo(tmp_path_factory.mktemp("zoo") / "evidence"))


def test_two_calls_give_equal_text(plain: Report, plain_page: Page) -> None:
    assert html(plain) == plain_page.text


def test_the_policy_lets_the_browser_run_the_one_script_and_wear_the_one_style(plain_page: Page) -> None:
    ((meta, _),) = plain_page.of("meta", http_equiv="Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in meta["content"].split(";"))
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        ((attributes, texts),) = [(given, said) for name, given, said in plain_page.nodes if name == tag]
        text = "".join(texts)
        assert not attributes
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert (rules["default-src"], rules["base-uri"], rules["form-action"]) == ("'none'", "'none'", "'none'")


def test_nothing_in_the_page_leads_outside_it(zoo_page: Page) -> None:
    assert harmless(zoo_page)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:12]))
def test_hostile_names_are_text(tmp_path: Path, name: str) -> None:
    page = parsed(without_plots(sample(tmp_path / "evidence", name)))
    assert harmless(page)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\r]", page.text)
    assert shown(name) in [said for _, said in page.of("th", scope="row")]
    assert max(len(said) for tag, _, texts in page.nodes if tag not in {"script", "style"} for said in texts) < 5_000


def without_plots(report: Report) -> Report:
    """The report with the same names and no curves, which take a quarter of a second each."""
    facts = [
        replace(f, event=msgspec.structs.replace(f.event, curve=())) if isinstance(f.event, CampaignRan) else f
        for f in report.found.facts
    ]
    return replace(report, found=replace(report.found, facts=tuple(facts)))


def test_ids_are_unique_and_every_link_leads_somewhere(zoo_page: Page) -> None:
    ids = Counter(attributes["id"] for _, attributes, _ in zoo_page.nodes if "id" in attributes)
    assert ids.most_common(1)[0][1] == 1
    wanted = [attributes["href"] for _, attributes, _ in zoo_page.nodes if attributes.get("href", "").startswith("#")]
    assert len(wanted) > len(POLICIES) * len(THEOREMS) / 2
    assert {href[1:] for href in wanted} <= ids.keys()
    for name in ("aria-labelledby", "clip-path"):
        for _, attributes, _ in zoo_page.nodes:
            if name in attributes:
                assert attributes[name].removeprefix("url(#").removesuffix(")") in ids


def test_tables_and_controls_can_be_used_without_eyes_or_a_mouse(zoo_page: Page) -> None:
    assert len(zoo_page.of("table")) == len(zoo_page.of("caption"))
    assert all(attributes.get("scope") in {"col", "row"} for attributes, _ in zoo_page.of("th"))
    assert all(said.strip() for _, said in zoo_page.of("th", scope="col"))
    assert all(attributes.get("type") == "button" for attributes, _ in zoo_page.of("button"))
    assert all(attributes.get("aria-label") or said.strip() for attributes, said in zoo_page.of("button"))
    assert all(attributes.get("aria-label") for attributes, _ in zoo_page.of("input"))
    boxes = [attributes for attributes, _ in zoo_page.of("div") if "box" in attributes.get("class", "").split()]
    assert len(boxes) == len(zoo_page.of("table"))
    assert all((box["role"], box["tabindex"]) == ("region", "0") and box["aria-label"] for box in boxes)
    assert all(a.get("aria-label") or a.get("aria-hidden") for a, _ in zoo_page.of("svg"))
    assert zoo_page.of("a")[0][0] == {"class": "skip", "href": "#obligations"}


def test_the_verdict_comes_first(plain: Report, plain_page: Page) -> None:
    tags = [tag for tag, _, _ in plain_page.nodes]
    assert tags.index("h1") < tags.index("table")
    assert plain_page.of("h1")[0][1] == plain.headline
    assert plain_page.of("p", class_="stamp")[0][1] == "fails"
    counted = dict(zip([s for _, s in plain_page.of("dt")][:3], [s for _, s in plain_page.of("dd")][:3], strict=True))
    rows = Counter(row.verdict for row in plain.rows)
    assert counted == {word: str(rows[word]) for word in ("holds", "fails", "owed")}
    order = [said for attributes, said in plain_page.of("td") if said in {"holds", "fails", "owed"}][: len(plain.rows)]
    assert order == sorted(order, key=["fails", "owed", "holds"].index)


def test_a_cell_of_the_matrix_leads_to_its_counterexample_or_its_row(zoo_page: Page) -> None:
    cells = [(a, said) for a, said in zoo_page.of("a") if a.get("class", "").startswith("cell")]
    words = Counter(said for _, said in cells)
    assert words["stale"] == len(THEOREMS)
    assert words["refuted"] > 10 < words["proved"]
    for attributes, said in cells:
        pinned = "exact-pinned" in attributes["title"]
        assert (said == "stale") == pinned
        assert attributes["href"].startswith("#case-" if said == "refuted" else ("#thm-", "#case-"))
        promised = "promised" in attributes["class"].split()
        assert promised != attributes["title"].endswith(", not promised")
        assert said != "refuted" or attributes["class"].split()[1] == ("bad" if promised else "warn")


def test_the_deciding_argument_is_marked_by_a_word_too(zoo_page: Page) -> None:
    deciding = [said.strip() for attributes, said in zoo_page.of("th", class_="decides")]
    assert {"R", "S"} <= set(deciding)
    assert sum(said == "decides" for _, said in zoo_page.of("small")) == len(deciding)
    assert len(zoo_page.of("td", class_="decides")) >= 2 * len(deciding)


def test_the_heat_map_says_in_text_what_its_colours_say(plain_page: Page) -> None:
    for step, said in ((5, "3/3"), (3, "2/3"), (2, "1/2"), (0, "0/2")):
        assert said in [text for _, text in plain_page.of("td", class_=f"h{step}")]
    assert "11 of 15 cells visited; half of them after 3,600 cases, the last new one after 12,100." in plain_page.text


def test_what_changed_since_the_last_release_is_shown(plain: Report) -> None:
    changes = (Change("refuted", "theorem T06", "proved", "refuted"), Change("faster", "campaign", "1 s", "0.5 s"))
    page = parsed(
        replace(without_plots(plain), compared=Comparison("two-pass", "three-pass", changes, 568, 3, ("speed of <b>",)))
    )
    assert "Both decided 568 launches; 3 of them select another variant" in page.text
    assert "theorem T06" in [said for _, said in page.of("th", scope="row")]
    assert "speed of &lt;b&gt;" in page.text
    assert 'id="compared"' not in html(without_plots(plain))


def test_limits_say_what_did_not_run(plain: Report) -> None:
    assert not [line for line in limits(plain) if line.startswith("Not run")]
    nothing = replace(plain, found=replace(plain.found, facts=(), runs=()))
    assert [line for line in limits(nothing) if line.startswith("Not run")] == [
        "Not run: no theorem was judged.",
        "Not run: no campaign ran.",
        "Not run: no byte verdict comes from a device.",
    ]
    assert "no theorem was judged" in html(nothing)


def test_the_worst_word_speaks_for_a_row() -> None:
    assert worst(["equal", "differs", "owed"]) == "differs"
    assert worst(["equal", "owed"]) == "owed"
    assert worst(["equal", "equal"]) == "equal"
    assert tone("stale: made on another capture") == tone("no reference") == "warn"


def test_a_table_shows_what_needs_a_reader_and_counts_the_rest() -> None:
    rows = [Row((f"r{n}", n), ("equal" if n else "differs",)) for n in reversed(range(1000))]
    size = cost(rows[0], ["text", "number"])
    made = grid("bytes", "Bytes", [Column("name"), Column("n", "number")], rows, Budget(10 * size))
    assert made.rows[0].cells == ("r0", 0)
    assert 10 <= len(made.rows) <= 12
    assert made.left_out == {"equal": 1000 - len(made.rows)}
    assert made.total == 1000


def test_cells_are_one_line_and_cut() -> None:
    assert shown(1_000_000) == "1,000,000"
    assert (shown(0.002), shown(16_260.0), shown("")) == ("0.002", "16,260", "")
    assert shown("a\nb\u202e") == "a\\nb\\u202e"
    assert len(shown("K" * 10_000)) == LONGEST
    assert len(shown("\n" * 10_000)) == 2 * (LONGEST - 3) + 3


def test_colours_can_be_read_in_light_and_dark() -> None:
    style = (resources.files("foldproof.reports") / "templates" / "report.css").read_text("utf-8")
    found = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", style)
    colours = {name: (light, dark) for name, light, dark in found}
    for theme in (0, 1):
        for front in ("ink", "soft", "accent", "good", "bad", "warn"):
            grounds = ["paper", "panel", "sunk", *([f"{front}-sunk"] if f"{front}-sunk" in colours else [])]
            for ground in grounds:
                ratio = contrast(colours[front][theme], colours[ground][theme])
                assert ratio >= 4.5, (theme, front, ground, ratio)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2: from 1 to 21."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((light(one), light(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


MEASURE = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pages import big
report = big(Path(tempfile.mkdtemp(dir=sys.argv[2])), sys.argv[3])
from time import process_time
began = process_time()
from foldproof.reports.render.html import html
size = len(html(report).encode())
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(size, process_time() - began, int(peak.split()[1]) // 1024)
"""
"""VmHWM is of this program alone; what getrusage calls the peak is also that of the process that started it."""


@pytest.mark.slow
def test_the_page_of_a_large_release_is_small_and_soon_there(tmp_path: Path) -> None:
    size, seconds, peak = measured(tmp_path, "_rms_norm")
    assert size < 3_000_000
    assert seconds < 4
    assert peak < 300


@pytest.mark.slow
def test_long_names_do_not_make_a_long_page(tmp_path: Path) -> None:
    assert measured(tmp_path, "<&" * 2_000)[0] < 3_000_000


def measured(folder: Path, name: str) -> list[float]:
    """Bytes of the page, CPU seconds with the imports, and peak memory of the process in MiB."""
    command = [sys.executable, "-c", MEASURE, str(Path(__file__).parent), str(folder), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=os.environ)
    return [float(word) for word in done.stdout.split()]


@pytest.mark.slow
def test_a_cut_table_keeps_every_row_that_differs(tmp_path: Path) -> None:
    text = html(big(tmp_path / "evidence"))
    section = text[text.index('id="bytes"') : text.index('id="launches"')]
    table = section[section.index("by symbolic replay</caption>") :]
    assert table.count('data-w="differs"') == 7 * 5 * 3
    assert table.count("<mark>7d</mark>") == table.count("<mark>7c</mark>") == 7 * 5 * 3
    said = re.search(r"([\d,]+) of 5,145 rows are here.*?([\d,]+) equal\. <code>tables/bytes.csv</code>", table)
    assert said
    kept, left = (int(number.replace(",", "")) for number in said.groups())
    assert kept + left == 5_145
    assert table.count("<tr data-w=") == kept
    assert "200 more are in" in text or "202 more are in" in text
