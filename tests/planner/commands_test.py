#!/usr/bin/env python3
"""The planner's other commands: commands_test.py PLANNER SOURCE_DIR

fit is compared with plans on both sides of what it finds, and with a search through every value; diff, sweep,
explain, the formats, the help texts, the completions, and where a config comes from are tested on their own.
"""

import csv
import io
import json
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

if len(sys.argv) != 3:
    sys.exit("usage: commands_test.py PLANNER SOURCE_DIR")
PLANNER = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()

sys.dont_write_bytecode = True
from support.folder_test import FolderTest  # noqa: E402

CONFIGS = SOURCE / "examples" / "configs"
DEEPSEEK = CONFIGS / "deepseek-v3.json"
QWEN3 = CONFIGS / "qwen3-8b.json"
QWEN3_NEXT = CONFIGS / "qwen3-next-80b-a3b.json"
SMALL_MODEL = {
    "vocab_size": 50,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
}
# A sanitizer keeps more memory than a limit for the program allows.
SANITIZED = b"__asan_init" in PLANNER.read_bytes() or b"__tsan_init" in PLANNER.read_bytes()
COMMANDS = ("plan", "fit", "explain", "diff", "sweep", "run", "completion")


def planner(*arguments, **options):
    environment = {name: text for name, text in os.environ.items() if not name.startswith("METRALE_")}
    environment.pop("NO_COLOR", None)
    return subprocess.run(
        [PLANNER, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, **options.pop("environment", {})},
        encoding="utf-8",
        check=False,
        timeout=60,
        **options,
    )


def all_that_is_shown(controller):
    """What a program writes to a terminal until it lets go of it."""
    shown = b""
    try:
        while block := os.read(controller, 65536):
            shown += block
    except OSError:  # the terminal is gone
        pass
    return shown


class CommandTest(FolderTest):
    def good(self, *arguments, status=0, **options):
        result = planner(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (status, ""), arguments)
        return result.stdout

    def json(self, *arguments, **options):
        return json.loads(self.good(*arguments, "--format", "json", **options))

    def refused(self, *arguments, says, status=2, **options):
        result = planner(*arguments, **options)
        self.assertEqual((result.returncode, result.stdout), (status, ""), arguments)
        self.assertRegex(result.stderr, r"\Astowage: [^\n]*\n\Z")
        self.assertIn(says, result.stderr)
        return result


class Views(CommandTest):
    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.good("plan", QWEN3, "--format", "csv", "--tokens", 7))))
        plan = self.json("plan", QWEN3, "--tokens", 7)["buffers"]
        self.assertEqual(
            [(row["name"], int(row["bytes"]), row["shape"], int(row["zero_bytes"])) for row in rows],
            [(each["name"], each["bytes"], each["shape"], each["zero_bytes"]) for each in plan],
        )

    def test_svg(self):
        picture = xml.etree.ElementTree.fromstring(self.good("plan", QWEN3, "--format", "svg"))
        titles = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}title")]
        for each in self.json("plan", QWEN3)["buffers"]:
            found = [title for title in titles if title.startswith(each["name"] + ": ")]
            self.assertEqual(len(found), 2 if each["present"] else 0, each["name"])
            if each["present"]:
                self.assertIn(f"{each['bytes']} bytes at {each['offset']}, ", found[0])

    def test_sort_only_and_largest(self):
        plan = self.json("plan", QWEN3)
        by_bytes = sorted(plan["buffers"], key=lambda each: -each["bytes"])
        self.assertEqual(self.json("plan", QWEN3, "--sort", "bytes")["buffers"], by_bytes)
        self.assertEqual(self.json("plan", QWEN3, "--largest", 5)["buffers"], by_bytes[:5])
        names = [each["name"] for each in self.json("plan", QWEN3, "--sort", "name")["buffers"]]
        self.assertEqual(names, sorted(names))
        for only in ("present", "absent"):
            found = self.json("plan", QWEN3, "--only", only)["buffers"]
            self.assertEqual(found, [each for each in plan["buffers"] if each["present"] == (only == "present")])
        absent = {each["name"]: each["reason"] for each in found}
        self.assertEqual(absent["lora_xa"], "absent: needs adapter_max_rank > 0 (adapter_max_rank = 0)")
        for option in ("--sort", "--largest", "--only", "--group"):
            value = {"--sort": "name", "--largest": 3, "--only": "all", "--group": "policy"}[option]
            self.refused("plan", QWEN3, "--format", "svg", option, value, says=f"{option}: has no meaning")

    def test_groups(self):
        plan = self.json("plan", QWEN3, "--group", "policy")
        self.assertEqual([group["name"] for group in plan["groups"]], ["rows", "never", "full"])
        self.assertEqual(sum(group["bytes"] for group in plan["groups"]), plan["total_bytes"])
        table = self.good("plan", QWEN3, "--group", "policy")
        self.assertRegex(table, r"(?m)^rows  +[0-9]+ .* 15 buffers$")

    def test_colour(self):
        self.assertNotIn("\x1b", self.good("plan", QWEN3))
        self.assertIn("\x1b[32mrows\x1b[0m", self.good("plan", QWEN3, "--color", "always"))
        for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            controller, terminal = pty.openpty()
            environment = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
            with subprocess.Popen(
                [PLANNER, "plan", QWEN3, "--largest", "3"],
                stdout=terminal,
                env={**environment, "TERM": "xterm", **variables},
            ) as process:
                os.close(terminal)
                shown = all_that_is_shown(controller)
                self.assertEqual(process.wait(), 0)
            os.close(controller)
            self.assertEqual(b"\x1b[" in shown, coloured, variables)


