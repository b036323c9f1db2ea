#!/usr/bin/env python3
"""Writes tests/unit/forward_arena_table.inc, the table that the C++ forward arena is tested against.

    make_table.py            # writes the table
    make_table.py --check    # fails where the checked-in table is another one

The numbers are those of forward_arena.py beside this script, for the configs of examples/configs: every model with
M in {1, 17, 4096, 8193}, without levers and with all of them; S = 4096, B = 16, N = 32, 132 multiprocessors.
"""

import argparse
import pathlib
import sys

import forward_arena as reference

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE.parents[1] / "examples" / "configs"
TABLE = HERE.parent / "unit" / "forward_arena_table.inc"

# A member of stowage::llm::model_config, in its order, and the name it has in the reference.
MEMBERS = (
    ("vocab_size", "vocab"),
    ("hidden_size", "hidden"),
    ("intermediate_size", "intermediate"),
    ("num_hidden_layers", "layers"),
    ("num_attention_heads", "heads"),
    ("num_key_value_heads", "kv_heads"),
    ("head_dim", "head_dim"),
    ("mamba_num_heads", "mamba_num_heads"),
    ("mamba_head_dim", "mamba_head_dim"),
    ("n_groups", "n_groups"),
    ("ssm_state_size", "ssm_state_size"),
    ("linear_num_key_heads", "linear_num_key_heads"),
    ("linear_key_head_dim", "linear_key_head_dim"),
    ("linear_num_value_heads", "linear_num_value_heads"),
    ("linear_value_head_dim", "linear_value_head_dim"),
    ("num_experts", "num_experts"),
    ("num_experts_per_tok", "top_k"),
    ("moe_intermediate_size", "moe_intermediate"),
    ("shared_expert_intermediate_size", "shared_expert_intermediate"),
    ("moe_latent_size", "moe_latent_size"),
    ("zero_expert_num", "zero_expert_num"),
    ("kv_lora_rank", "kv_lora_rank"),
    ("q_lora_rank", "q_lora_rank"),
    ("qk_rope_head_dim", "qk_rope_head_dim"),
    ("o_groups", "o_groups"),
    ("o_lora_rank", "o_lora_rank"),
    ("hc_mult", "hc_mult"),
    ("hc_lowrank", "hc_lowrank"),
    ("index_topk", "index_topk"),
    ("index_compress_ratio", "index_compress_ratio"),
    ("index_n_heads", "index_n_heads"),
    ("index_head_dim", "index_head_dim"),
    ("num_ssm_layers", "ssm_layers"),
    ("attn_gated", "attn_gated"),
    ("mrope_interleaved", "mrope"),
)


def initializer(model):
    """The members that are not zero, as designated initializers."""
    assert {name for _, name in MEMBERS} == set(model), "a member is missing here"
    given = []
    for member, name in MEMBERS:
        value = model[name]
        if value:
            given.append(f".{member} = {'true' if value is True else value}")
    return ", ".join(given)


def wrapped(numbers, width=108):
    """Numbers with commas, in lines."""
    lines = [""]
    for number in numbers:
        text = f"{number},"
        if lines[-1] and len(lines[-1]) + 1 + len(text) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + text
    return "\n".join(lines)


def table():
    paths = sorted(CONFIGS.glob("*.json"))
    models = [(path.stem, reference.load_model(path)) for path in paths]
    lines = ["// Written by tests/reference/make_table.py; do not edit.", ""]
    lines.append("const named_model models[] = {")
    for name, model in models:
        lines.append(f'{{"{name}", {{{initializer(model)}}}}},')
    lines += ["};", ""]
    lines.append("// Number of the model, M, levers, then total, bytes of the row pass at T = 1 and T = 17, and the 46 sizes.")
    lines.append("const std::uint64_t expected[] = {")
    for index, (_, model) in enumerate(models):
        for tokens in reference.TABLE_TOKENS:
            for levers in (False, True):
                inputs = reference.make_inputs(
                    model,
                    max_batch_tokens=tokens,
                    adapter_max_rank=reference.ALL_LEVERS_ADAPTER_RANK if levers else 0,
                    levers=reference.LEVERS if levers else (),
                    split_k=reference.ALL_LEVERS_SPLIT_K if levers else "legacy",
                )
                sizes = [buffer["bytes"] for buffer in reference.compute(inputs)]
                cleared = [
                    sum(buffer["zero_bytes"] for buffer in reference.compute(inputs, count))
                    for count in reference.TABLE_ZERO_TOKENS
                ]
                lines.append(wrapped([index, tokens, int(levers), sum(sizes), *cleared, *sizes]))
    lines += ["};", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Writes the table of the forward arena's sizes.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table is out of date")
    arguments = parser.parse_args()
    text = table()
    if not arguments.check:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if TABLE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TABLE.name} is out of date: run make_table.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
