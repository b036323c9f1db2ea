#!/usr/bin/env python3
"""Forward arena: an independent reference for its 46 buffer sizes.

This is a second implementation of the forward arena, written from its page of
facts alone and sharing nothing with the C++ library.  It uses the Python 3
standard library and plain integer arithmetic, one formula a function, so that
each formula can be read beside the page.  The C++ layout is tested against
what this script prints.

One model, as JSON (bytes of every buffer; with --tokens also the bytes that
the "zero the first T rows" pass clears):

    forward_arena.py --config FILE --max-batch-tokens 4096 --tokens 17

Every model of a folder, as CSV, for M in {1, 17, 4096, 8193}:

    forward_arena.py --table --configs DIR                 # no levers, legacy split-K
    forward_arena.py --table --configs DIR --levers all    # levers, rank 16, auto split-K

The literal anchor values, checked:

    forward_arena.py --self-test

`--levers all` arms q2, q2_mmq and rowwise and, where they are not given, sets
the adapter rank to 16 and the split-K spelling to `auto`.

What the row pass clears, for T tokens of a capacity of M:
  * never-cleared buffers: 0 bytes; full buffers: the whole buffer, for any T;
  * row-wise buffers: nothing at T = 0, the whole buffer at T >= M, and between
    the two the bytes that the buffer's own size formula gives for T in place
    of M (padding, minima and floors follow), never more than the buffer;
  * ssm_qkvz alone holds a region at a fixed place that is not byte 0: V starts
    at row M of the K/V alternative.  There the cleared bytes are the union of
    the byte ranges of all alternatives.

The buffers are in declaration order.  A buffer is present when its size is
above 0; a 256-byte placeholder is therefore present.
"""

import argparse
import csv
import json
import os
import re
import sys
from types import SimpleNamespace

# Element widths, in bytes.
I8 = FP8 = 1
BF16 = 2
F32 = U32 = I32 = 4
U64 = 8

PLACEHOLDER = 256
FLOOR = 256
MIB = 1024 * 1024

MAX_SERVE_BATCH = 128

LEVERS = ("q2", "q2_mmq", "rowwise")
ALL_LEVERS_ADAPTER_RANK = 16
ALL_LEVERS_SPLIT_K = "auto"

TABLE_TOKENS = (1, 17, 4096, 8193)
TABLE_ZERO_TOKENS = (1, 17)


# --- Arithmetic ---------------------------------------------------------------


