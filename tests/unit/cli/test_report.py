"""`cyclescope report`: the site of a store, in a real browser where there is one."""

from __future__ import annotations

import json
import re
from itertools import accumulate

import pytest

from cyclescope.model.schema import write_model
from cyclescope.report.site.packing import unpacked
from tests.support.made.models import exchanged
from tests.support.programs.browser import PROGRAM, Browser
from tests.unit.report.pages.test_site import Page

USAGE = 2
FORM = "IMUL (R64, R64)"


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.json"
    write_model(exchanged(1), path)
    return path


@pytest.fixture
def site(cyclescope, store, other, tmp_path):
    path = tmp_path / "site.html"
    done = cyclescope("report", store, "--compare", other, "-o", path)
    assert done.code == 0, done.err
    assert "MB" in done.out
    return path


def test_every_number_has_its_experiments(site, store, cyclescope):
    page = Page(site.read_text())
    rows = unpacked(page.scripts["part-rows"])
    head = json.loads(page.scripts["head"])
    row = rows["form"].index(FORM)
    part = unpacked(page.scripts[f"part-{row // head['size']}"])
    card = part["forms"][row % head["size"]]
    evidence = cyclescope("show", FORM, "--evidence", "--store", store).out
    numbers = [int(number) for number in re.findall(r"--rerun (\d+)", evidence)]
    assert list(accumulate(card["experiments"]["ids"])) == numbers
    lines = unpacked(page.scripts["part-lines"])
    codes = []
    for shape in card["experiments"]["shapes"]:
        parts = [int(n) for n in part["shapes"][shape].split()]
        own = card["experiments"]["own"]
        codes.append("".join((own[-1 - n] if n < 0 else lines[n])[1] for n in parts))
    assert codes == re.findall(r"code (\w+)", evidence)
    assert head["store"] == str(store)


def test_the_page_says_how_it_was_measured(site, store):
    words = " ".join(" ".join(Page(site.read_text()).words).split())
    assert "MadeByHand 6-1-0 unknown" in words
    assert re.search(r"digest of the store \(SHA-256\) [0-9a-f]{64}", words)
    assert "Sessions" in words


def test_the_comparison_leads_to_cards(site):
    text = site.read_text()
    assert 'id="comparison"' in text
    assert 'href="#/comparison"' in text
    assert re.search(r'<td><a href="#/form/[^"]+">', text.partition('id="comparison"')[2])


def test_some_forms_only(cyclescope, store, tmp_path):
    path = tmp_path / "site"
    assert cyclescope("report", store, "--form", "imul", "-o", path).code == 0
    rows = unpacked(Page((path / "index.html").read_text()).scripts["part-rows"])
    assert {name.partition(" ")[0] for name in rows["form"]} == {"IMUL"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nix.sqlite", "-o", "a.html"], "no such file"), (["znver4", "-o", "none/a.html"], "no such folder"),
     (["znver4", "--compare", "neoverse-v2", "-o", "a.html"], "several instruction sets"),
     (["znver4", "-o", "a.txt"], "a.txt is named as a file"), (["znver4", "-o", "a.htm"], "ends in .html"),
     (["znver4", "--form", "nixnix", "-o", "a.html"], "nixnix")],
)  # fmt: skip
def test_errors_are_one_line(cyclescope, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = cyclescope("report", *arguments)
    assert done.code == USAGE
    assert said in done.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["zen-1.2", "made.first", "plain"])
def test_a_folder_may_have_any_name(cyclescope, other, tmp_path, name):
    folder = tmp_path / name
    if name == "made.first":
        folder.mkdir()
    done = cyclescope("report", other, "-o", folder)
    assert done.code == 0, done.err
    assert (folder / "index.html").is_file()


# --- in a browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    if PROGRAM is None:
        pytest.skip("no Chromium")
    found = Browser()
    yield found
    found.close()


def count(browser):
    return int(browser.run("document.getElementById('count').textContent.split(' ')[0].replace(',', '')"))


def shown(browser, column):
    cells = f"#canvas .row > :nth-child({column})"
    return browser.run(f"[...document.querySelectorAll('{cells}')].map(c => c.textContent)")


def choose(browser, name, value):
    browser.run(f"document.getElementById('{name}').value = '{value}'")
    browser.run(f"document.getElementById('{name}').dispatchEvent(new Event('input'))")


