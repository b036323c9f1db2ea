"""A second engine, in numpy, written apart from the first: reads the same GGUF file and computes logits. Slow and plain:
weights as 32-bit floats, one sequence, no pages, no quantised activations."""

import struct

import numpy as np

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        length = self.take("<Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.take("<I"), self.take("<Q")
            return [self.value(inner) for _ in range(count)]
        return self.take(SCALARS[kind])


def f32(data, shape):
    return np.frombuffer(data, "<f4", int(np.prod(shape))).reshape(shape)


def q4_1(data, shape):
    blocks = np.frombuffer(data, [("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)], int(np.prod(shape)) // 32)
    numbers = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1).astype(np.float32)
    values = numbers * blocks["d"].astype(np.float32)[:, None] + blocks["m"].astype(np.float32)[:, None]
    return values.reshape(shape)


def q8_0(data, shape):
    blocks = np.frombuffer(data, [("d", "<f2"), ("q", "i1", 32)], int(np.prod(shape)) // 32)
    return (blocks["q"].astype(np.float32) * blocks["d"].astype(np.float32)[:, None]).reshape(shape)


class Model:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        read = Reader(data)
        assert data[:4] == b"GGUF"
        read.at = 4
        _, tensors, keys = read.take("<I"), read.take("<Q"), read.take("<Q")
        self.metadata = {}
        for _ in range(keys):
            key = read.text().decode()
            self.metadata[key] = read.value(read.take("<I"))
        places = {}
        for _ in range(tensors):
            name = read.text().decode()
            shape = [read.take("<Q") for _ in range(read.take("<I"))][::-1]
            places[name] = (shape, read.take("<I"), read.take("<Q"))
        base = (read.at + 31) // 32 * 32
        kinds = {0: f32, 3: q4_1, 8: q8_0}
        self.tensors = {
            name: kinds[kind](memoryview(data)[base + offset :], shape) for name, (shape, kind, offset) in places.items()
        }
        get = lambda key: self.metadata["llama." + key]
        self.layers, self.heads = get("block_count"), get("attention.head_count")
        self.kv_heads, self.epsilon = get("attention.head_count_kv"), get("attention.layer_norm_rms_epsilon")
        self.base = get("rope.freq_base")
        self.cache = [[None, None] for _ in range(self.layers)]
        self.length = 0

    def restart(self):
        self.cache = [[None, None] for _ in range(self.layers)]
        self.length = 0

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.epsilon) * self.tensors[name]

    def rotate(self, x, positions):
        half = x.shape[-1] // 2
        angles = positions[:, None] * self.base ** (-np.arange(half) / half)
        turn = np.exp(1j * angles)[:, None, :]
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape).astype(np.float32)

    def run(self, tokens):
        """Logits behind the last of the tokens, which are appended to those before."""
        count = len(tokens)
        positions = np.arange(self.length, self.length + count)
        self.length += count
        weight = lambda layer, name: self.tensors[f"blk.{layer}.{name}.weight"]
        x = self.tensors["token_embd.weight"][np.asarray(tokens)].astype(np.float32)
        dim = x.shape[1] // self.heads
        for layer in range(self.layers):
            y = self.norm(x, f"blk.{layer}.attn_norm.weight")
            q = self.rotate((y @ weight(layer, "attn_q").T).reshape(count, self.heads, dim), positions)
            k = self.rotate((y @ weight(layer, "attn_k").T).reshape(count, self.kv_heads, dim), positions)
            v = (y @ weight(layer, "attn_v").T).reshape(count, self.kv_heads, dim)
            old_k, old_v = self.cache[layer]
            k = k if old_k is None else np.concatenate([old_k, k])
            v = v if old_v is None else np.concatenate([old_v, v])
            self.cache[layer] = [k, v]
            group = self.heads // self.kv_heads
            scores = np.einsum("qhd,khd->hqk", q, np.repeat(k, group, axis=1)) / np.sqrt(dim)
            scores = np.where(np.arange(len(k))[None, None, :] <= positions[None, :, None], scores, -np.inf)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            out = np.einsum("hqk,khd->qhd", scores, np.repeat(v, group, axis=1)).reshape(count, -1)
            x = x + out.astype(np.float32) @ weight(layer, "attn_output").T
            y = self.norm(x, f"blk.{layer}.ffn_norm.weight")
            gate = y @ weight(layer, "ffn_gate").T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ weight(layer, "ffn_up").T)) @ weight(layer, "ffn_down").T
        return self.norm(x[-1], "output_norm.weight") @ self.tensors["token_embd.weight"].T