class Fit(CommandTest):
    def check(self, config, budget, vary="max-batch-tokens", *arguments):
        found = self.json("fit", config, "--budget", budget, "--vary", vary, *arguments)
        value = found["value"]
        fits = self.json("plan", config, f"--{vary}", value, *arguments)
        self.assertEqual(fits["slab_bytes"], found["slab_bytes"])
        self.assertLessEqual(found["slab_bytes"], found["budget"])
        if "problem" in found["one_more"]:
            return found
        more = self.json("plan", config, f"--{vary}", value + 1, *arguments)
        self.assertGreater(more["slab_bytes"], found["budget"])
        self.assertEqual(more["slab_bytes"], found["one_more"]["slab_bytes"])
        before = {each["name"]: each["bytes"] for each in fits["buffers"]}
        growing = [
            {"name": each["name"], "before": before[each["name"]], "after": each["bytes"]}
            for each in more["buffers"]
            if each["bytes"] > before[each["name"]]
        ]
        growing.sort(key=lambda each: each["before"] - each["after"])
        self.assertEqual(found["one_more"]["growing"], growing)
        return found

    def test_one_more_does_not_fit(self):
        for config in sorted(CONFIGS.glob("*.json")):
            for budget in ("1GiB", "4GiB", "17GB"):
                with self.subTest(config=config.name, budget=budget):
                    self.check(config, budget)
        self.check(QWEN3, "2GiB", "max-seq-len")
        self.check(QWEN3_NEXT, "80GiB", "max-batch-tokens", "--lever", "rowwise", "--splitk", "auto")

    def test_deepseek_in_4_gib(self):
        found = self.check(DEEPSEEK, "4GiB")
        self.assertEqual((found["value"], found["slab_bytes"]), (6192, 4294348032))
        text = self.good("fit", DEEPSEEK, "--budget", "4GiB")
        self.assertIn("\nmax-batch-tokens  6192\n", text)
        self.assertIn("\none more          4299051264 bytes (4.0 GiB), 4083968 bytes (3.9 MiB) too many\n", text)

    def test_every_value(self):
        """Against a search through all of them."""
        config = self.config(SMALL_MODEL)
        for vary, values in (("max-batch-tokens", range(1, 121)), ("max-batch-size", range(1, 129))):
            arguments = [] if vary == "max-batch-tokens" else ["--splitk", "auto", "--max-batch-tokens", 200]
            ranges = f"{values[0]}:{values[-1]}:1"
            sweep = self.json("sweep", config, f"--{vary}", ranges, *arguments)
            sizes = {each["value"]: each["slab_bytes"] for each in sweep["points"]}
            for budget in sorted({size + off for size in set(sizes.values()) for off in (-1, 0)})[::9]:
                fitting = [value for value, size in sizes.items() if size <= budget]
                if not fitting or max(fitting) == values[-1]:
                    continue
                found = self.json("fit", config, "--budget", budget, "--vary", vary, *arguments)
                self.assertEqual(found["value"], max(fitting), (vary, budget))

    def test_a_limit_of_the_library(self):
        found = self.check(QWEN3, "4GiB", "max-batch-size")
        self.assertEqual(found["value"], 128)
        self.assertIn("129 is above its limit of 128", found["one_more"]["problem"])

    def test_a_size_that_does_not_depend_on_it(self):
        text = self.good("fit", QWEN3, "--budget", "4GiB", "--vary", "max-seq-len", "--kv-block-size", 0)
        self.assertIn("\nmax-seq-len  9223372036854775807\n", text)
        self.assertIn("there is none", text)

    def test_nothing_fits(self):
        found = self.json("fit", DEEPSEEK, "--budget", "1KiB", status=1)
        self.assertEqual((found["fits"], found["value"]), (False, None))
        self.assertEqual(found["smallest"], {"value": 1, "slab_bytes": 6587392})
        self.assertEqual(self.json("plan", DEEPSEEK, "--max-batch-tokens", 1)["slab_bytes"], 6587392)
        self.assertEqual(self.check(DEEPSEEK, 6587392)["value"], 1)
        text = self.good("fit", DEEPSEEK, "--budget", "1KiB", status=1)
        self.assertIn("nothing fits  the smallest slab of all has 6587392 bytes (6.3 MiB)", text)

    def test_options(self):
        self.refused("fit", QWEN3, says="--budget is required")
        self.refused("fit", QWEN3, "--budget", "8GIG", says="--budget: is '8GIG' (no unit 'GIG'); wanted B, KiB")
        self.refused("fit", QWEN3, "--budget", 1, "--vary", "sm-count", says="wanted max-batch-tokens, max-seq-len")
        self.refused("fit", QWEN3, "--budget", 1, "--max-batch-tokens", 1, says="is what --vary looks for")
        self.refused("fit", self.config({**SMALL_MODEL, "hidden_size": 2**60}), "--budget", "1GiB", says="64 bits")


