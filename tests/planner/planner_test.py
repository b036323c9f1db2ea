#!/usr/bin/env python3
"""The planner as a program: planner_test.py PLANNER SOURCE_DIR

Plans are compared with tests/reference/forward_arena.py, buffer by buffer; layouts, bad input, runs, output
files and the environment are tested on their own.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

if len(sys.argv) != 3:
    sys.exit("usage: planner_test.py PLANNER SOURCE_DIR")
PLANNER = Path(sys.argv[1]).resolve()
SOURCE = Path(sys.argv[2]).resolve()
CONFIGS = sorted((SOURCE / "examples" / "configs").glob("*.json"))
QWEN3_NEXT = SOURCE / "examples" / "configs" / "qwen3-next-80b-a3b.json"

sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests" / "reference"))
import forward_arena as reference  # noqa: E402
from support.folder_test import FolderTest  # noqa: E402

BATCHES = (1, 17, 4096, 8193)
ROW_PASSES = (1, 17)
SMALL_SEQUENCE = ["--max-seq-len", "4096"]
SMALL_MODEL = {
    "vocab_size": 50,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
}

# The buffers on the checksum list: those of row passes, and one more.
CHECKSUMMED = (
    "hidden_states",
    "residual",
    "norm_output",
    "qkv_output",
    "attn_output",
    "gate_logits",
    "moe_output",
    "ssm_qkvz",
    "ssm_ba",
    "ssm_deinterleaved",
    "ssm_gates",
    "ssm_conv_out_f32",
    "expert_gate_out",
    "expert_up_out",
    "expert_down_out",
    "splitk_workspace",
)

SWITCHES = ("METRALE_GGUF_NATIVE_Q2", "METRALE_GGUF_NATIVE_Q2_MMQ", "METRALE_FP8_ROWWISE")
SPLITK = "METRALE_ATTN_DECODE_SPLITK"


def planner(*arguments, environment=None, stdout=subprocess.PIPE):
    """Runs the planner without levers in the environment but these."""
    variables = {name: text for name, text in os.environ.items() if name not in (*SWITCHES, SPLITK)}
    variables.update(environment or {})
    return subprocess.run(
        [PLANNER, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=variables,
        encoding="utf-8",
        check=False,
        timeout=250,
    )


class PlannerTest(FolderTest):
    def good(self, *arguments, **options):
        """What the planner prints; nothing else may be wrong."""
        result = planner(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def plan(self, config, *arguments, **options):
        return json.loads(self.good("plan", config, "--format", "json", *arguments, **options))

    def refused(self, *arguments, says=(), **options):
        """Bad input: status 2, one line on standard error, nothing on standard output."""
        result = planner(*arguments, **options)
        self.assertEqual(result.returncode, 2, arguments)
        self.assertIn(result.stdout, ("", None), arguments)
        self.assert_one_line(result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def assert_one_line(self, text):
        self.assertTrue(text.startswith("stowage: "), text)
        self.assertTrue(text.endswith("\n"), text)
        self.assertEqual(len(text.splitlines()), 1, text)


class Plans(PlannerTest):
    def compare(self, config, batch, tokens, arguments, **launch):
        got = self.plan(config, "--max-batch-tokens", batch, "--tokens", tokens, *SMALL_SEQUENCE, *arguments)
        inputs = reference.make_inputs(
            reference.load_model(config), max_batch_tokens=batch, max_seq_len=4096, **launch
        )
        want = reference.report(inputs, tokens)
        keys = ("name", "bytes", "present", "zero", "zero_bytes")
        self.assertEqual(
            [[buffer[key] for key in keys] for buffer in got["buffers"]],
            [[buffer[key] for key in keys] for buffer in want["buffers"]],
        )
        self.assertEqual(len(got["buffers"]), 46)
        self.assertEqual(got["total_bytes"], want["total_bytes"])
        self.assertEqual(got["zero_rows_bytes"], want["zero_rows_bytes"])
        self.check_layout(got)

    def check_layout(self, plan):
        """Aligned, in order of policy, without overlap, and no larger than the slab."""
        end, group = 0, 0
        present = [buffer for buffer in plan["buffers"] if buffer["present"]]
        for buffer in sorted(present, key=lambda each: each["offset"]):
            self.assertGreaterEqual(buffer["offset"], end, buffer)
            self.assertEqual(buffer["offset"] % 256, 0, buffer)
            self.assertEqual(buffer["offset"] % buffer["alignment"], 0, buffer)
            self.assertLess(buffer["offset"] - end, buffer["alignment"], buffer)
            policy = ("rows", "full", "never").index(buffer["zero"])
            self.assertGreaterEqual(policy, group, buffer)
            end, group = buffer["offset"] + buffer["bytes"], policy
        self.assertEqual(end, plan["slab_bytes"])
        for buffer in plan["buffers"]:
            if not buffer["present"]:
                self.assertEqual((buffer["bytes"], buffer["offset"]), (0, None), buffer)

    def test_equal_the_reference(self):
        self.assertEqual(len(CONFIGS), 10)
        for config in CONFIGS:
            for batch in BATCHES:
                for tokens in ROW_PASSES:
                    with self.subTest(config=config.name, batch=batch, tokens=tokens):
                        self.compare(config, batch, tokens, [])

    def test_equal_the_reference_with_all_levers(self):
        arguments = ["--lever", "q2", "--lever", "q2_mmq", "--lever", "rowwise"]
        arguments += ["--adapter-max-rank", "16", "--splitk", "auto"]
        launch = {"levers": reference.LEVERS, "adapter_max_rank": 16, "split_k": "auto"}
        for config in CONFIGS:
            for batch in BATCHES:
                for tokens in ROW_PASSES:
                    with self.subTest(config=config.name, batch=batch, tokens=tokens):
                        self.compare(config, batch, tokens, arguments, **launch)

    def test_equal_the_reference_at_the_edges(self):
        edges = (
            (0, 0, [], {}),
            (0, 1, [], {}),
            (1, 0, [], {}),
            (17, 16, [], {}),
            (100, 100, [], {}),
            (100, 1000, [], {}),
            (100, 9223372036854775807, [], {}),
            (3, 1, ["--kv-block-size", 0], {"kv_block_size": 0}),
            (3, 2, ["--max-batch-size", 128, "--splitk", 3], {"max_batch_size": 128, "split_k": "3"}),
            (3, 2, ["--max-batch-size", 0, "--sm-count", 0], {"max_batch_size": 0, "sm_count": 0}),
            (3, 2, ["--splitk", "off"], {"split_k": "off"}),
        )
        for config in CONFIGS:
            for batch, tokens, arguments, launch in edges:
                with self.subTest(config=config.name, batch=batch, tokens=tokens, arguments=arguments):
                    self.compare(config, batch, tokens, arguments, **launch)

    def test_row_pass_clears_16_rows_of_padded_buffers(self):
        plan = self.plan(QWEN3_NEXT, "--max-batch-tokens", 8193, "--tokens", 1, *SMALL_SEQUENCE)
        zero_bytes = {buffer["name"]: buffer["zero_bytes"] for buffer in plan["buffers"]}
        self.assertEqual(zero_bytes["hidden_states"], 4096)  # 1 * 2048 * 2
        self.assertEqual(zero_bytes["qkv_output"], 294912)  # 16 * 9216 * 2
        self.assertEqual(zero_bytes["moe_output"], 65536)  # 16 * 2048 * 2
        self.assertEqual(zero_bytes["ssm_deinterleaved"], 393216)  # 16 * 12288 * 2
        self.assertEqual(zero_bytes["ssm_qkvz"], 409600)  # the same and, at row 8193, 16 * 512 * 2
        self.assertEqual(zero_bytes["expert_down_out"], 655360)  # 16 * 10 * 2048 * 2
        self.assertEqual(zero_bytes["gate_logits_f32"], 0)

    def test_json(self):
        plan = self.plan(QWEN3_NEXT, "--lever", "rowwise", "--lever", "q2", "--splitk", "AUTO")
        self.assertEqual(list(plan), ["inputs", "buffers", "total_bytes", "slab_bytes", "hash"])
        self.assertRegex(plan["hash"], "^0x[0-9a-f]{16}$")
        inputs = plan["inputs"]
        self.assertEqual(inputs["config"], str(QWEN3_NEXT))
        self.assertEqual(inputs["hidden_size"], 2048)
        self.assertEqual(inputs["attn_output_gate"], True)
        self.assertEqual(inputs["num_ssm_layers"], 36)
        launch = {
            "max_batch_tokens": 8192,
            "max_seq_len": 32768,
            "kv_block_size": 16,
            "max_batch_size": 32,
            "sm_count": 132,
            "adapter_max_rank": 0,
            "levers": ["q2", "rowwise"],
            "splitk": "auto",
        }
        self.assertEqual({name: inputs[name] for name in launch}, launch)
        self.assertNotIn("tokens", inputs)
        qkv_output = plan["buffers"][3]
        self.assertEqual(
            qkv_output,
            {
                "name": "qkv_output",
                "bytes": 150994944,
                "present": True,
                "offset": qkv_output["offset"],
                "alignment": 256,
                "element": "bf16",
                "shape": "[ceil16(M), qkv_width]",
                "zero": "rows",
            },
        )

        with_tokens = self.plan(QWEN3_NEXT, "--tokens", 0)
        self.assertEqual(list(with_tokens)[-1], "zero_rows_bytes")
        self.assertEqual(with_tokens["inputs"]["tokens"], 0)
        self.assertEqual(with_tokens["buffers"][3]["zero_bytes"], 0)

    def test_hash_names_the_layout(self):
        first = self.plan(QWEN3_NEXT)["hash"]
        self.assertEqual(self.plan(QWEN3_NEXT)["hash"], first)
        self.assertNotEqual(self.plan(QWEN3_NEXT, "--max-batch-tokens", 8193)["hash"], first)

    def test_table(self):
        table = self.good("plan", QWEN3_NEXT, "--tokens", 17)
        lines = {line.split()[0]: line for line in table.splitlines() if line and line[0] != " "}
        for buffer in self.plan(QWEN3_NEXT, "--tokens", 17)["buffers"]:
            line = lines[buffer["name"]]
            if buffer["present"]:
                for column in ("bytes", "offset", "zero", "zero_bytes"):
                    self.assertIn(str(buffer[column]), line.split())
            else:
                self.assertIn("absent: needs ", line)
        self.assertIn("144.0 MiB", lines["qkv_output"])
        self.assertIn("bf16 [ceil16(M), qkv_width]", lines["qkv_output"])
        self.assertIn("absent: needs adapter_max_rank > 0", lines["lora_xa"])
        self.assertIn("placeholder: needs hc_mult > 0", lines["hc_post"])
        self.assertIn("(2.1 GiB)", lines["slab"])
        self.assertRegex(lines["hash"], " 0x[0-9a-f]{16}$")
        self.assertIn("A row pass over 17 tokens clears ", table)
        self.assertIn("absent: needs num_experts > 0", self.good("plan", self.config(SMALL_MODEL)))
        self.assertNotIn("row pass", self.good("plan", QWEN3_NEXT))


class BadInput(PlannerTest):
    def test_config(self):
        largest = 9223372036854775807
        cases = {
            "no JSON": ("hello", "cannot be read as JSON"),
            "half a JSON": ('{"hidden_size": 64', "cannot be read as JSON"),
            "an empty file": ("", "cannot be read as JSON"),
            "no object": ([1, 2], "the top level is an array"),
            "a wrong type": ({**SMALL_MODEL, "vocab_size": "many"}, "vocab_size: is the string"),
            "a fraction": ({**SMALL_MODEL, "vocab_size": 1.5}, "vocab_size: is 1.5"),
            "a negative number": ({**SMALL_MODEL, "head_dim": -1}, "head_dim: is -1 (negative)"),
            "2^63": ({**SMALL_MODEL, "vocab_size": 2**63}, "vocab_size: is 9223372036854775808 (too large)"),
            "2^64": ({**SMALL_MODEL, "vocab_size": 2**64}, "vocab_size: is 1.8"),
            "no hidden_size": ({"num_attention_heads": 4}, "hidden_size: is missing"),
            "sizes beyond 64 bits": ({**SMALL_MODEL, "vocab_size": largest}, "does not fit in 64 bits"),
            "a total beyond 64 bits": ({**SMALL_MODEL, "hidden_size": 2**47}, "64 bits, in the offsets"),
        }
        for command in ("plan", "run"):
            for case, (content, problem) in cases.items():
                with self.subTest(command=command, case=case):
                    path = self.config(content)
                    self.refused(command, path, says=[str(path), problem])
        self.config("x" * 100000, "long.json")
        self.refused("plan", self.folder / "long.json", says=["cannot be read as JSON"])

    def test_file(self):
        for command in ("plan", "run"):
            missing = self.folder / "none.json"
            self.refused(command, missing, says=[f"{missing}: no such file"])
            self.refused(command, self.folder, says=[f"{self.folder}: is a directory without a config.json"])
            self.refused(command, "", says=["no such file"])
            self.refused(command, "two\nlines", says=["two?lines: no such file"])

    def test_options(self):
        config = self.config(SMALL_MODEL)
        numbers = ("max-batch-tokens", "max-seq-len", "kv-block-size", "max-batch-size", "sm-count")
        for command in ("plan", "run"):
            for number in (*numbers, "adapter-max-rank", "tokens"):
                for text in ("-1", "", "x", "1x", "1.5", "+1", "9223372036854775808", "1\n"):
                    with self.subTest(command=command, number=number, text=text):
                        start = f"stowage: --{number}: is '"
                        self.refused(command, config, f"--{number}", text, says=[start])
                self.refused(command, config, f"--{number}", says=[f"stowage: --{number}: "])
                self.refused(command, config, f"--{number}", 1, f"--{number}", 1, says=["more than once"])
            self.refused(command, config, "--frob", says=["'--frob': unknown option"])
            self.refused(command, config, "--frob=1\n2", says=["'--frob=1?2': unknown option"])
            self.refused(command, config, "-x", says=["'-x': unknown option"])
            self.refused(command, config, config, says=["one argument too many"])
            self.refused(command, says=["CONFIG.json is required"])
            for option, text, wanted in (
                ("--lever", "q3", "q2, q2_mmq or rowwise"),
                ("--splitk", "some", "legacy, auto, off or a count of splits"),
                ("--format", "xml", "table, json, csv, svg or html" if command == "plan" else "table or json"),
            ):
                self.refused(command, config, option, text, says=[f"{option}: is '{text}'; wanted {wanted}"])
        self.refused("frob", says=["'frob'; wanted plan, fit, explain, diff, sweep, run or completion"])
        self.refused("--frob", says=["'--frob': unknown option"])
        self.refused("--format", "json", "plan", config, says=["'--format': unknown option"])

    def test_limits_of_the_library(self):
        config = self.config(SMALL_MODEL)
        for command in ("plan", "run"):
            self.refused(command, config, "--max-batch-size", 129, says=[str(config), "= 129 ", "128"])
            self.refused(
                command, config, "--max-batch-tokens", 9223372036854775807, says=["does not fit in 64 bits"]
            )

    def test_more_memory_than_there_is(self):
        # A sanitizer is told to refuse memory as the system does; it says so in lines of its own.
        may_return_null = {f"{name}_OPTIONS": "allocator_may_return_null=1" for name in ("ASAN", "TSAN")}
        result = planner(
            "run", self.config(SMALL_MODEL), "--max-batch-tokens", 10**12, environment=may_return_null
        )
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        lines = [line for line in result.stderr.splitlines() if line.startswith("stowage: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], "^stowage: out of memory: [0-9]{16} bytes wanted")


class Runs(PlannerTest):
    def run_json(self, config, *arguments):
        report = json.loads(self.good("run", config, "--format", "json", *SMALL_SEQUENCE, *arguments))
        self.assertTrue(report["ok"])
        self.assertTrue(report["release"]["ok"])
        for each in report["passes"]:
            self.assertTrue(each["ok"], each)
            self.assertEqual(each["cleared_bytes"], each["promised_bytes"], each)
        operations = report["operations"]
        self.assertEqual(
            list(operations), ["checksum", "rowwise_slab", "decode_metadata", "moe_fp8", "batched_prefill"]
        )
        for each in (*operations.values(), *operations["checksum"]["buffers"]):
            self.assertTrue(each["ok"], each)
            self.assertNotIn("problem", each)
        return report

    def check_against_the_reference(self, config, batch, tokens, *arguments, **launch):
        report = self.run_json(config, "--max-batch-tokens", batch, *arguments)
        inputs = reference.make_inputs(
            reference.load_model(config), max_batch_tokens=batch, max_seq_len=4096, **launch
        )
        buffers = reference.compute(inputs)
        bytes_of = {buffer["name"]: buffer["bytes"] for buffer in buffers}
        promised = {
            (each["pass"], each.get("end_token")): each["promised_bytes"]
            for each in report["passes"]
            if each.get("first_token", 0) == 0
        }
        want = {
            ("construction", None): bytes_of["norm_unit_w"],
            ("zero_all", None): sum(each["bytes"] for each in buffers if each["zero"] != "never"),
            ("prefill_essentials", None): sum(each["bytes"] for each in buffers if each["prefill"]),
        }
        for count in tokens:
            want["zero_rows", count] = reference.report(inputs, count)["zero_rows_bytes"]
        self.assertEqual(promised, want)
        self.assertEqual(report["total_bytes"], sum(bytes_of.values()))
        self.assertEqual(report["present_buffers"], sum(each["present"] for each in buffers))
        for each in report["passes"]:
            self.assertEqual("milliseconds" in each, each["pass"] != "construction")
        self.check_operations(report["operations"], config, batch, bytes_of, launch)

    def check_operations(self, operations, config, batch, bytes_of, launch):
        def planned(rows):
            model = reference.load_model(config)
            inputs = reference.make_inputs(model, max_batch_tokens=rows, max_seq_len=4096, **launch)
            return {each["name"]: each["bytes"] for each in reference.compute(inputs)}

        sums = {each["name"]: each for each in operations["checksum"]["buffers"]}
        self.assertEqual(list(sums), [name for name in bytes_of if name in CHECKSUMMED and bytes_of[name]])
        for name, each in sums.items():
            self.assertEqual(each["bytes"], bytes_of[name])
            self.assertGreater(each["sum_of_magnitudes"], 0)

        rowwise, slab = operations["rowwise_slab"], bytes_of["ssm_rowwise_w_bf16"]
        self.assertEqual(rowwise["absent"] is None, slab > 0)
        self.assertEqual((rowwise["takes"] * rowwise["bytes_per_take"], rowwise["bytes"]), (slab, slab))
        self.assertIn("wanted from slab 'ssm_rowwise_w_bf16'", rowwise["refused"])

        metadata = operations["decode_metadata"]  # 32 rows; 4096 / 16 + 1 blocks
        self.assertEqual((metadata["rows"], metadata["bytes"]), (32, 24 * 32 + 4 * 32 * 257))
        self.assertEqual(list(metadata["offsets"].values()), [0, 128, 256, 512, 640, 768])
        self.assertEqual((metadata["scratch_offset"], metadata["scratch_bytes"]), (32768, bytes_of["scratch"]))

        moe = operations["moe_fp8"]
        self.assertEqual(moe["absent"] is None, bytes_of["moe_fp8_scratch"] > 0)
        rows = sorted({min(1, batch), batch}) if moe["absent"] is None else []
        self.assertEqual(
            moe["carvings"], [{"rows": each, "bytes": planned(each)["moe_fp8_scratch"]} for each in rows]
        )
        self.assertIn(f"for {batch + 1 if rows else 1} rows wanted", moe["refused"])

        prefill = operations["batched_prefill"]
        self.assertEqual((prefill["streams"], prefill["chunk"]), (8, max((batch + 7) // 8, 1)))
        self.assertLessEqual(prefill["bytes"], bytes_of["scratch"])
        self.assertGreaterEqual(prefill["largest_chunk"], prefill["chunk"])
        self.assertIn(f", {bytes_of['scratch']} are there", prefill["refused"])

    def test_a_small_model(self):
        config = self.config(SMALL_MODEL)
        for batch in (0, 1, 2, 3, 15, 16, 17, 64, 65, 300):
            with self.subTest(batch=batch):
                self.check_against_the_reference(config, batch, {1, 17, batch})

    def test_a_small_model_with_everything(self):
        config = self.config(
            {
                **SMALL_MODEL,
                "model_type": "qwen3_next",
                "num_experts": 6,
                "num_experts_per_tok": 2,
                "shared_expert_intermediate_size": 40,
                "moe_latent_size": 24,
                "zero_expert_num": 1,
                "full_attention_interval": 4,
                "linear_num_key_heads": 2,
                "linear_key_head_dim": 128,
                "linear_num_value_heads": 2,
                "linear_value_head_dim": 128,
                "mamba_num_heads": 3,
                "mamba_head_dim": 8,
                "ssm_state_size": 16,
                "n_groups": 1,
                "kv_lora_rank": 20,
                "q_lora_rank": 36,
                "qk_rope_head_dim": 4,
                "hc_mult": 2,
                "hc_lowrank": 4,
                "index_topk": 8,
                "index_compress_ratio": 4,
                "index_n_heads": 2,
                "index_head_dim": 8,
                "o_groups": 2,
                "o_lora_rank": 6,
                "rope_scaling": {"mrope_interleaved": True},
            }
        )
        arguments = ["--lever", "q2", "--lever", "q2_mmq", "--lever", "rowwise"]
        arguments += ["--adapter-max-rank", 16, "--splitk", "auto"]
        launch = {"levers": reference.LEVERS, "adapter_max_rank": 16, "split_k": "auto"}
        for batch in (1, 3, 17, 70):
            with self.subTest(batch=batch):
                self.check_against_the_reference(config, batch, {1, 17, batch}, *arguments, **launch)

    def test_operations_of_qwen3_next(self):
        operations = self.run_json(
            QWEN3_NEXT, "--lever", "rowwise", "--max-batch-tokens", 17, "--tokens", 1, "--max-batch-size", 48
        )["operations"]
        sums = operations["checksum"]["buffers"]
        self.assertEqual([each["name"] for each in sums], list(CHECKSUMMED))
        # 17408 lanes of (lane + number of the buffer) % 251 - 100
        self.assertEqual(
            sums[1],
            {
                "name": "residual",
                "bytes": 69632,
                "sum": sum((lane + 1) % 251 - 100 for lane in range(17408)),
                "sum_of_squares": sum(((lane + 1) % 251 - 100) ** 2 for lane in range(17408)),
                "sum_of_magnitudes": sum(abs((lane + 1) % 251 - 100) for lane in range(17408)),
                "ok": True,
            },
        )
        self.assertEqual(
            operations["rowwise_slab"],
            {
                "absent": None,
                "takes": 36,
                "bytes_per_take": 67108864,  # (12288 + 4096) * 2048 * 2
                "bytes": 2415919104,
                "refused": "67108864 bytes (aligned to 2) wanted from slab 'ssm_rowwise_w_bf16' "
                "at 2415919104, its size is 2415919104",
                "ok": True,
            },
        )
        self.assertEqual(
            operations["decode_metadata"],
            {
                "rows": 48,
                "offsets": {
                    "positions": 0,
                    "seq_slot": 192,
                    "slots": 384,
                    "seq_lens": 768,
                    "unused": 960,
                    "block_table": 1152,
                },
                "bytes": 50496,  # 24 * 48 + 4 * 48 * 257
                "scratch_offset": 32768,
                "scratch_bytes": 201088,  # 32768 + 24 * 160 + 160 * 257 * 4, for verify steps
                "ok": True,
            },
        )
        self.assertEqual(
            operations["moe_fp8"],
            {
                "absent": None,
                # 17 rows: 170 pairs; 170 * 512 bytes, 170 * 4 scales, (2 + 513) * 32 items, 1 count
                "carvings": [{"rows": 1, "bytes": 136964}, {"rows": 17, "bytes": 221700}],
                "refused": "MoE FP8 scratch for 18 rows wanted, the arena is planned for 17 (max_batch_tokens)",
                "ok": True,
            },
        )
        prefill = operations["batched_prefill"]
        # 3 tokens each: 24 * 10 * 8 + 8 * 4096 + 96 + 192 + 128 + 40 + 32 + 64
        self.assertEqual((prefill["streams"], prefill["chunk"], prefill["bytes"]), (8, 3, 35240))

    def test_operations_that_there_are_none_of(self):
        small = self.config(SMALL_MODEL)
        operations = self.run_json(small, "--max-batch-tokens", 5)["operations"]
        self.assertEqual(operations["rowwise_slab"]["absent"], "needs lever_rowwise")
        self.assertEqual(
            operations["rowwise_slab"]["refused"],
            "2 bytes wanted from slab 'ssm_rowwise_w_bf16', which is absent",
        )
        self.assertEqual(operations["moe_fp8"]["absent"], "needs num_experts > 0")
        self.assertEqual(
            operations["moe_fp8"]["refused"],
            "MoE FP8 scratch for 1 rows wanted, but the model has no experts (num_experts = 0)",
        )
        operations = self.run_json(small, "--max-batch-tokens", 5, "--lever", "rowwise")["operations"]
        self.assertEqual(
            operations["rowwise_slab"]["absent"], "the model has no linear-attention layers"
        )

    def test_real_models(self):
        for config in CONFIGS:
            if config.name.startswith(("qwen3-next", "deepseek", "nemotron")):
                with self.subTest(config=config.name):
                    self.check_against_the_reference(config, 20, {1, 17, 20})

    def test_tokens(self):
        config = self.config(SMALL_MODEL)
        for tokens in (0, 5, 70, 100, 1000, 9223372036854775807):
            report = self.run_json(config, "--max-batch-tokens", 100, "--tokens", tokens)
            rows = [
                (each["pass"], each["first_token"], each["end_token"])
                for each in report["passes"]
                if "first_token" in each
            ]
            want = [("zero_rows", 0, tokens)]
            if tokens < 100:
                want.append(("zero_row_range", tokens, 64 if tokens < 64 else 100))
            self.assertEqual(rows, want)

    def test_table(self):
        table = self.good("run", self.config(SMALL_MODEL), "--max-batch-tokens", 100)
        self.assertTrue(table.endswith("\nall passes and operations verified\n"), table)
        for line in (
            "construction  ",
            "zero everything  ",
            "zero rows, T = 1  ",
            "zero rows, tokens [1, 64)  ",
            "zero rows, T = 17  ",
            "zero rows, tokens [17, 64)  ",
            "zero rows, T = 100  ",
            "zero prefill essentials  ",
            "release  ",
        ):
            self.assertRegex(table, f"(?m)^{line.translate({ord(c): chr(92) + c for c in '[)'})}.* ok$")
        self.assertIn("max_batch_tokens M = 100", table)
        for name in CHECKSUMMED:
            self.assertRegex(table, rf"(?m)^{name} +[0-9]+( +-?[0-9]+){{3}}  ok$")
        for line in (
            "checksum         ok      checksum of 16 buffers ok",
            "rowwise slab     ok      absent: needs lever_rowwise",
            "decode metadata  ok      32 rows, 263040 bytes at 32768 of scratch, which has ",
            "MoE FP8 scratch  ok      absent: needs num_experts > 0",
            "batched prefill  ok      8 x 13 tokens take 34280 bytes of scratch; 8 x ",
        ):
            self.assertIn("\n" + line, table)
        with_slab = self.good("run", QWEN3_NEXT, "--max-batch-tokens", 1, "--tokens", 1, "--lever", "rowwise")
        for line in (
            "rowwise slab     ok      36 takes of 67108864 bytes use up its 2415919104 bytes (2.2 GiB)\n",
            "MoE FP8 scratch  ok      136964 bytes for 1 row\n",
        ):
            self.assertIn("\n" + line, with_slab)


class Output(PlannerTest):
    def test_file(self):
        config = self.config(SMALL_MODEL)
        file = self.folder / "result.txt"
        for command in (["plan"], ["plan", "--format", "json"], ["run", "--format", "json"]):
            self.assertEqual(self.good(*command, config, "--output", file), "")
            text = file.read_text(encoding="utf-8")
            if command[0] == "plan":
                self.assertEqual(text, self.good(*command, config))
            else:
                self.assertTrue(json.loads(text)["ok"])

    def test_file_that_cannot_be_written(self):
        config = self.config(SMALL_MODEL)
        for command in ("plan", "run"):
            nowhere = self.folder / "none" / "result.txt"
            problem = f"{nowhere}: cannot be opened for writing"
            self.refused(command, config, "--output", nowhere, says=[problem])
            self.refused(command, config, "--output", self.folder, says=[str(self.folder), "directory"])
            self.refused(command, config, "--output", "", says=["--output"])
            if os.path.exists("/dev/full"):
                self.refused(command, config, "--output", "/dev/full", says=["/dev/full: cannot be written"])

    def test_bad_input_leaves_the_file_alone(self):
        file = self.folder / "result.txt"
        file.write_text("before", encoding="utf-8")
        self.refused("plan", self.folder / "none.json", "--output", file)
        self.assertEqual(file.read_text(encoding="utf-8"), "before")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.refused("plan", self.config(SMALL_MODEL), stdout=full, says=["standard output"])

    def test_help(self):
        for arguments in (["--help"], ["plan", "--help"], ["run", "-h"]):
            self.assertIn("Usage: stowage", self.good(*arguments))
        result = planner()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("Usage: stowage", result.stderr)


class Environment(PlannerTest):
    def levers(self, *arguments, **environment):
        plan = self.plan(self.config(SMALL_MODEL), *arguments, environment=environment)
        present = {buffer["name"] for buffer in plan["buffers"] if buffer["present"]}
        # The small model has no linear layers, so that only the inputs tell of rowwise.
        buffers = {"q2": "q2_dequant_scratch", "q2_mmq": "q2_act_q8"}
        self.assertEqual(
            [name for name in plan["inputs"]["levers"] if name in buffers],
            [name for name in buffers if buffers[name] in present],
        )
        return plan["inputs"]["levers"], plan["inputs"]["splitk"]

    def test_levers_of_the_environment(self):
        self.assertEqual(self.levers(), ([], "legacy"))
        self.assertEqual(self.levers(METRALE_GGUF_NATIVE_Q2="1"), (["q2"], "legacy"))
        self.assertEqual(self.levers(METRALE_GGUF_NATIVE_Q2_MMQ="1"), (["q2_mmq"], "legacy"))
        self.assertEqual(self.levers(METRALE_FP8_ROWWISE="1"), (["rowwise"], "legacy"))
        for text in ("", "0", "true", "yes", "1 ", "11"):
            self.assertEqual(self.levers(METRALE_GGUF_NATIVE_Q2=text), ([], "legacy"))

    def test_split_k_of_the_environment(self):
        policies = {"auto": "auto", " OFF ": "1", "7": "7", "what": "legacy", "": "legacy"}
        for text, policy in policies.items():
            self.assertEqual(self.levers(METRALE_ATTN_DECODE_SPLITK=text), ([], policy))

    def test_options_replace_the_environment(self):
        everything = {**dict.fromkeys(SWITCHES, "1"), SPLITK: "auto"}
        self.assertEqual(self.levers(**everything), (["q2", "q2_mmq", "rowwise"], "auto"))
        self.assertEqual(self.levers("--lever", "rowwise", **everything), (["rowwise"], "auto"))
        self.assertEqual(self.levers("--splitk", "3", **everything), (["q2", "q2_mmq", "rowwise"], "3"))
        self.assertEqual(self.levers("--splitk", "legacy", "--lever", "q2", **everything), (["q2"], "legacy"))

    def test_the_environment_equals_the_options(self):
        environment = {"METRALE_FP8_ROWWISE": "1", SPLITK: "auto"}
        by_options = self.plan(QWEN3_NEXT, "--lever", "rowwise", "--splitk", "auto")
        self.assertEqual(self.plan(QWEN3_NEXT, environment=environment), by_options)
        self.assertGreater(by_options["buffers"][45]["bytes"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], testRunner=unittest.TextTestRunner(stream=sys.stdout, verbosity=2))
