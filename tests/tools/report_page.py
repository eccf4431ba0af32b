"""report_page.py HALFULP DEMO_TENSORS [--keep FOLDER]: what a reader's browser makes of the pages of halfulp report.

Drives a headless Chromium. Exits with 77, which ctest calls skipped, where there is none. --keep leaves the pages and
pictures of them in a folder, to be looked at.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import browser
import report_samples as samples

NAMES = [f"blocks.{i}.mlp.weight" for i in range(12)]


def rows(count):
    """Many results of few figures."""
    return {"schema": "halfulp.error/1", "results": [{"tensor": f"t{i}", "recipe": "bf16", "rel_mse": 1e-6 * (i + 1)} for i in range(count)]}


def setUpModule():
    Pages.browser = browser.Browser(browser.find_chromium())


def tearDownModule():
    Pages.browser.close()


class Pages(unittest.TestCase):
    """Shared: one browser, and a page for each sample."""

    pages = {}

    def page(self, name, *results):
        if name not in self.pages:
            files = []
            for i, result in enumerate(results):
                files.append(FOLDER / f"{name}_{i}.json")
                text = result if isinstance(result, str) else json.dumps(result)
                files[-1].write_text(text)
            self.pages[name] = FOLDER / f"{name}.html"
            subprocess.run([HALFULP, "report", *files, "-o", self.pages[name]], check=True)
        return self.pages[name]

    def open(self, name, *results, place="", **media):
        self.browser.emulate(**media)
        self.browser.open(self.page(name, *results).as_uri() + place)

    def run_script(self, script):
        return self.browser.run(script)

    def texts(self, selector):
        return self.run_script(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)")

    def column(self, title, part="tensors"):
        return self.run_script(f"""(() => {{
            const table = document.querySelector('[data-part="{part}"] table');
            const i = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === {json.dumps(title)});
            return [...table.tBodies[0].rows].map((row) => row.cells[i].textContent); }})()""")

    def click_head(self, title, part="tensors"):
        self.run_script(f"""[...document.querySelectorAll('[data-part="{part}"] thead button')]
            .find((button) => button.textContent === {json.dumps(title)}).click()""")

    def draw_all(self):
        self.run_script("[...kWaiting.keys()].forEach(buildNow)")

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith(("file:", "data:"))], [])


def tensors_page(self, **how):
    self.open("tensors", samples.tensors(NAMES, ("nvfp4/te", "mxfp8/te")), **how)


class EveryKind(Pages):
    """No error, no request, nothing that cannot be shown, and the plots of its kind."""

    def check(self, name, plots, *results):
        self.open(name, *results)
        self.draw_all()
        self.assert_quiet()
        self.assertEqual([text for text in self.texts(".note") if "cannot be shown" in text], [])
        found = self.run_script("[...document.querySelectorAll('[data-plot]')].map((e) => e.dataset.plot)")
        self.assertEqual(sorted(set(found)), sorted(plots))
        drawn = self.run_script("[...kFigures].filter(({chart}) => chart !== null).length")
        self.assertEqual(drawn, len([plot for plot in found if plot != "blocks"]))
        self.browser.screenshot(FOLDER / f"{name}.png", whole=True)

    TENSOR = ["blocks", "binades", "codes", "decomposition", "overview", "scales", "shrinkage-parts", "signs"]

    def test_tensors(self):
        self.check("tensors", self.TENSOR, samples.tensors(NAMES, ("nvfp4/te", "mxfp8/te")))

    def test_conversion(self):
        self.check("conversion", ["bias", "bias-absolute", "conversion-binades"], samples.conversion())

    def test_products(self):
        self.check("products", ["concentration"], samples.products())

    def test_capture(self):
        self.check("capture", [*self.TENSOR, "concentration", "steps"], samples.capture())

    def test_error_as_the_program_prints_it(self):
        tensors = FOLDER / "tensors.safetensors"
        subprocess.run([DEMO_TENSORS, tensors], check=True)
        printed = subprocess.run([HALFULP, "error", tensors, "-r", "nvfp4/te,bf16", "--detail", "--json"], check=True, capture_output=True, text=True)
        self.check("error", ["binades", "eighths", "overview", "scales", "signs"], printed.stdout)

    def test_results_without_their_keys(self):
        kinds = ["error", "mma", "replay", "identify", "record", "doctor", "formats", "explain", "cvt"]
        bare = [{"schema": f"halfulp.{verb}/1"} for verb in kinds]
        bare += [{"schema": "halfulp.bias/1", "kind": kind} for kind in ("conversion", "tensors", "products", "capture", "other")]
        bare += [{"schema": "halfulp.error/1", "results": [{}]}, {"schema": "halfulp.error/1", "results": "none", "skipped": 3}]
        self.check("bare", [], *bare)


class Tables(Pages):
    def test_sorts_by_a_click_and_back_by_another(self):
        tensors_page(self)
        self.click_head("shrinkage")
        down = [float(text.split(" ±")[0]) for text in self.column("shrinkage")]
        self.click_head("shrinkage")
        up = [float(text.split(" ±")[0]) for text in self.column("shrinkage")]
        self.assertEqual(down, sorted(down, reverse=True))
        self.assertEqual(up, sorted(up))
        self.assertGreater(len(set(up)), 1)

    def test_words_sort_as_people_count(self):
        tensors_page(self)
        self.click_head("tensor")
        self.assertEqual(self.column("tensor"), [name for name in NAMES for _ in range(2)])

    def test_says_how_it_is_sorted(self):
        tensors_page(self)
        self.click_head("sqnr_db")
        heads = self.run_script("[...document.querySelectorAll('[data-part=tensors] th')].map((e) => e.getAttribute('aria-sort'))")
        self.assertEqual([head for head in heads if head != "none"], ["descending"])

    def test_numbers_that_are_none_come_last(self):
        records = [{"tensor": name, "recipe": "bf16", "rel_mse": value} for name, value in (("a", "nan"), ("b", 1.0), ("c", "inf"), ("d", None))]
        self.open("nan", {"schema": "halfulp.error/1", "results": records})
        self.click_head("rel_mse")
        self.assertEqual(self.column("rel_mse")[:2], ["1", "inf"])

    def filter(self, text):
        self.run_script(f"""(() => {{ const field = document.querySelector('[data-part=tensors] input');
            field.value = {json.dumps(text)}; field.dispatchEvent(new Event('input')); }})()""")

    def test_filters_by_words(self):
        tensors_page(self)
        self.filter("blocks.1 mxfp8")
        self.assertEqual(sorted(self.column("tensor")), sorted(n for n in NAMES if "blocks.1" in n))

    def test_filters_by_a_figure(self):
        tensors_page(self)
        whole = [float(text.split(" ±")[0]) for text in self.column("rel_mse")]
        self.filter("rel_mse>0.009")
        self.assertEqual(len(self.column("rel_mse")), len([x for x in whole if x > 0.009]))
        self.assertLess(len(self.column("rel_mse")), len(whole))

    def test_shows_many_rows_in_slices(self):
        self.open("many", rows(250))
        counts = [len(self.column("tensor"))]
        for _ in range(2):
            self.run_script("document.querySelector('[data-part=tensors] .more').click()")
            counts.append(len(self.column("tensor")))
        self.assertEqual(counts, [100, 200, 250])

    def test_opens_a_block_down_to_its_bits(self):
        tensors_page(self)
        self.run_script("document.querySelector('[data-plot=blocks] button[aria-expanded]').click()")
        block = self.run_script("kData.sections[0].result.results.find((r) => r === document.querySelector('tr.chosen').record).worst_blocks[0]")
        bits = self.texts("[data-plot=blocks] .inner td .bits")
        self.assertEqual(bits, [f"{code >> 3:01b} {code >> 1 & 3:02b} {code & 1:01b}" for code in block["codes"]])


class Choices(Pages):
    def test_a_range_of_the_number_line(self):
        self.open("conversion", samples.conversion())
        self.draw_all()
        figure = "[...kFigures].find((f) => f.element.dataset.plot === 'bias')"
        ends = f"(() => {{ const x = {figure}.chart.data.datasets[0].data.map((p) => p.x); return [Math.min(...x), Math.max(...x)]; }})()"
        self.assertEqual(self.run_script(ends), [-7, 7])
        self.run_script(f"(() => {{ const s = {figure}.element.querySelector('select'); s.selectedIndex = 2; s.dispatchEvent(new Event('change')); }})()")
        self.assertEqual(self.run_script(ends), [1, 2])


class Links(Pages):
    def chosen(self):
        return self.run_script("document.querySelector('.record h4').firstChild.textContent")

    def on_screen(self, selector):
        return self.run_script(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return r.top >= 0 && r.top < innerHeight; }})()")

    def test_open_a_tensor(self):
        tensors_page(self, place="#tensor=" + NAMES[7])
        self.assertEqual(self.chosen(), NAMES[7] + " — nvfp4/te")
        self.assertTrue(self.on_screen(".record"))

    def test_open_a_plot_of_a_tensor_under_a_recipe(self):
        tensors_page(self, place=f"#section=1&tensor={NAMES[3]}&recipe=mxfp8%2Fte&plot=scales")
        self.assertEqual(self.chosen(), NAMES[3] + " — mxfp8/te")
        self.assertTrue(self.on_screen("[data-plot=scales]"))

    def test_open_the_second_section(self):
        self.open("two", samples.products(), samples.conversion(), place="#section=2")
        self.assertTrue(self.on_screen("[data-section='2']"))

    def test_every_heading_has_one_that_leads_back_to_it(self):
        self.open("capture", samples.capture())
        links = self.run_script("[...document.querySelectorAll('section .anchor')].map((a) => a.getAttribute('href'))")
        self.assertEqual(len(links), self.run_script("document.querySelectorAll('section :is(h2, h3, h4)').length"))
        for link in links:
            self.run_script(f"location.hash = {json.dumps(link)}")
            found = self.run_script(f"""new Promise((done) => setTimeout(() => done([...document.querySelectorAll('section .anchor')]
                .some((a) => a.getAttribute('href') === {json.dumps(link)} && a.getBoundingClientRect().top >= 0 && a.getBoundingClientRect().top < innerHeight)), 30))""")
            self.assertTrue(found, link)

    def test_hostile_names_come_back(self):
        self.open("hostile", samples.tensors(samples.HOSTILE))
        for name in samples.HOSTILE[:-1]:
            self.run_script(f"location.hash = '#' + new URLSearchParams({{tensor: {json.dumps(name)}}})")
            self.run_script("new Promise((done) => setTimeout(done, 50))")
            self.assertEqual(self.chosen(), name + " — nvfp4/te")

    def test_a_place_that_is_not_there_does_no_harm(self):
        tensors_page(self, place="#section=99&tensor=none&plot=%22%5D&recipe=__proto__")
        self.assert_quiet()
        self.assertIn("Error and bias of recipes#", self.texts("h2"))

    def test_of_the_address_itself_leads_there_again(self):
        tensors_page(self, place="#tensor=" + NAMES[7] + "&recipe=nvfp4%2Fte&plot=scales&section=1")
        self.run_script("location.hash = document.querySelector('[data-plot=scales] .anchor').getAttribute('href')")
        self.run_script("new Promise((done) => setTimeout(() => { scrollTo(0, 0); done(); }, 50))")
        self.run_script("document.querySelector('[data-plot=scales] .anchor').click()")
        self.assertTrue(self.on_screen("[data-plot=scales]"))

    def test_a_cell_of_the_heat_map_leads_to_its_tensor(self):
        self.open("capture", samples.capture())
        title = self.run_script("(() => { const cell = document.querySelectorAll('.heat td a')[3]; cell.click(); return cell.title; })()")
        self.run_script("new Promise((done) => setTimeout(done, 50))")
        self.assertEqual(self.chosen(), title.replace(", ", " — "))

    def test_a_click_in_the_table_goes_into_the_address(self):
        tensors_page(self)
        self.run_script("[...document.querySelectorAll('[data-part=tensors] button.open')].find((b) => b.textContent === 'blocks.5.mlp.weight').click()")
        place = urllib.parse.parse_qs(urllib.parse.urlparse(self.run_script("location.href")).fragment)
        self.assertEqual(place["tensor"], ["blocks.5.mlp.weight"])


class Hostile(Pages):
    def test_names_are_shown_as_they_are_and_do_nothing(self):
        self.open("hostile", samples.tensors(samples.HOSTILE))
        self.draw_all()
        self.assertEqual(sorted(self.column("tensor")), sorted(name or "(empty name)" for name in samples.HOSTILE))
        self.assertIsNone(self.run_script("window.hacked"))
        self.assertEqual(self.run_script("document.querySelectorAll('img').length"), 0)
        self.assert_quiet()


class Looks(Pages):
    BACK = "getComputedStyle(document.body).backgroundColor"

    def contrast(self, foreground, background):
        def light(color):
            channels = [float(c) for c in color[color.index("(") + 1:-1].removeprefix("srgb ").replace(",", " ").split()[:3]]
            if color.startswith("rgb"):
                channels = [c / 255 for c in channels]
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055)**2.4 for c in channels]
            return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))
        a, b = sorted((light(foreground), light(background)))
        return (b + 0.05) / (a + 0.05)

    def test_dark_where_the_system_is(self):
        tensors_page(self, scheme="dark")
        self.assertEqual(self.run_script(self.BACK), "rgb(20, 24, 29)")
        self.browser.screenshot(FOLDER / "dark.png", whole=True)

    def test_the_switch_outdoes_the_system(self):
        tensors_page(self, scheme="light")
        self.run_script("theme.value = 'dark'; theme.dispatchEvent(new Event('change'))")
        self.assertEqual(self.run_script(self.BACK), "rgb(20, 24, 29)")

    def test_words_stand_out(self):
        """WCAG 2.2, success criterion 1.4.3: a ratio of 4.5."""
        for scheme in ("light", "dark"):
            self.open("capture", samples.capture(), scheme=scheme)
            for selector in (".tile dt", ".source", ".note", "td .se", ".chip.none", ".chip.bad", "td button.open", "thead th"):
                found = self.run_script(f"""(() => {{ let e = document.querySelector({json.dumps(selector)}); const color = getComputedStyle(e).color;
                    while (e && getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;
                    return [color, getComputedStyle(e).backgroundColor]; }})()""")
                self.assertGreaterEqual(self.contrast(*found), 4.5, (scheme, selector, found))
            cells = self.run_script("[...document.querySelectorAll('.heat td')].map((e) => getComputedStyle(e)).map((s) => [s.color, s.backgroundColor])")
            self.assertGreater(len(set(map(tuple, cells))), 5)
            for cell in cells:
                self.assertGreaterEqual(self.contrast(*cell), 4.5, (scheme, cell))

    def test_fits_a_phone(self):
        tensors_page(self, width=390, height=844)
        self.assertEqual(self.run_script("document.documentElement.scrollWidth"), 390)
        self.browser.screenshot(FOLDER / "phone.png", whole=True)

    def test_paper_is_light_and_has_every_row_and_plot(self):
        self.open("paper", rows(150), scheme="dark")
        self.run_script("window.seen = null; addEventListener('beforeprint', () => { seen = {back: " + self.BACK + ", rows: document.querySelectorAll('[data-part=tensors] tbody tr').length,"
                        " waiting: kWaiting.size}; })")
        self.browser.print_pdf(FOLDER / "paper.pdf")
        self.assertEqual(self.run_script("seen"), {"back": "rgb(255, 255, 255)", "rows": 150, "waiting": 0})
        self.assertEqual(self.run_script(self.BACK), "rgb(20, 24, 29)")

    def test_controls_are_not_printed(self):
        tensors_page(self, media="print")
        for selector in (".bar", ".anchor", ".tools"):
            self.assertEqual(self.run_script(f"getComputedStyle(document.querySelector('{selector}')).display"), "none", selector)

    def test_every_control_has_a_name_and_takes_the_focus(self):
        self.open("capture", samples.capture())
        nameless = self.run_script("""[...document.querySelectorAll('button, select, input, a[href], [role=img], [role=region]')].filter((e) =>
            !(e.getAttribute('aria-label') || e.labels?.length || (e.matches('button, a') && e.textContent.trim()))).map((e) => e.outerHTML)""")
        self.assertEqual(nameless, [])
        self.assertEqual(self.run_script("document.querySelectorAll('section [tabindex=\"-1\"]').length"), 0)

    def test_charts_tell_in_words_what_they_show(self):
        tensors_page(self)
        labels = self.run_script("[...document.querySelectorAll('canvas')].map((e) => e.getAttribute('aria-label'))")
        self.assertTrue(any("Most is" in label for label in labels), labels)


class Numbers(Pages):
    def test_as_the_program_prints_them(self):
        tensors_page(self)
        for value, digits, text in ((0.00906959, 4, "0.00907"), (9.74e-6, 2, "9.7e-06"), (20.4241231, 4, "20.42"), (448.0, 4, "448"), (1e5, 4, "1e+05"),
                                    (12346.0, 4, "1.235e+04"), (99999.0, 4, "1e+05"), (0.0001, 4, "0.0001"), (-0.0, 4, "-0"), ("inf", 4, "inf"),
                                    ("-inf", 4, "-inf"), ("nan", 4, "nan"), (123456.0, 6, "123456")):
            literal = "-0" if text == "-0" else json.dumps(value)
            self.assertEqual(self.run_script(f"shownNumber({literal}, {digits})"), text)


class Data(Pages):
    def same(self, shown, given):
        if isinstance(given, dict):
            return isinstance(shown, dict) and shown.keys() == given.keys() and all(self.same(shown[key], given[key]) for key in given)
        if isinstance(given, list):
            return isinstance(shown, list) and len(shown) == len(given) and all(map(self.same, shown, given))
        if isinstance(given, float):
            return abs(shown - given) <= 1e-6 * abs(given)
        return shown == given and isinstance(shown, bool) == isinstance(given, bool)

    def test_what_the_page_has_is_what_the_file_has(self):
        given = [samples.capture(), samples.tensors(samples.HOSTILE), samples.conversion()]
        given[1]["odd"] = [[], {}, [[1.5, "inf"]], [{}, {"": None}], True, "\\", "repeated text", "repeated text", [1, 2, "<"], {"__proto__": 1}]
        self.open("data", *given)
        self.assertTrue(self.same(json.loads(self.run_script("JSON.stringify(kData.sections.map((s) => s.result))")), given))

    def test_numbers_of_fp32_are_whole(self):
        values = [struct.unpack("<f", struct.pack("<I", 0x00000001 + 0x00876543 * i))[0] for i in range(240)]
        self.open("fp32", {"schema": "halfulp.error/1", "odd": values})
        self.assertEqual(self.run_script("kData.sections[0].result.odd.map((x) => fp32Bits(x))"), [0x00000001 + 0x00876543 * i for i in range(240)])


class Size(Pages):
    def test_500_tensors(self):
        """Under 5 MB; the time is told, and only a gross one fails."""
        page = self.page("500", samples.tensors([f"blocks.{i}.attention.query.weight" for i in range(500)]))
        self.assertLess(page.stat().st_size, 5_000_000)
        times = []
        for _ in range(3):
            self.open("500")
            self.run_script("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
            loaded, shown = self.run_script("""[performance.timing.loadEventEnd - performance.timing.navigationStart,
                Math.max(...performance.getEntriesByType('paint').map((e) => e.startTime))]""")
            times.append(max(loaded, shown))
        print(f"500 tensors: {page.stat().st_size / 1e6:.2f} MB, loaded and painted in {sorted(times)[1]:.0f} ms (median of 3)", file=sys.stderr)
        self.assertLess(min(times), 5000)
        self.assertEqual(len(self.column("tensor")), 100)


if __name__ == "__main__":
    if browser.find_chromium() is None:
        print("SKIPPED: no chromium (Debian: chromium)")
        sys.exit(77)
    HALFULP, DEMO_TENSORS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as temporary:
        FOLDER = pathlib.Path(sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else temporary).resolve()
        os.makedirs(FOLDER, exist_ok=True)
        result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(not result.wasSuccessful())