class Diff(CommandTest):
    def test_two_settings(self):
        found = self.json("diff", QWEN3, "--against-max-batch-tokens", 16384)
        before = self.json("plan", QWEN3)
        after = self.json("plan", QWEN3, "--max-batch-tokens", 16384)
        self.assertEqual(found["before"]["slab_bytes"], before["slab_bytes"])
        self.assertEqual(found["after"]["slab_bytes"], after["slab_bytes"])
        want = [
            {"name": one["name"], "kind": "grew", "before": one["bytes"], "after": other["bytes"]}
            for one, other in zip(before["buffers"], after["buffers"])
            if one["bytes"] != other["bytes"]
        ]
        want.sort(key=lambda each: each["before"] - each["after"])
        self.assertEqual(found["changes"], want)
        self.assertEqual(found["unchanged"], 46 - len(want))

    def test_two_models(self):
        kinds = {each["name"]: each["kind"] for each in self.json("diff", QWEN3, QWEN3_NEXT)["changes"]}
        self.assertEqual(kinds["ffn_act_q8"], "vanished")
        self.assertEqual(kinds["gdn_fla_scratch"], "appeared")
        self.assertEqual(kinds["expert_gate_out"], "shrank")
        self.assertEqual(kinds["qkv_output"], "grew")
        rows = list(csv.DictReader(io.StringIO(self.good("diff", QWEN3, QWEN3_NEXT, "--format", "csv"))))
        self.assertEqual({row["name"]: row["kind"] for row in rows}, kinds)

    def test_every_setting(self):
        config = self.config({**SMALL_MODEL, "num_experts": 4, "num_experts_per_tok": 2})
        for option, value in (
            ("max-seq-len", 65536),
            ("kv-block-size", 1),
            ("sm-count", 500),
            ("adapter-max-rank", 8),
            ("set", "vocab_size=99"),
            ("lever", "q2"),
            ("splitk", "auto"),
        ):
            found = self.json("diff", config, f"--against-{option}", value)
            changed = self.json("plan", config, f"--{option}", value)["slab_bytes"]
            self.assertEqual(found["after"]["slab_bytes"], changed, option)
            self.assertNotEqual(found["changes"], [], option)
        table = self.good("diff", config, "--against-set", "vocab_size=99", "--against-lever", "q2")
        self.assertIn(f"after   {config}, vocab_size=99, levers q2, split-K legacy\n", table)

    def test_fail_above(self):
        grown = (QWEN3, "--against-max-batch-tokens", 16384)  # by 96.8 %
        self.good("diff", *grown, "--fail-above", "97%")
        self.good("diff", *grown, "--fail-above", "96.7%", status=1)
        self.assertFalse(self.json("diff", *grown, "--fail-above", 0, status=1)["ok"])
        self.good("diff", QWEN3, "--against-max-batch-tokens", 4096, "--fail-above", 0)  # it shrank
        self.refused("diff", *grown, "--fail-above", "much", says="--fail-above: is 'much'; wanted a share")
        self.refused("diff", QWEN3, says="nothing to compare with")
        self.refused("diff", "-", "-", says="standard input can be read once")
        exact = (CONFIGS / "mistral-7b-v0.1.json", "--max-batch-tokens", 2016, "--against-max-batch-tokens", 3904)
        self.good("diff", *exact, "--fail-above", "90.72%")  # 435680000 to 830928896, by just that
        self.good("diff", *exact, "--fail-above", "90.719999%", status=1)
        self.refused("diff", *grown, "--fail-above", "1e400%", says="--fail-above: is '1e400%' (too large)")

    def test_missing_keys_are_named(self):
        lacking = self.config({key: value for key, value in SMALL_MODEL.items() if key != "vocab_size"})
        whole = self.config(SMALL_MODEL, "whole.json")
        missing = "vocab_size: absent, counts as 0"
        self.assertRegex(self.good("diff", whole, lacking), rf"(?m)^after .*\nmissing +{missing}$")
        found = self.json("diff", whole, lacking)
        self.assertEqual(found["after"]["missing"], [missing])
        self.assertNotIn("missing", found["before"])
        self.assertIn(f"\nMissing in the config\n  {missing}\n", self.good("explain", "logits", lacking))
        self.assertIn(f"missing  {missing}\n", self.good("sweep", lacking, "--sm-count", "1,2"))
        self.assertEqual(self.json("sweep", lacking, "--sm-count", "1,2")["missing"], [missing])
        self.assertIn(missing, self.good("sweep", lacking, "--sm-count", "1,2", "--format", "svg"))


