#!/usr/bin/env python3
"""The memory map in a real browser: memory_map_test.py PLANNER SOURCE_DIR [--screenshots FOLDER]

Loads the page in a headless Chromium, points at buffers, moves the slider and zooms, and compares what it shows with
the planner's JSON. Skips itself, with status 77, where there is no Chromium or no selenium.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

if len(sys.argv) < 3:
    sys.exit("usage: memory_map_test.py PLANNER SOURCE_DIR [--screenshots FOLDER]")
PLANNER = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
SCREENSHOTS = Path(sys.argv[4]) if len(sys.argv) > 4 and sys.argv[3] == "--screenshots" else None
CONFIG = "examples/configs/qwen3-next-80b-a3b.json"


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    # Debian's package serves Debian's Python; the one that runs this may be another.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    skip("there is no selenium (Debian: python3-selenium)")

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
if not BROWSER.exists() or not DRIVER.exists():
    skip("there is no Chromium (Debian: chromium and chromium-driver)")


def planner(*arguments):
    environment = {name: text for name, text in os.environ.items() if not name.startswith("METRALE_")}
    command = [PLANNER, *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True, cwd=SOURCE, timeout=60).stdout


class MemoryMap(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        page = Path(cls.folder.name) / "map.html"
        page.write_bytes(planner("plan", CONFIG, "--format", "html"))
        cls.plan = json.loads(planner("plan", CONFIG, "--format", "json"))
        cls.present = sorted((each for each in cls.plan["buffers"] if each["present"]), key=lambda each: each["offset"])
        options = webdriver.ChromeOptions()
        options.binary_location = str(BROWSER)
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1280,900"):
            options.add_argument(f"--{argument}")
        options.add_argument(f"--user-data-dir={cls.folder.name}/profile")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        cls.browser.get(page.as_uri())

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.find_element(By.ID, "fit").click()

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def text(self, element):
        return self.browser.find_element(By.ID, element).text

    def blocks(self):
        """The buffers in the map, and their live rows: name, left and right edge in bytes."""
        return self.script(
            """const scale = (to - from) / map.clientWidth;
            return [...map.children].map(each => ({name: each.dataset.name, live: each.className === "live",
              policy: each.className.split(" ")[1], left: from + parseFloat(each.style.left) * scale,
              right: from + (parseFloat(each.style.left) + parseFloat(each.style.width)) * scale}));"""
        )

    def slide_to(self, place):
        self.script(
            "slider.value = arguments[0]; slider.dispatchEvent(new Event('input', {bubbles: true}));", place
        )
        return self.script("return data.tokens[slider.value];")

    def save(self, name):
        if SCREENSHOTS:
            self.browser.save_screenshot(str(SCREENSHOTS / name))

    def test_it_loads_without_errors_and_nothing_else(self):
        self.assertEqual(self.browser.title, f"Forward arena of {CONFIG}")
        errors = [each for each in self.browser.get_log("browser") if each["level"] == "SEVERE"]
        self.assertEqual(errors, [])
        self.assertEqual(self.script("return performance.getEntriesByType('resource').length;"), 0)
        summary = self.text("summary")
        for part in (str(self.plan["slab_bytes"]), str(self.plan["total_bytes"]), self.plan["hash"]):
            self.assertIn(part, summary)

    def test_the_slab_is_to_scale(self):
        slack = 2 * self.plan["slab_bytes"] / 1000  # a thousandth of the width is a pixel or so
        blocks = [each for each in self.blocks() if not each["live"]]
        drawn = self.script("return [...map.querySelectorAll('.buffer')].map(each => each.getBoundingClientRect().width);")
        self.assertLess(sum(drawn), self.script("return map.clientWidth;") + 1)  # nothing is wider than it is
        self.assertEqual([each["name"] for each in blocks], [each["name"] for each in self.present])
        for block, each in zip(blocks, self.present):
            self.assertAlmostEqual(block["left"], each["offset"], delta=slack)
            self.assertAlmostEqual(block["right"], each["offset"] + each["bytes"], delta=slack)
            self.assertEqual(block["policy"], each["zero"])

    def test_the_list_has_the_numbers_of_the_json(self):
        rows = self.script(
            "return [...document.querySelectorAll('#buffers tbody tr')].map(row =>"
            " [...row.cells].map(cell => cell.textContent));"
        )
        self.assertEqual(
            [[row[0], int(row[2]), int(row[3]), row[5], row[6]] for row in rows],
            [
                [each["name"], each["bytes"], each["offset"], each["zero"], f"{each['element']} {each['shape']}"]
                for each in self.present
            ],
        )

    def test_absent_buffers_have_a_reason(self):
        rows = self.script(
            "return [...document.querySelectorAll('#absent tr')].map(row => [...row.cells].map(cell => cell.textContent));"
        )
        want = [[each["name"], each["reason"]] for each in self.plan["buffers"] if not each["present"]]
        self.assertEqual(rows, want)
        self.assertIn(["lora_xa", "absent: needs adapter_max_rank > 0 (adapter_max_rank = 0)"], rows)

    def test_pointing_at_a_buffer(self):
        shown = set()
        for each in self.present:
            found = self.browser.find_elements(By.CSS_SELECTOR, f"#map .buffer[data-name='{each['name']}']")
            if not found or found[0].size["width"] < 3:
                continue
            ActionChains(self.browser).move_to_element(found[0]).perform()
            tip = self.text("tip")
            for part in (each["name"], f"{each['bytes']} bytes", f"at offset {each['offset']}", each["shape"]):
                self.assertIn(part, tip)
            shown.add(each["name"])
            if each["name"] == "qkv_output":
                self.save("memory-map-hover.png")
        self.assertGreater(len(shown), 10)

    def test_a_small_buffer_can_be_seen_whole(self):
        small = next(each for each in self.present if each["name"] == "norm_unit_w")
        self.assertEqual(small["bytes"], 4096)
        row = self.browser.find_element(By.CSS_SELECTOR, "#buffers tr[data-name='norm_unit_w']")
        row.click()
        block = next(each for each in self.blocks() if each["name"] == "norm_unit_w")
        self.assertAlmostEqual(block["left"], small["offset"], delta=20)
        self.assertAlmostEqual(block["right"], small["offset"] + 4096, delta=20)
        element = self.browser.find_element(By.CSS_SELECTOR, "#map .buffer[data-name='norm_unit_w']")
        self.assertGreater(element.size["width"], 600)
        ActionChains(self.browser).move_to_element(element).perform()
        self.assertIn("4096 bytes", self.text("tip"))
        self.browser.find_element(By.ID, "fit").click()
        whole = self.script("return to - from;")
        self.browser.find_element(By.ID, "in").click()
        self.assertAlmostEqual(self.script("return to - from;"), whole / 2, delta=1)
        self.browser.find_element(By.ID, "out").click()
        self.assertAlmostEqual(self.script("return to - from;"), whole, delta=1)

    def test_the_slider_shows_what_row_passes_clear(self):
        last = self.script("return data.tokens.length - 1;")
        for place in (0, 1, 7, 17, last // 2, last - 1, last):
            tokens = self.slide_to(place)
            plan = json.loads(planner("plan", CONFIG, "--format", "json", "--tokens", tokens))
            self.assertEqual(self.text("count"), str(tokens))
            self.assertIn(f"clears {plan['zero_rows_bytes']} bytes", self.text("pass"))
            rows = self.script(
                "return Object.fromEntries([...document.querySelectorAll('#buffers tbody tr')].map(row =>"
                " [row.dataset.name, Number(row.cells[4].textContent)]));"
            )
            want = {each["name"]: each["zero_bytes"] for each in plan["buffers"] if each["present"]}
            self.assertEqual(rows, want, tokens)
        self.slide_to(7)
        self.assertEqual(self.slide_to(7), 7)
        qkv = next(each for each in self.present if each["name"] == "qkv_output")
        live = self.script("return rangesOf(data.buffers.find(each => each.name === 'qkv_output'));")
        self.assertEqual(live, [0, 16 * 9216 * 2])  # ceil16(7) rows
        self.slide_to(last // 2)
        self.save("memory-map-rows.png")
        blocks = [each for each in self.blocks() if each["live"] and each["name"] == "qkv_output"]
        self.assertEqual(len(blocks), 1)
        self.assertAlmostEqual(blocks[0]["left"], qkv["offset"], delta=self.plan["slab_bytes"] / 500)

    def test_the_slider_follows_the_keyboard(self):
        self.slide_to(5)
        slider = self.browser.find_element(By.ID, "tokens")
        slider.send_keys("\ue014")  # right arrow
        self.assertEqual(self.text("count"), str(self.script("return data.tokens[6];")))

    def test_names_of_a_path_are_no_markup(self):
        folder = Path(self.folder.name) / "<b>x<"
        folder.mkdir()
        (folder / "config.json").write_bytes((SOURCE / CONFIG).read_bytes())
        page = Path(self.folder.name) / "odd.html"
        page.write_bytes(planner("plan", folder, "--format", "html"))
        before = self.browser.current_url
        try:
            self.browser.get(page.as_uri())
            self.assertEqual(self.text("title"), f"Forward arena of {folder}")
            self.assertEqual(self.browser.find_elements(By.TAG_NAME, "b" + "[title]"), [])
            self.assertTrue(re.search("Slab [0-9]+ bytes", self.text("summary")))
        finally:
            self.browser.get(before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], testRunner=unittest.TextTestRunner(stream=sys.stdout, verbosity=2))