def cdiv(a, b):
    return -(-a // b)


def ceil_to(x, multiple):
    return cdiv(x, multiple) * multiple


def ceil8(x):
    return ceil_to(x, 8)


def ceil16(x):
    return ceil_to(x, 16)


def ceil64(x):
    return ceil_to(x, 64)


def ceil256(x):
    return ceil_to(x, 256)


def clamp(x, low, high):
    return max(low, min(x, high))


# --- The model config -----------------------------------------------------------


# Names of one field, the first of which counts.
ALIASES = (
    ("head_dim", "attention_head_dim"),
    ("num_experts", "n_routed_experts", "num_local_experts"),
    ("num_experts_per_tok", "experts_per_token"),
    ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"),
    ("attn_output_gate", "attn_gated"),
)


def merge_text_config(raw):
    """The outer object with the fields of a nested `text_config` over it.

    A null field counts as absent, so it neither stands nor overrides. A nested field replaces an outer one of
    another name for the same thing.
    """
    merged = {}
    nested = raw.get("text_config")
    for layer in (raw, nested if isinstance(nested, dict) else {}):
        there = {key: value for key, value in layer.items() if value is not None and key != "text_config"}
        for names in ALIASES:
            if any(name in there for name in names):
                for name in names:
                    merged.pop(name, None)
        merged.update(there)
    return merged


def first_of(cfg, *keys):
    """The value of the first of these keys that the config has, else None."""
    for key in keys:
        if key in cfg:
            return cfg[key]
    return None


def count_of(cfg, *keys, absent=0):
    """A non-negative integer field under the first of its aliases."""
    value = first_of(cfg, *keys)
    if value is None:
        return absent
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{'|'.join(keys)}: expected a non-negative integer, got {value!r}")
    return value


def count_ssm_layers(cfg, layers):
    layer_types = cfg.get("layer_types")
    if layer_types is not None:
        return sum(1 for kind in layer_types if kind == "linear_attention")
    interval = count_of(cfg, "full_attention_interval")
    return layers - layers // interval if interval > 0 else 0


def read_model(raw):
    """A Hugging Face `config.json` object as a dict of arena inputs."""
    cfg = merge_text_config(raw)

    hidden = count_of(cfg, "hidden_size")
    intermediate = count_of(cfg, "intermediate_size")
    layers = count_of(cfg, "num_hidden_layers")
    heads = count_of(cfg, "num_attention_heads")
    num_experts = count_of(cfg, "num_experts", "n_routed_experts", "num_local_experts")
    moe = num_experts > 0

    gate = first_of(cfg, "attn_output_gate", "attn_gated")
    if gate is None:
        gate = str(cfg.get("model_type", "")).startswith("qwen3_next")

    rope_scaling = cfg.get("rope_scaling")
    mrope = bool(cfg.get("mrope_interleaved"))
    if isinstance(rope_scaling, dict) and rope_scaling.get("mrope_interleaved"):
        mrope = True

    return {
        "hidden": hidden,
        "intermediate": intermediate,
        "layers": layers,
        "vocab": count_of(cfg, "vocab_size"),
        "heads": heads,
        "kv_heads": count_of(cfg, "num_key_value_heads", absent=heads),
        "head_dim": count_of(
            cfg, "head_dim", "attention_head_dim", absent=hidden // heads if heads > 0 else 0
        ),
        "attn_gated": bool(gate),
        "mrope": mrope,
        # Mixture of experts
        "num_experts": num_experts,
        "top_k": count_of(cfg, "num_experts_per_tok", "experts_per_token") if moe else 0,
        "moe_intermediate": count_of(
            cfg, "moe_intermediate_size", absent=intermediate if moe else 0
        ),
        "shared_expert_intermediate": count_of(
            cfg, "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"
        ),
        "zero_expert_num": count_of(cfg, "zero_expert_num"),
        "moe_latent_size": count_of(cfg, "moe_latent_size"),
        # Mamba-2
        "mamba_num_heads": count_of(cfg, "mamba_num_heads"),
        "mamba_head_dim": count_of(cfg, "mamba_head_dim"),
        "n_groups": count_of(cfg, "n_groups"),
        "ssm_state_size": count_of(cfg, "ssm_state_size"),
        # Gated delta net
        "linear_num_key_heads": count_of(cfg, "linear_num_key_heads"),
        "linear_num_value_heads": count_of(cfg, "linear_num_value_heads"),
        "linear_key_head_dim": count_of(cfg, "linear_key_head_dim"),
        "linear_value_head_dim": count_of(cfg, "linear_value_head_dim"),
        "ssm_layers": count_ssm_layers(cfg, layers),
        # Multi-head latent attention
        "kv_lora_rank": count_of(cfg, "kv_lora_rank"),
        "q_lora_rank": count_of(cfg, "q_lora_rank"),
        "qk_rope_head_dim": count_of(cfg, "qk_rope_head_dim"),
        "o_groups": count_of(cfg, "o_groups"),
        "o_lora_rank": count_of(cfg, "o_lora_rank"),
        # Hyper-connections
        "hc_mult": count_of(cfg, "hc_mult"),
        "hc_lowrank": count_of(cfg, "hc_lowrank"),
        # Sparse attention index
        "index_n_heads": count_of(cfg, "index_n_heads"),
        "index_head_dim": count_of(cfg, "index_head_dim"),
        "index_topk": count_of(cfg, "index_topk"),
        "index_compress_ratio": count_of(cfg, "index_compress_ratio"),
    }


# --- Split-K --------------------------------------------------------------------


def parse_split_k(spelling, declared=("legacy", 0)):
    """A spelling as (policy, pinned count); an unknown one keeps `declared`."""
    text = spelling.strip().lower()
    if text == "legacy":
        return ("legacy", 0)
    if text == "auto":
        return ("auto", 0)
    if text in ("0", "off", "false", "no"):
        return ("pinned", 1)
    if re.fullmatch("[0-9]+", text):
        return ("pinned", clamp(int(text), 1, 16))
    return declared


# --- Inputs of one arena ----------------------------------------------------------


def make_inputs(
    model,
    max_batch_tokens=1,
    max_seq_len=4096,
    kv_block_size=16,
    max_batch_size=32,
    sm_count=132,
    adapter_max_rank=0,
    levers=(),
    split_k="legacy",
):
    """The model's dict joined with the launch parameters and the levers."""
    launch = {
        "max_batch_tokens": max_batch_tokens,
        "max_seq_len": max_seq_len,
        "kv_block_size": kv_block_size,
        "max_batch_size": max_batch_size,
        "sm_count": sm_count,
        "adapter_max_rank": adapter_max_rank,
    }
    for name, value in launch.items():
        if value < 0:
            raise ValueError(f"{name} must not be negative, got {value}")
    if max_batch_size > MAX_SERVE_BATCH:
        raise ValueError(
            f"max_batch_size {max_batch_size} is above the serve batch limit {MAX_SERVE_BATCH}"
        )
    unknown = set(levers) - set(LEVERS)
    if unknown:
        raise ValueError(f"unknown levers: {', '.join(sorted(unknown))}")

    policy, pinned = parse_split_k(split_k)
    inputs = dict(model)
    inputs.update(launch)
    for lever in LEVERS:
        inputs[lever] = lever in levers
    inputs["split_k_policy"] = policy
    inputs["split_k_pinned"] = pinned
    return inputs


def derive(inputs):
    """The inputs and every derived symbol of the page, as attributes."""
    a = SimpleNamespace(**inputs)
    a.M = a.max_batch_tokens
    a.S = a.max_seq_len
    a.B = a.kv_block_size
    a.N = a.max_batch_size
    a.R = max(32, a.N)
    a.q_mul = 2 if a.attn_gated else 1
    a.qkv_width = (a.heads * a.q_mul + 2 * a.kv_heads) * a.head_dim
    a.d_inner = a.mamba_num_heads * a.mamba_head_dim
    a.d_xbc = a.d_inner + 2 * a.n_groups * a.ssm_state_size
    a.in_proj = a.d_inner + a.d_xbc + a.mamba_num_heads
    a.value_dim = a.linear_num_value_heads * a.linear_value_head_dim
    a.qkvz = 2 * a.linear_num_key_heads * a.linear_key_head_dim + 2 * a.value_dim
    a.ba = 2 * a.linear_num_value_heads
    a.max_dim = max(a.hidden, a.d_inner)
    a.moe = a.num_experts > 0
    a.mla = a.kv_lora_rank > 0
    a.mla_width = a.kv_lora_rank + a.qk_rope_head_dim
    a.moe_in = a.moe_latent_size if a.moe_latent_size > 0 else a.hidden
    a.proj_k = max(a.hidden, a.heads * a.head_dim, a.d_inner, a.value_dim)
    a.ffn_k = max(a.hidden, a.intermediate)
    a.blocks = a.S // a.B + 1 if a.B > 0 else 256
    a.streams = 3 if a.mrope else 1
    return a


# --- Size formulas, in declaration order --------------------------------------------
#
# Each takes the derived inputs `a` and a token count `t` and gives bytes.  The
# size of a buffer is its formula at t = M.


def hidden_states(a, t):
    return BF16 * t * a.hidden


def residual(a, t):
    return BF16 * t * a.hidden


def norm_output(a, t):
    return BF16 * t * a.max_dim


def qkv_output(a, t):
    return BF16 * ceil16(t) * a.qkv_width


def attn_output(a, t):
    size = max(BF16 * t * a.heads * a.head_dim, BF16 * t * a.d_inner)
    if a.mla:
        size = max(size, BF16 * t * a.heads * a.mla_width)
    return size


def gate_logits(a, t):
    if not a.moe:
        return PLACEHOLDER
    return BF16 * t * (a.num_experts + a.zero_expert_num)


def gate_logits_f32(a, t):
    if not a.moe:
        return PLACEHOLDER
    return F32 * t * (a.num_experts + a.zero_expert_num)


def moe_router_in_f32(a, t):
    if not a.moe:
        return PLACEHOLDER
    return F32 * t * a.hidden


def moe_output(a, t):
    return BF16 * ceil16(t) * a.hidden


def logits(a, t):
    return BF16 * min(t, max(160, a.R + 1)) * a.vocab


def ssm_qkvz(a, t):
    return max(
        FLOOR,
        BF16 * ceil16(t) * a.qkvz,
        BF16 * t * a.in_proj,
        BF16 * (t + ceil16(t)) * a.kv_heads * a.head_dim,
        BF16 * t * a.shared_expert_intermediate,
    )


def ssm_ba(a, t):
    size = max(FLOOR, BF16 * t * a.ba, BF16 * t * a.moe_latent_size)
    if a.mla:
        size = max(size, BF16 * t * a.qk_rope_head_dim, BF16 * t * a.q_lora_rank)
    return size


def ssm_deinterleaved(a, t):
    size = max(
        FLOOR,
        BF16 * ceil16(t) * a.qkvz,
        BF16 * t * a.d_xbc,
        BF16 * t * a.heads * a.head_dim,
    )
    if a.mla:
        size = max(size, BF16 * t * a.heads * a.mla_width)
    return size


def ssm_gates(a, t):
    return max(FLOOR, F32 * t * 2 * a.linear_num_value_heads)


def ssm_conv_out_f32(a, t):
    size = max(FLOOR, F32 * t * a.qkvz)
    if a.mla:
        size = max(size, BF16 * t * a.heads * a.qk_rope_head_dim)
    return size


def decode_metadata_bytes(a):
    """R rows: positions, seq_slot, slots, seq_lens, 4R unused, block table."""
    return 24 * a.R + 4 * a.R * a.blocks


def scratch_prefill(a, t):
    end = U32 * t * a.top_k  # routing indices
    end += F32 * t * a.top_k  # routing weights
    end += U32 * t * a.streams  # positions, one stream or T, H, W
    end = ceil_to(end, 8) + U64 * t  # slots
    end = ceil_to(end, 4) + I32 * a.blocks  # block table
    end = ceil_to(end, 4) + I32  # seq_len
    return end


def scratch_decode(a):
    return 32768 + max(24 * 160 + 160 * a.blocks * 4, decode_metadata_bytes(a))


def scratch_batched_prefill(a, t):
    n = 8
    chunk = max(cdiv(t, 8), 1)
    tot = n * chunk
    return (
        ceil64(tot * a.top_k * 8)
        + n * max(16 * chunk + 64, 4096)
        + a.streams * ceil8(4 * tot)
        + ceil8(8 * tot)
        + 2 * ceil8(8 * n)
        + ceil8(4 * (n + 1))
        + ceil8(4 * n)
        + 8 * n
    )


def scratch(a, t):
    return max(65536, scratch_prefill(a, t), scratch_decode(a), scratch_batched_prefill(a, t))


def ssd_scratch(a, t):
    if not (a.mamba_num_heads > 0 and a.ssm_state_size > 0):
        return 0
    nc = cdiv(t, 64) + 1
    dt = F32 * a.mamba_num_heads * nc * 64
    da_cumsum = dt
    cb = F32 * nc * max(a.n_groups, 1) * 64 * 64
    return dt + da_cumsum + cb


def token_ids(a, t):
    return max(FLOOR, U32 * t)


def expert_rows(t):
    """K of the page."""
    return ceil16(max(t, 3))


def expert_up_or_gate_out(a, t):
    width = max(a.top_k * a.moe_intermediate, a.intermediate) if a.moe else a.intermediate
    return BF16 * expert_rows(t) * width


def expert_down_out(a, t):
    width = a.top_k * a.moe_in if a.moe else a.hidden
    return BF16 * expert_rows(t) * width


def gdn_fla_scratch(a, t):
    nv, kd, vd = a.linear_num_value_heads, a.linear_key_head_dim, a.linear_value_head_dim
    if not (nv > 0 and kd == 128 and vd == 128):
        return 0
    tiles = (cdiv(t, 64) + 16) * nv
    w = BF16 * tiles * 64 * kd
    u = BF16 * tiles * 64 * vd
    s = BF16 * tiles * kd * vd
    uc = BF16 * tiles * 64 * vd
    gc = F32 * tiles * 64
    return w + u + s + uc + gc


def ffn_act_q8(a, t):
    if a.moe:
        return 0
    return 4 * t * ceil256(a.ffn_k) + MIB


def ffn_act_a(a, t):
    if a.moe:
        return 0
    return max(I8 * ceil16(t) * a.ffn_k, t * (a.ffn_k // 2), FP8 * t * a.ffn_k)


def ffn_act_scale(a, t):
    if a.moe:
        return 0
    return F32 * ceil16(t) * (a.ffn_k // 32)


def ffn_act_scale_kmajor(a, t):
    if a.moe:
        return 0
    return F32 * (a.ffn_k // 128) * ceil16(t)


def ffn_gate_up_fused(a, t):
    if a.moe:
        return 0
    return BF16 * 16 * 2 * a.intermediate


def fp8_act(a, t):
    return FP8 * ceil16(t) * a.proj_k


def fp8_act_scale(a, t):
    return F32 * ceil16(t) * cdiv(a.proj_k, 128)


def fp8_act_scale_kmajor(a, t):
    return F32 * cdiv(a.proj_k, 128) * ceil16(t)


def moe_fp8_scratch(a, t):
    if not a.moe:
        return 0
    shared_k = max(a.hidden, a.shared_expert_intermediate)
    expanded = t * a.top_k
    activation = FP8 * max(t * shared_k, expanded * a.moe_intermediate)
    scales = F32 * max(t * cdiv(shared_k, 128), expanded * cdiv(a.moe_intermediate, 128))
    items = (cdiv(expanded, 128) + a.num_experts + 1) * cdiv(max(a.hidden, a.moe_intermediate), 64)
    worklist = 8 * items
    end = activation
    end = ceil256(end) + scales
    end = ceil256(end) + worklist
    end = ceil256(end) + U32  # total_tiles
    return end


def q2_dequant_scratch(a, t):
    if not a.q2:
        return 0
    rows = max(
        a.intermediate,
        a.qkvz,
        a.in_proj,
        a.heads * a.q_mul * a.head_dim,
        2 * a.kv_heads * a.head_dim,
    )
    return BF16 * rows * a.hidden


def q2_act_q8(a, t):
    if not a.q2_mmq:
        return 0
    return 4 * t * ceil256(max(a.hidden, a.intermediate, a.heads * a.head_dim)) + MIB


def splitk_slots(a):
    if a.split_k_policy == "legacy":
        return max(a.sm_count, 1)
    if a.heads == 0:
        return 0
    if a.split_k_policy == "auto":
        splits = clamp(cdiv(2 * a.sm_count, a.heads), 1, 16)
    else:
        splits = clamp(a.split_k_pinned, 1, 16)
    return a.R * a.heads * splits


def splitk_workspace(a, t):
    return F32 * splitk_slots(a) * (a.head_dim + 2)


def o_latent(a, t):
    return max(FLOOR, BF16 * t * a.o_groups * a.o_lora_rank)


def norm_unit_w(a, t):
    return BF16 * a.max_dim


def hc_streams(a, t):
    if not a.hc_mult > 0:
        return PLACEHOLDER
    return F32 * t * a.hc_mult * a.hidden


def hc_post(a, t):
    if not a.hc_mult > 0:
        return PLACEHOLDER
    return max(FLOOR, F32 * t * a.hc_mult)


def hc_comb(a, t):
    if not a.hc_mult > 0:
        return PLACEHOLDER
    return max(FLOOR, F32 * t * a.hc_mult * a.hc_mult)


def hc_lowrank_scratch(a, t):
    if not (a.hc_mult > 0 and a.hc_lowrank > 0):
        return PLACEHOLDER
    td = min(t, 64)
    decode = F32 * td * a.hc_mult * a.hidden + F32 * td * a.hc_lowrank
    ts = min(t, 2048)
    normed = BF16 * ts * a.hc_mult * a.hidden
    up = normed
    low = BF16 * ts * a.hc_lowrank
    inj = BF16 * ts * a.hc_mult
    return max(decode, normed + up + low + inj)


def qsa_select_scratch(a, t):
    if not (a.index_topk > 0 and a.index_compress_ratio > 0):
        return PLACEHOLDER
    qk = BF16 * 2048 * (a.index_n_heads + 1) * a.index_head_dim
    q_post = F32 * 2048 * a.index_n_heads * a.index_head_dim
    scores = F32 * 2048 * cdiv(a.S, a.index_compress_ratio)
    lists = I32 * 2048 * (a.index_topk // a.index_compress_ratio)
    return qk + q_post + scores + lists


def lora_xa(a, t):
    if not a.adapter_max_rank > 0:
        return 0
    return BF16 * t * a.adapter_max_rank


def lora_delta(a, t):
    if not a.adapter_max_rank > 0:
        return 0
    return BF16 * t * max(a.hidden, a.intermediate, a.q_mul * a.heads * a.head_dim)


def lora_hact(a, t):
    if not a.adapter_max_rank > 0:
        return 0
    return BF16 * t * a.intermediate


def lora_seq_slot(a, t):
    if not a.adapter_max_rank > 0:
        return 0
    return I32 * t


def ssm_rowwise_w_bf16(a, t):
    if not a.rowwise:
        return 0
    return a.ssm_layers * (BF16 * a.qkvz * a.hidden + BF16 * a.hidden * a.value_dim)


# --- The 46 buffers ---------------------------------------------------------------
#
# Tags: R row-wise, F full, N never; P prefill essentials; C checksum.

BUFFERS = (
    ("hidden_states", hidden_states, "RPC"),
    ("residual", residual, "RPC"),
    ("norm_output", norm_output, "RC"),
    ("qkv_output", qkv_output, "RC"),
    ("attn_output", attn_output, "RC"),
    ("gate_logits", gate_logits, "RPC"),
    ("gate_logits_f32", gate_logits_f32, "N"),
    ("moe_router_in_f32", moe_router_in_f32, "N"),
    ("moe_output", moe_output, "RPC"),
    ("logits", logits, "F"),
    ("ssm_qkvz", ssm_qkvz, "RC"),
    ("ssm_ba", ssm_ba, "RC"),
    ("ssm_deinterleaved", ssm_deinterleaved, "RC"),
    ("ssm_gates", ssm_gates, "RC"),
    ("ssm_conv_out_f32", ssm_conv_out_f32, "RC"),
    ("scratch", scratch, "F"),
    ("ssd_scratch", ssd_scratch, "N"),
    ("token_ids", token_ids, "N"),
    ("expert_gate_out", expert_up_or_gate_out, "RPC"),
    ("expert_up_out", expert_up_or_gate_out, "RPC"),
    ("expert_down_out", expert_down_out, "RPC"),
    ("gdn_fla_scratch", gdn_fla_scratch, "N"),
    ("ffn_act_q8", ffn_act_q8, "N"),
    ("ffn_act_a", ffn_act_a, "N"),
    ("ffn_act_scale", ffn_act_scale, "N"),
    ("ffn_act_scale_kmajor", ffn_act_scale_kmajor, "N"),
    ("ffn_gate_up_fused", ffn_gate_up_fused, "N"),
    ("fp8_act", fp8_act, "N"),
    ("fp8_act_scale", fp8_act_scale, "N"),
    ("fp8_act_scale_kmajor", fp8_act_scale_kmajor, "N"),
    ("moe_fp8_scratch", moe_fp8_scratch, "N"),
    ("q2_dequant_scratch", q2_dequant_scratch, "N"),
    ("q2_act_q8", q2_act_q8, "N"),
    ("splitk_workspace", splitk_workspace, "FC"),
    ("o_latent", o_latent, "N"),
    ("norm_unit_w", norm_unit_w, "N"),
    ("hc_streams", hc_streams, "N"),
    ("hc_post", hc_post, "N"),
    ("hc_comb", hc_comb, "N"),
    ("hc_lowrank_scratch", hc_lowrank_scratch, "N"),
    ("qsa_select_scratch", qsa_select_scratch, "N"),
    ("lora_xa", lora_xa, "N"),
    ("lora_delta", lora_delta, "N"),
    ("lora_hact", lora_hact, "N"),
    ("lora_seq_slot", lora_seq_slot, "N"),
    ("ssm_rowwise_w_bf16", ssm_rowwise_w_bf16, "N"),
)

POLICY_NAMES = {"R": "rows", "F": "full", "N": "never"}

assert len(BUFFERS) == 46
assert len({name for name, _, _ in BUFFERS}) == 46
assert sum(1 for _, _, tags in BUFFERS if tags[0] in "RF") == 18
assert sum(1 for _, _, tags in BUFFERS if "P" in tags) == 7
assert all(tags[0] in POLICY_NAMES for _, _, tags in BUFFERS)


# --- The row pass -----------------------------------------------------------------


def union_bytes(ranges, limit):
    """How many bytes the half-open ranges cover together, within [0, limit)."""
    covered = 0
    reached = 0
    for begin, end in sorted(ranges):
        begin, end = max(begin, reached), min(end, limit)
        if end > begin:
            covered += end - begin
            reached = end
    return covered


def ssm_qkvz_row_ranges(a, t):
    """What the first t tokens occupy in ssm_qkvz, one range a region."""
    row = BF16 * a.kv_heads * a.head_dim
    v_begin = a.M * row
    return [
        (0, FLOOR),
        (0, BF16 * ceil16(t) * a.qkvz),
        (0, BF16 * t * a.in_proj),
        (0, ceil16(t) * row),
        (v_begin, v_begin + ceil16(t) * row),
        (0, BF16 * t * a.shared_expert_intermediate),
    ]


def zero_bytes(a, name, formula, tags, tokens):
    size = formula(a, a.M)
    policy = tags[0]
    if policy == "N":
        return 0
    if policy == "F":
        return size
    if tokens == 0:
        return 0
    if tokens >= a.M:
        return size
    if name == "ssm_qkvz":
        return union_bytes(ssm_qkvz_row_ranges(a, tokens), size)
    return min(formula(a, tokens), size)


# --- Reports ----------------------------------------------------------------------


def compute(inputs, tokens=None):
    """Every buffer of the arena, with the row pass when `tokens` is given."""
    if tokens is not None and tokens < 0:
        raise ValueError(f"tokens must not be negative, got {tokens}")
    a = derive(inputs)
    buffers = []
    for name, formula, tags in BUFFERS:
        size = formula(a, a.M)
        buffer = {
            "name": name,
            "bytes": size,
            "present": size > 0,
            "zero": POLICY_NAMES[tags[0]],
            "prefill": "P" in tags,
            "checksum": "C" in tags,
        }
        if tokens is not None:
            buffer["zero_bytes"] = zero_bytes(a, name, formula, tags, tokens)
        buffers.append(buffer)
    return buffers


def report(inputs, tokens=None):
    buffers = compute(inputs, tokens)
    out = {"inputs": dict(inputs), "buffers": buffers}
    out["total_bytes"] = sum(b["bytes"] for b in buffers)
    if tokens is not None:
        out["inputs"]["tokens"] = tokens
        out["zero_rows_bytes"] = sum(b["zero_bytes"] for b in buffers)
    return out


def load_model(path):
    with open(path, encoding="utf-8") as file:
        return read_model(json.load(file))


def write_table(folder, launch, out):
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["config", "max_batch_tokens", "buffer", "bytes"]
        + [f"zero_bytes_t{tokens}" for tokens in TABLE_ZERO_TOKENS]
    )
    names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    if not names:
        raise ValueError(f"no .json config in {folder}")
    for name in names:
        model = load_model(os.path.join(folder, name))
        for m in TABLE_TOKENS:
            inputs = make_inputs(model, max_batch_tokens=m, **launch)
            passes = [compute(inputs, tokens) for tokens in TABLE_ZERO_TOKENS]
            for rows in zip(*passes):
                writer.writerow(
                    [name[: -len(".json")], m, rows[0]["name"], rows[0]["bytes"]]
                    + [row["zero_bytes"] for row in rows]
                )


# --- Self-test --------------------------------------------------------------------

QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "full_attention_interval": 4,
}

DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "vocab_size": 129280,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
}

NEMOTRON_H = {
    "model_type": "nemotron_h",
    "vocab_size": 131072,
    "hidden_size": 4096,
    "intermediate_size": 21504,
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "attention_head_dim": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
}

MIXTRAL = {
    "model_type": "mixtral",
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}


def self_test():
    """Literal values; the first group is the page's own, the rest are by hand."""

    def check(what, got, want):
        assert got == want, f"{what}: got {got}, want {want}"

    def check_buffers(raw, want, field="bytes", tokens=None, **launch):
        got = {b["name"]: b[field] for b in compute(make_inputs(read_model(raw), **launch), tokens)}
        for name, value in want.items():
            check(f"{raw.get('model_type')} {name} {field} ({launch}, tokens={tokens})",
                  got[name], value)

    def check_fails(what, call):
        try:
            call()
        except ValueError:
            return
        raise AssertionError(f"{what}: was not refused")

    # The anchor values of the page: M=1, S=4096, B=16, N=32.
    check_buffers(QWEN3_NEXT, {
        "hidden_states": 4096,
        "qkv_output": 294912,
        "attn_output": 8192,
        "gate_logits": 1024,
        "logits": 303872,
        "ssm_qkvz": 393216,
        "ssm_ba": 256,
        "ssm_deinterleaved": 393216,
        "ssm_gates": 256,
    })
    # The rest of that arena.
    check_buffers(QWEN3_NEXT, {
        "residual": 4096,
        "norm_output": 4096,
        "gate_logits_f32": 2048,
        "moe_router_in_f32": 8192,
        "moe_output": 65536,
        "ssm_conv_out_f32": 49152,
        "scratch": 201088,
        "ssd_scratch": 0,
        "token_ids": 256,
        "expert_gate_out": 180224,
        "expert_up_out": 180224,
        "expert_down_out": 655360,
        "gdn_fla_scratch": 44703744,
        "ffn_act_q8": 0,
        "ffn_act_a": 0,
        "ffn_act_scale": 0,
        "ffn_act_scale_kmajor": 0,
        "ffn_gate_up_fused": 0,
        "fp8_act": 65536,
        "fp8_act_scale": 2048,
        "fp8_act_scale_kmajor": 2048,
        "moe_fp8_scratch": 136964,
        "q2_dequant_scratch": 0,
        "q2_act_q8": 0,
        "splitk_workspace": 136224,
        "o_latent": 256,
        "norm_unit_w": 4096,
        "hc_streams": 256,
        "hc_post": 256,
        "hc_comb": 256,
        "hc_lowrank_scratch": 256,
        "qsa_select_scratch": 256,
        "lora_xa": 0,
        "lora_delta": 0,
        "lora_hact": 0,
        "lora_seq_slot": 0,
        "ssm_rowwise_w_bf16": 0,
    })
    check_buffers(QWEN3_NEXT, {
        "q2_dequant_scratch": 50331648,
        "q2_act_q8": 1071104,
        "splitk_workspace": 8454144,
        "lora_xa": 32,
        "lora_delta": 16384,
        "lora_hact": 11264,
        "lora_seq_slot": 4,
        "ssm_rowwise_w_bf16": 2415919104,
    }, levers=LEVERS, adapter_max_rank=16, split_k="auto")

    # The row pass at the capacity the page speaks of, M = 8193.
    big = {"max_batch_tokens": 8193}
    check_buffers(QWEN3_NEXT, {"ssm_qkvz": 201719808, "logits": 48619520}, **big)
    zero = {"field": "zero_bytes"}
    check_buffers(QWEN3_NEXT, {
        "hidden_states": 4096,
        "qkv_output": 294912,
        "ssm_qkvz": 393216 + 16384,
        "ssm_ba": 256,
        "ssm_gates": 256,
        "expert_gate_out": 180224,
        "logits": 48619520,
        "scratch": 886376,
        "splitk_workspace": 136224,
        "gate_logits_f32": 0,
    }, tokens=1, **zero, **big)
    check_buffers(QWEN3_NEXT, {
        "hidden_states": 69632,
        "qkv_output": 589824,
        "ssm_qkvz": 786432 + 32768,
        "ssm_ba": 2176,
        "expert_down_out": 1310720,
    }, tokens=17, **zero, **big)
    check_buffers(QWEN3_NEXT, {"hidden_states": 0, "ssm_qkvz": 0, "ssm_ba": 0, "logits": 48619520},
                  tokens=0, **zero, **big)
    for tokens in (8193, 9000):
        check_buffers(QWEN3_NEXT, {"ssm_qkvz": 201719808, "hidden_states": 33558528},
                      tokens=tokens, **zero, **big)

    # Latent attention; K and V apart, then so close that they overlap.
    check_buffers(DEEPSEEK_V3, {
        "attn_output": 147456,
        "ssm_qkvz": 243712,
        "ssm_ba": 3072,
        "ssm_deinterleaved": 147456,
        "ssm_conv_out_f32": 16384,
    })
    check_buffers(DEEPSEEK_V3, {"ssm_qkvz": 458752}, tokens=1, max_batch_tokens=4096, **zero)
    check_buffers(DEEPSEEK_V3, {"ssm_qkvz": 19 * 14336}, tokens=1, max_batch_tokens=3, **zero)

    # Mamba-2, dense.
    check_buffers(NEMOTRON_H, {
        "norm_output": 16384,
        "attn_output": 16384,
        "gate_logits": 256,
        "ssm_qkvz": 37120,
        "ssm_deinterleaved": 20480,
        "ssd_scratch": 393216,
        "expert_gate_out": 688128,
        "expert_down_out": 131072,
        "gdn_fla_scratch": 0,
        "ffn_act_q8": 1134592,
        "ffn_act_a": 344064,
        "ffn_act_scale": 43008,
        "ffn_act_scale_kmajor": 10752,
        "ffn_gate_up_fused": 1376256,
        "fp8_act": 131072,
        "fp8_act_scale": 4096,
        "moe_fp8_scratch": 0,
        "norm_unit_w": 16384,
    })
    check_buffers(NEMOTRON_H, {"gate_logits": 256}, tokens=1, max_batch_tokens=4096, **zero)

    # A MoE model without its own expert width; its gate logits have no floor.
    check_buffers(MIXTRAL, {"gate_logits": 16, "expert_gate_out": 917504, "expert_down_out": 262144})

    # Hyper-connections and the sparse attention index.
    hyper = {"hidden_size": 64, "hc_mult": 4, "hc_lowrank": 8, "index_topk": 10,
             "index_compress_ratio": 4, "index_n_heads": 4, "index_head_dim": 32,
             "o_groups": 2, "o_lora_rank": 24}
    check_buffers(hyper, {
        "hc_streams": 102400,
        "hc_post": 1600,
        "hc_comb": 6400,
        "hc_lowrank_scratch": 104800,
        "qsa_select_scratch": 10117120,
        "o_latent": 9600,
    }, max_batch_tokens=100, max_seq_len=4097)
    check_buffers(hyper, {"hc_post": 256, "hc_comb": 256, "hc_lowrank_scratch": 1056},
                  max_batch_tokens=1)

    # Scratch and decode metadata.
    plain = derive(make_inputs(read_model(QWEN3_NEXT)))
    mrope = derive(make_inputs(read_model({**QWEN3_NEXT, "mrope_interleaved": True})))
    check("scratch prefill", scratch_prefill(plain, 1), 1128)
    check("scratch prefill, MRoPE", scratch_prefill(mrope, 1), 1136)
    check("scratch decode", scratch_decode(plain), 201088)
    check("scratch batched prefill", scratch_batched_prefill(plain, 1), 33768)
    check("scratch batched prefill, MRoPE", scratch_batched_prefill(mrope, 1), 33832)
    check("decode metadata", decode_metadata_bytes(plain), 33664)
    check("blocks without a block size",
          derive(make_inputs(read_model(QWEN3_NEXT), kv_block_size=0)).blocks, 256)
    make_inputs(read_model(QWEN3_NEXT), max_batch_size=128)
    check_fails("serve batch 129", lambda: make_inputs(read_model(QWEN3_NEXT), max_batch_size=129))

    # Split-K spellings.
    check("split-K", parse_split_k(" Legacy\t"), ("legacy", 0))
    check("split-K", parse_split_k("AUTO"), ("auto", 0))
    for spelling in ("0", "off", " False ", "NO", "1"):
        check(f"split-K {spelling}", parse_split_k(spelling), ("pinned", 1))
    check("split-K", parse_split_k("7"), ("pinned", 7))
    check("split-K", parse_split_k("99"), ("pinned", 16))
    for spelling in ("", "yes", "-3", "4x"):
        check(f"split-K {spelling}", parse_split_k(spelling, ("auto", 0)), ("auto", 0))
    check_buffers(QWEN3_NEXT, {"splitk_workspace": 3698688}, split_k="7")

    # Reading configs.
    model = read_model(QWEN3_NEXT)
    check("SSM layers by interval", model["ssm_layers"], 36)
    check("gate of qwen3_next", model["attn_gated"], True)
    check("gate given", read_model({**QWEN3_NEXT, "attn_output_gate": False})["attn_gated"], False)
    check("SSM layers by list", read_model({
        **QWEN3_NEXT, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    })["ssm_layers"], 2)
    check("SSM layers without either", read_model(NEMOTRON_H)["ssm_layers"], 0)
    check("nested config", read_model({
        "hidden_size": 1, "vocab_size": 9, "text_config": {"hidden_size": 2, "vocab_size": None},
    })["hidden"], 2)
    check("nested config under another name", read_model({
        "num_experts": 8, "text_config": {"n_routed_experts": 4},
    })["num_experts"], 4)
    check("head width by division", read_model(DEEPSEEK_V3)["head_dim"], 56)
    check("head width alias", read_model(NEMOTRON_H)["head_dim"], 128)
    check("expert alias", read_model(DEEPSEEK_V3)["num_experts"], 256)
    check("expert width by default", read_model(MIXTRAL)["moe_intermediate"], 14336)
    check("top-k without experts", read_model({"num_experts_per_tok": 4})["top_k"], 0)
    check("KV heads by default", read_model({"num_attention_heads": 4})["kv_heads"], 4)
    check("MRoPE inside rope_scaling",
          read_model({"rope_scaling": {"mrope_interleaved": True}})["mrope"], True)
    check("no MRoPE", read_model({"rope_scaling": None})["mrope"], False)

    check("union", union_bytes([(0, 10), (5, 15), (20, 40)], 30), 25)


# --- Command line -----------------------------------------------------------------


def parse_levers(text):
    if text == "all":
        return LEVERS
    if text == "none":
        return ()
    return tuple(name.strip() for name in text.split(","))


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description="Reference sizes of the 46 buffers of the forward arena."
    )
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--config", metavar="FILE", help="one model config")
    mode.add_argument("--table", action="store_true", help="CSV over --configs")
    mode.add_argument("--self-test", action="store_true", help="check the literal values")
    parser.add_argument("--configs", metavar="DIR", help="folder of model configs, for --table")
    parser.add_argument("--max-batch-tokens", type=int, default=1, metavar="M")
    parser.add_argument("--max-seq-len", type=int, default=4096, metavar="S")
    parser.add_argument("--kv-block-size", type=int, default=16, metavar="B")
    parser.add_argument("--max-batch-size", type=int, default=32, metavar="N")
    parser.add_argument("--sm-count", type=int, default=132)
    parser.add_argument("--adapter-max-rank", type=int)
    parser.add_argument("--split-k", metavar="SPELLING", help="legacy, auto, off or a count")
    parser.add_argument(
        "--levers",
        default="none",
        help="comma-separated: q2, q2_mmq, rowwise; or all (adds rank 16, auto split-K); or none",
    )
    parser.add_argument("--tokens", type=int, metavar="T", help="also compute the row pass")
    parser.add_argument("--format", choices=("json", "csv"), default="json")
    args = parser.parse_args(argv)
    if args.table and not args.configs:
        parser.error("--table needs --configs DIR")
    if args.table and args.tokens is not None:
        parser.error("--table has its own token counts; --tokens goes with --config")
    everything = args.levers == "all"
    if args.adapter_max_rank is None:
        args.adapter_max_rank = ALL_LEVERS_ADAPTER_RANK if everything else 0
    if args.split_k is None:
        args.split_k = ALL_LEVERS_SPLIT_K if everything else "legacy"
    return args


def write_one(args, launch, out):
    inputs = make_inputs(load_model(args.config), max_batch_tokens=args.max_batch_tokens, **launch)
    result = report(inputs, args.tokens)
    if args.format == "json":
        json.dump(result, out, indent=2)
        out.write("\n")
        return
    writer = csv.DictWriter(out, list(result["buffers"][0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(result["buffers"])


def main(argv=None):
    args = parse_args(argv)
    if args.self_test:
        self_test()
        print("self-test passed")
        return 0
    launch = {
        "max_seq_len": args.max_seq_len,
        "kv_block_size": args.kv_block_size,
        "max_batch_size": args.max_batch_size,
        "sm_count": args.sm_count,
        "adapter_max_rank": args.adapter_max_rank,
        "levers": parse_levers(args.levers),
        "split_k": args.split_k,
    }
    try:
        if args.table:
            write_table(args.configs, launch, sys.stdout)
        else:
            write_one(args, launch, sys.stdout)
    except (OSError, ValueError) as error:
        print(f"forward_arena.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