class Sweep(CommandTest):
    def test_points_are_plans(self):
        sweep = self.json("sweep", QWEN3, "--max-batch-tokens", "1:16384:x2")
        self.assertEqual([each["value"] for each in sweep["points"]], [2**power for power in range(15)])
        for each in sweep["points"][::5]:
            plan = self.json("plan", QWEN3, "--max-batch-tokens", each["value"])
            self.assertEqual(each["slab_bytes"], plan["slab_bytes"])
            self.assertEqual(each["buffers"], {buffer["name"]: buffer["bytes"] for buffer in plan["buffers"]})
        table = self.good("sweep", QWEN3, "--max-batch-tokens", "1:16384:x2")
        self.assertEqual(len(table.splitlines()), 16)
        self.assertRegex(table, r"(?m)^ +8192 +1613245184 +1\.5 GiB ")
        rows = list(csv.DictReader(io.StringIO(self.good("sweep", QWEN3, "--max-seq-len", "16,32", "--format", "csv"))))
        self.assertEqual([row["max-seq-len"] for row in rows], ["16", "32"])

    def test_plot(self):
        for name, values in (("a.svg", "1:16384:x2"), ("b.svg", "0:100:50"), ("c.svg", "7,7")):
            file = self.folder / name
            self.good("sweep", QWEN3, "--max-batch-tokens", values, "--plot", file)
            picture = xml.etree.ElementTree.parse(file).getroot()
            names = [each.text.split(":")[0] for each in picture.iter("{http://www.w3.org/2000/svg}title")]
            self.assertEqual(len(names), 9)
            self.assertEqual(names[-1], "others")

    def test_plot_has_a_file_of_its_own(self):
        arguments = ("sweep", QWEN3, "--sm-count", "1,2", "--plot")
        for file in (self.folder / "one.svg", self.folder / "two.svg"):
            if file.name == "two.svg":
                file.touch()
            self.refused(*arguments, file, "--output", f"{self.folder}/./{file.name}", says="is the file of --plot")
        self.refused(*arguments, self.folder / "plot.pdf", says="wanted a file that ends in .svg or .png")
        self.assertFalse((self.folder / "plot.pdf").exists())

    def test_png(self):
        file = self.folder / "sweep.png"
        arguments = ("sweep", QWEN3, "--max-batch-tokens", "1:64:x2", "--plot", file)
        self.refused(*arguments, says="no program turns SVG into PNG", environment={"PATH": str(self.folder)})
        self.assertFalse(file.exists())
        if not shutil.which("rsvg-convert"):
            self.skipTest("SKIPPED: there is no rsvg-convert")
        self.good(*arguments)
        self.assertTrue(file.read_bytes().startswith(b"\x89PNG"))

    def test_options(self):
        self.refused("sweep", QWEN3, says="no number has a range")
        self.refused("sweep", QWEN3, "--max-batch-tokens", "1:2", says="wanted a range such as 1:16384:x2")
        self.refused(
            "sweep", QWEN3, "--max-batch-tokens", "1,2", "--sm-count", "1,2", says="only one number can have a range"
        )
        self.refused("plan", QWEN3, "--max-batch-tokens", "1,2", says="wanted an integer")


