#!/usr/bin/env python3
"""Writes a small random model as a GGUF file: make_tiny_model.py FILE. The same numbers every time. Its tokens are the 256
bytes, a few merges, and the special tokens of the chat format."""

import struct
import sys

import numpy as np

LAYERS, HIDDEN, HEADS, KV_HEADS, FEED_FORWARD = 3, 128, 4, 2, 256
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w", "i n", "e r", "\u0120 t"]


def byte_characters():
    printable = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def texts(values):
    return struct.pack("<IQ", 8, len(values)) + b"".join(text(each) for each in values)


def q4_1(values):
    blocks = values.reshape(-1, 32)
    low = blocks.min(axis=1).astype("<f2")
    scale = ((blocks.max(axis=1) - low.astype(np.float32)) / 15).astype("<f2")
    numbers = np.round((blocks - low.astype(np.float32)[:, None]) / scale.astype(np.float32)[:, None])
    numbers = np.clip(numbers, 0, 15).astype("u1")
    out = np.zeros(len(blocks), [("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)])
    out["d"], out["m"], out["q"] = scale, low, numbers[:, :16] | numbers[:, 16:] << 4
    return out.tobytes()


def q8_0(values):
    blocks = values.reshape(-1, 32)
    scale = (np.abs(blocks).max(axis=1) / 127).astype("<f2")
    out = np.zeros(len(blocks), [("d", "<f2"), ("q", "i1", 32)])
    out["d"], out["q"] = scale, np.clip(np.round(blocks / scale.astype(np.float32)[:, None]), -127, 127)
    return out.tobytes()


def main():
    random = np.random.Generator(np.random.PCG64(20261201))
    tokens = SPECIAL + byte_characters() + [merge.replace(" ", "") for merge in MERGES]
    tokens += [f"<unused{index}>" for index in range(-len(tokens) % 32)]
    tensors = []

    def add(name, rows, columns, scale, form=q4_1, kind=3):
        values = random.normal(0, scale, (rows, columns)).astype(np.float32)
        tensors.append((name, [columns, rows], kind, form(values)))

    def norm(name):
        values = random.uniform(0.5, 1.5, HIDDEN).astype("<f4")
        tensors.append((name, [HIDDEN], 0, values.tobytes()))

    kv = HIDDEN // HEADS * KV_HEADS
    add("token_embd.weight", len(tokens), HIDDEN, 1.0, q8_0, 8)
    for layer in range(LAYERS):
        for name, rows, columns in [
            ("attn_q", HIDDEN, HIDDEN),
            ("attn_k", kv, HIDDEN),
            ("attn_v", kv, HIDDEN),
            ("attn_output", HIDDEN, HIDDEN),
            ("ffn_gate", FEED_FORWARD, HIDDEN),
            ("ffn_up", FEED_FORWARD, HIDDEN),
            ("ffn_down", HIDDEN, FEED_FORWARD),
        ]:
            add(f"blk.{layer}.{name}.weight", rows, columns, 1.5 / np.sqrt(columns))
        norm(f"blk.{layer}.attn_norm.weight")
        norm(f"blk.{layer}.ffn_norm.weight")
    norm("output_norm.weight")

    number = lambda value: struct.pack("<I", value)
    metadata = [
        pair("general.architecture", 8, text("llama")),
        pair("llama.block_count", 4, number(LAYERS)),
        pair("llama.embedding_length", 4, number(HIDDEN)),
        pair("llama.feed_forward_length", 4, number(FEED_FORWARD)),
        pair("llama.attention.head_count", 4, number(HEADS)),
        pair("llama.attention.head_count_kv", 4, number(KV_HEADS)),
        pair("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
        pair("llama.rope.freq_base", 6, struct.pack("<f", 10000.0)),
        pair("tokenizer.ggml.tokens", 9, texts(tokens)),
        pair("tokenizer.ggml.token_type", 9, struct.pack("<IQ", 5, len(tokens))
             + b"".join(struct.pack("<i", 3 if token.startswith("<|") else 1) for token in tokens)),
        pair("tokenizer.ggml.merges", 9, texts(MERGES)),
        pair("tokenizer.ggml.eos_token_id", 4, number(2)),
    ]
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata)
    offset = 0
    for name, extents, kind, data in tensors:
        out += text(name) + struct.pack("<I", len(extents)) + struct.pack(f"<{len(extents)}Q", *extents)
        out += struct.pack("<IQ", kind, offset)
        offset += (len(data) + 31) // 32 * 32
    out += b"\0" * (-len(out) % 32)
    for _, _, _, data in tensors:
        out += data + b"\0" * (-len(data) % 32)
    with open(sys.argv[1], "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main()