def test_one_can_search_sort_and_filter(browser, site):
    browser.open(site)
    every = count(browser)
    browser.press("/")
    browser.wait("document.activeElement.id === 'search'")
    browser.type("imul r64")
    assert 0 < count(browser) < every
    assert all("IMUL" in name and "R64" in name for name in shown(browser, 1))
    choose(browser, "search", "")
    choose(browser, "extension", "SSE2")
    assert 0 < count(browser) < every
    assert set(shown(browser, 2)) == {"SSE2"}
    choose(browser, "extension", "")
    assert count(browser) == every
    buttons = "[...document.querySelectorAll('#heading button')]"
    browser.run(f"{buttons}.find(b => b.textContent.startsWith('throughput')).click()")
    heads = "[...document.querySelectorAll('#heading > *')]"
    column = browser.run(f"{heads}.findIndex(c => c.ariaSort === 'ascending') + 1")
    values = [float(text) for text in shown(browser, column) if text]
    assert len(values) > 2
    assert values == sorted(values)
    assert browser.problems == []


def test_a_card_is_opened_and_its_command_copied(browser, site, store):
    browser.open(site)
    browser.run("document.getElementById('viewport').focus()")
    browser.press("ArrowDown")
    browser.press("Enter")
    browser.wait("document.querySelector('#card h2')")
    browser.press("Escape")
    browser.wait("!document.getElementById('forms').hidden")
    browser.run(f"location.hash = '#/form/' + encodeURIComponent('{FORM}')")
    browser.wait(f"document.querySelector('#card h2')?.textContent === '{FORM}'")
    browser.run("document.querySelector('.matrix button').click()")
    browser.wait("document.querySelector('details[open] details[open] pre')")
    assert "imul" in browser.run("document.querySelector('details[open] details[open] pre').textContent")
    browser.run("window.copied = null")
    browser.run("document.addEventListener('copy', () => { copied = document.activeElement.value })")
    browser.run("navigator.clipboard.writeText = () => Promise.reject(new Error('not granted'))")
    browser.run("document.querySelector('details[open] details[open] .command button').click()")
    browser.wait("copied")
    assert re.fullmatch(
        rf"cyclescope bench --rerun \d+ --store {re.escape(str(store))}", browser.run("copied")
    )
    assert browser.problems == []


def test_a_folder_works_from_a_file_too(browser, cyclescope, store, tmp_path):
    cyclescope("report", store, "-o", tmp_path / "folder")
    browser.requests.clear()
    browser.open(tmp_path / "folder/index.html", "#/form/IMUL%20(R64%2C%20R64)")
    browser.wait("document.querySelector('.matrix button')")
    assert browser.problems == []
    assert {url.partition(":")[0] for url in browser.requests} == {"file"}


def test_a_phone_scrolls_no_page_sideways(browser, site):
    browser.resize(360, 740, True)
    browser.open(site)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.run(f"location.hash = '#/form/' + encodeURIComponent('{FORM}')")
    browser.wait("document.querySelector('.matrix')")
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.resize(1280, 900)


def test_markup_in_names_stays_text(browser, cyclescope, tmp_path, other):
    text = other.read_text().replace("a machine znver9", "</script><b id='in'>znver9")
    (tmp_path / "nasty.json").write_text(text)
    assert cyclescope("report", tmp_path / "nasty.json", "-o", tmp_path / "nasty.html").code == 0
    browser.open(tmp_path / "nasty.html")
    assert browser.run("document.getElementById('in')") is None
    assert "<b id=" in browser.run("document.querySelector('h1').textContent")
    assert browser.problems == []


def test_findings_of_a_store(cyclescope, store):
    done = cyclescope("show", "--findings", "--store", store)
    assert done.code == 0, done.err
    assert "Operand pairs that differ in latency" in done.out
    data = json.loads(cyclescope("show", "imul", "--findings", "--json", "--store", store).out)
    assert {group["key"] for group in data["groups"]} >= {"pairs", "idioms", "outputs", "hidden", "isolation"}
    assert all(one["form"].startswith("IMUL") for group in data["groups"] for one in group["findings"])


def test_a_comparison_shows_its_tables(browser, cyclescope, other, tmp_path):
    cyclescope("compare", other, "znver4", "--html", tmp_path / "page.html")
    browser.call("Page.navigate", url=(tmp_path / "page.html").as_uri())
    browser.wait("document.querySelectorAll('table').length > 2")
    heights = browser.run("[...document.querySelectorAll('.scroll')].map((one) => one.clientHeight)")
    assert min(heights) > 30
    assert browser.problems == []