class Explain(CommandTest):
    def test_every_buffer_of_every_model(self):
        for config in sorted(CONFIGS.glob("*.json")):
            plan = self.json("plan", config)
            for each in plan["buffers"][:: 3 if config != QWEN3_NEXT else 1]:
                text = self.good("explain", each["name"], config)
                self.assertTrue(text.startswith(f"{each['name']}: {each['bytes']} bytes"), text)
                if each.get("reason", "").startswith("placeholder"):
                    self.assertIn(f"a placeholder of {each['bytes']} bytes keeps its place", text)
                if each["present"] and "reason" not in each:
                    self.assertIn(f"together {each['bytes']} bytes\n", text)
                for factors, result in re.findall(r"(?m)^ *([0-9 *]+) elements? \* [0-9]+ bytes? = ([0-9]+) bytes", text):
                    product = 1
                    for factor in factors.split(" * "):
                        product *= int(factor)
                    self.assertEqual(int(result) % max(product, 1), 0)

    def test_unknown_buffer(self):
        self.refused("explain", "qkvoutput", QWEN3, says="no such buffer); wanted a name that stowage plan shows, such as qkv_output")


class Inputs(CommandTest):
    def test_where_a_config_comes_from(self):
        config = self.config(SMALL_MODEL)
        buffers = self.json("plan", config)["buffers"]
        self.assertEqual(self.json("plan", self.folder)["buffers"], buffers)
        with open(config, encoding="utf-8") as file:
            self.assertEqual(self.json("plan", "-", stdin=file)["buffers"], buffers)
        self.assertEqual(self.json("plan", "-", input=json.dumps(SMALL_MODEL))["buffers"], buffers)
        piped = subprocess.run(
            ["bash", "-c", f"'{PLANNER}' plan <(cat '{config}') --format json"],
            stdout=subprocess.PIPE, check=True, timeout=60,
        )
        self.assertEqual(json.loads(piped.stdout)["buffers"], buffers)

    def test_set(self):
        config = self.config({**SMALL_MODEL, "n_routed_experts": 4, "num_experts_per_tok": 2})
        inputs = self.json("plan", config, "--set", "num_experts=64", "--set", "attn_gated=true")["inputs"]
        self.assertEqual((inputs["num_experts"], inputs["attn_output_gate"]), (64, True))
        self.refused("plan", config, "--set", "frob=1", says="--set: frob: no key that can be set")
        self.refused("plan", config, "--set", "frob", says="--set: is 'frob'; wanted KEY=VALUE")
        self.refused("plan", config, "--set", "vocab_size=-1", says="vocab_size: is -1 (negative)")

    def test_unknown_models_work_from_their_fields_and_say_what_is_missing(self):
        config = self.config({"model_type": "never_heard_of", "text_config": {"hidden_size": 64, "head_dim": 8}})
        plan = self.json("plan", config)
        self.assertEqual(
            plan["inputs"]["missing"],
            ["vocab_size: absent, counts as 0", "intermediate_size: absent, counts as 0"],
        )
        self.assertIn("\nmissing   vocab_size: absent, counts as 0\n", self.good("plan", config))
        self.assertNotIn("missing", self.json("plan", self.config(SMALL_MODEL))["inputs"])

    def test_the_config_is_not_overwritten(self):
        config = self.config(SMALL_MODEL)
        before = config.read_bytes()
        (self.folder / "link.json").symlink_to(config)
        for source in (config, self.folder):
            for output in (config, self.folder / "link.json", self.folder / "." / "config.json"):
                self.refused("plan", source, "--output", output, says="is the config that is read")
        self.refused("diff", QWEN3, config, "--output", config, says="is the config that is read")
        self.refused("sweep", config, "--sm-count", "1,2", "--plot", config, says="is the config that is read")
        with open(config, encoding="utf-8") as file:
            self.refused("plan", "-", "--output", config, stdin=file, says="is the config that is read")
        self.assertEqual(config.read_bytes(), before)

    def test_a_file_name_that_is_not_utf8(self):
        name = os.fsencode(self.folder) + b"/\xff.json"
        with open(name, "w", encoding="utf-8") as file:
            json.dump(SMALL_MODEL, file)
        for arguments in (("plan", "--format", "svg"), ("plan", "--format", "html"), ("sweep", "--sm-count", "1,2", "--format", "svg")):
            command = [os.fsencode(PLANNER), *map(os.fsencode, arguments), name]
            text = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout
            self.assertIn("\ufffd.json", text.decode("utf-8"), arguments)

    def test_config_help(self):
        text = self.good("--config-help")
        for line in (
            r"(?m)^num_experts +n_routed_experts, num_local_experts +absent: 0$",
            r"(?m)^hidden_size +required$",
            r"(?m)^text_config +object; its keys override",
        ):
            self.assertRegex(text, line)


class HostileConfigs(CommandTest):
    """Ends in a clean error, in bounded time and memory."""

    MEMORY = 512 * 1024 * 1024
    SECONDS = 60 if SANITIZED else 15

    def hostile(self, *arguments, says, **options):
        limit = None if SANITIZED else self.limit_memory
        start = time.monotonic()
        self.refused("plan", *arguments, says=says, preexec_fn=limit, **options)
        self.assertLess(time.monotonic() - start, self.SECONDS)

    def limit_memory(self):
        resource.setrlimit(resource.RLIMIT_DATA, (self.MEMORY, self.MEMORY))

    def test_texts(self):
        whole = 16 * 1024 * 1024
        deep = 8 * 1024 * 1024 - 1000
        cases = {
            "deep arrays": ("[" * deep, "nested deeper than 64"),
            "deep objects": ('{"a":' * (deep // 4), "nested deeper than 64"),
            "a deep value": ('{"x":' + "[" * 1000 + "]" * 1000 + "}", "nested deeper than 64"),
            "many values": ("[" + "0," * (deep - 10) + "0]", "more than 1000000 values"),
            "many empty arrays": ('{"layer_types":[' + "[]," * 5000000 + "[]]}", "more than 1000000 values"),
            "many keys": ("{" + ",".join(f'"{key}":0' for key in range(1100000)) + "}", "more than 1000000 values"),
            "a long string": ('{"model_type":"' + "x" * (whole - 100) + '"}', "hidden_size: is missing"),
            "a long number": ('{"hidden_size":' + "9" * 1000000 + "}", "cannot be read as JSON"),
            "a huge exponent": ('{"hidden_size":1e999999999}', "cannot be read as JSON"),
            "too large": (" " * (whole + 1), "more than 16777216 bytes (16 MiB)"),
            "control characters": ('{"hidden_size":"\x1b[2J"}', "cannot be read as JSON"),
        }
        for case, (text, problem) in cases.items():
            with self.subTest(case=case):
                self.hostile(self.config(text), says=problem)

    def test_bytes(self):
        for name, content in (
            ("utf-16", '{"hidden_size": 1}'.encode("utf-16")),
            ("invalid", b'{"hidden_size": "\xff\xfe"}'),
            ("overlong", b'{"model_type": "\xc0\xaf"}'),
            ("random", bytes(range(256)) * 100),
            ("zeros", bytes(4096)),
        ):
            with self.subTest(name=name):
                file = self.folder / name
                file.write_bytes(content)
                self.hostile(file, says="cannot be read as JSON")

    def test_devices(self):
        if os.path.exists("/dev/zero"):
            self.hostile("/dev/zero", says="/dev/zero: has more than 16777216 bytes")
            with open("/dev/zero", "rb") as zeros:
                self.hostile("-", says="standard input: has more than 16777216 bytes", stdin=zeros)
        self.hostile("/dev/null", says="cannot be read as JSON")
        self.hostile("/", says="/: is a directory without a config.json")

    def test_pipes_that_never_end(self):
        with subprocess.Popen(["yes", "[1, 2]"], stdout=subprocess.PIPE) as endless:
            self.hostile("-", says="standard input: has more than 16777216 bytes", stdin=endless.stdout)
            endless.kill()
        fifo = self.folder / "config.json"
        os.mkfifo(fifo)
        self.hostile(self.folder, says=f"{fifo}: nothing came for 10 s")


class Terminal(CommandTest):
    def test_help(self):
        general = self.good("--help")
        self.assertIn("Exit status: 0 success; 1 ", general)
        for command in COMMANDS:
            self.assertRegex(general, rf"(?m)^  {command} ")
            text = self.good(command, "--help")
            self.assertRegex(text, r"(?m)^(Example: stowage |Example: source <\(stowage )")
            example = text[text.index("Example: ") :].splitlines()[0]
            if command != "completion":
                words = example.split()[2:]
                self.good(*[QWEN3 if word == "config.json" else word for word in words if word not in ("--plot", "sweep.svg")],
                          status=1 if command == "diff" else 0)

    def test_the_session_in_the_tutorial(self):
        """Its output is what the commands print, letter by letter."""
        tutorial = (SOURCE / "docs" / "tutorial.md").read_text(encoding="utf-8")
        sessions = re.findall(r"(?ms)^```console\n\$ stowage ([^\n]*)\n(.*?)^```$", tutorial)
        self.assertEqual(len(sessions), 2)
        for command, output in sessions:
            self.assertEqual(self.good(*command.split(), cwd=SOURCE), output)

    def test_version(self):
        header = (SOURCE / "include" / "stowage" / "version.hpp").read_text(encoding="utf-8")
        version = ".".join(re.findall(r"#define STOWAGE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
        self.assertEqual(self.good("--version"), f"stowage {version}\n")

    def options_of(self, command):
        """The long options in a help text."""
        return set(re.findall(r"(?m)^  (?:-h,)?(--[a-z-]+)", self.good(command, "--help")))

    def test_bash_completion(self):
        script = self.good("completion", "bash")

        def complete(*words):
            program = script + (
                "COMP_WORDS=(" + " ".join(f"'{word}'" for word in words) + ")\n"
                "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_stowage\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
            )
            result = subprocess.run(["bash", "-c", program], stdout=subprocess.PIPE, check=True, cwd=self.folder, timeout=60)
            return set(result.stdout.decode().split())

        self.assertTrue({*COMMANDS, "--help", "--version"} <= complete("stowage", ""))
        for command in COMMANDS:
            self.assertEqual(complete("stowage", command, "--"), self.options_of(command), command)
        self.assertEqual(complete("stowage", "plan", "x.json", "--format", ""), {"table", "json", "csv", "svg", "html"})
        self.assertEqual(complete("stowage", "run", "x.json", "--format", ""), {"table", "json"})
        self.assertEqual(complete("stowage", "explain", "qkv"), {"qkv_output"})
        self.config(SMALL_MODEL)
        self.assertEqual(complete("stowage", "plan", "conf"), {"config.json"})

    def test_zsh_completion(self):
        script = self.good("completion", "zsh")
        for command in COMMANDS:
            block = re.search(rf"(?ms)^    {command}\)\n(.*?) ;;$", script)[1]
            self.assertEqual(set(re.findall(r"'\*?(--[a-z-]+)[=\[]", block)), self.options_of(command), command)
        if not shutil.which("zsh"):
            self.skipTest("SKIPPED: there is no zsh")
        subprocess.run(["zsh", "-n"], input=script.encode(), check=True, timeout=60)

    def test_manual(self):
        manual = (SOURCE / "docs" / "stowage.1").read_text(encoding="utf-8").replace("\\-", "-")
        for command in COMMANDS:
            self.assertIn(f".SS {command}\n", manual)
            for option in self.options_of(command):
                self.assertIn(option, manual, f"{command} {option} is not in docs/stowage.1")
        for option in set(re.findall(r"--[a-z][a-z-]+", manual)):
            known = set().union(*map(self.options_of, COMMANDS)) | {"--version", "--config-help"}
            self.assertIn(option, known, "docs/stowage.1 has an option that there is not")
        for status in ("0", "1", "2"):
            self.assertIn(f".B {status}\n", manual)


class Run(CommandTest):
    def test_backends(self):
        config = self.config(SMALL_MODEL)
        report = self.json("run", config, "--max-batch-tokens", 40, "--backend", "host")
        self.assertTrue(report["ok"])
        self.assertGreater(report["passes"][1]["gigabytes_per_second"], 0)
        result = planner("run", config, "--backend", "cuda", "--max-batch-tokens", "40")
        if result.returncode == 2:
            self.assertRegex(result.stderr, r"\Astowage: --backend: is 'cuda', and [^\n]*; wanted [^\n]*\n\Z")
        else:
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.refused("run", config, "--backend", "rocm", says="--backend: is 'rocm'; wanted host or cuda")

    def test_memory_that_is_not_there(self):
        result = planner("run", QWEN3, "--max-batch-tokens", 10**9)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(
            result.stderr, r"\Astowage: out of memory: [0-9]+ bytes wanted: [0-9]+ bytes \([0-9.]+ .iB\) of host memory are available"
        )

    def run_with_errors_on_a_terminal(self, *arguments):
        """What the planner shows on a terminal that its errors go to, and the seconds that it takes."""
        controller, terminal = pty.openpty()
        start = time.monotonic()
        with subprocess.Popen([PLANNER, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=terminal) as process:
            os.close(terminal)
            shown = all_that_is_shown(controller)
            self.assertEqual(process.wait(), 0)
        os.close(controller)
        return shown.decode(), time.monotonic() - start

    def test_progress_bar(self):
        shown, _ = self.run_with_errors_on_a_terminal("run", self.config(SMALL_MODEL), "--max-batch-tokens", 4)
        self.assertEqual(shown, "")
        shown, seconds = self.run_with_errors_on_a_terminal("run", QWEN3_NEXT)
        if seconds > 1.5:  # less, and there may be none
            self.assertRegex(shown, r"\r\x1b\[K\[#*\.*\] [0-9]+/9  [0-9]+ s  [a-z]")
            self.assertTrue(shown.endswith("\r\x1b[K"), shown[-80:])
        self.good("run", QWEN3, "--max-batch-tokens", 2048)  # none without a terminal


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], testRunner=unittest.TextTestRunner(stream=sys.stdout, verbosity=2))
