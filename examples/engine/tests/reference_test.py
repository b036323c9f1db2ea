#!/usr/bin/env python3
"""reference_test.py ENGINE MODEL [--cuda]: the engine's logits behind a prompt are those of reference.py, within 1e-3 (1e-2
on a GPU, in bf16), and on the CPU the text that it goes on with is the same for 64 tokens. Status 77 where the model or the
GPU is missing."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import reference

PROMPT = (
    "<|im_start|>user\nhello there, in 1969 two men walked on the Moon. What did they see, and how did they get home?"
    "<|im_end|>\n<|im_start|>assistant\n"
)


def main():
    engine, path = sys.argv[1:3]
    cuda = "--cuda" in sys.argv
    if not pathlib.Path(path).exists():
        print("SKIPPED: there is no", path)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        dump = folder + "/dump"
        command = [engine, "--model", path, "--raw", "--tokens", "64", "--dump", dump, PROMPT]
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            return done.returncode  # 77 where there is no GPU
        prompt, answer, logits = pathlib.Path(dump).read_text().splitlines()
    prompt = [int(token) for token in prompt.split()]
    answer = [int(token) for token in answer.split()]
    logits = np.array(logits.split(), np.float32)

    model = reference.Model(path)
    assert len(logits) == len(model.metadata["tokenizer.ggml.tokens"])
    wanted = model.run(prompt)
    error = np.linalg.norm(logits - wanted) / np.linalg.norm(wanted)
    largest = np.abs(logits - wanted).max() / np.abs(wanted).max()
    print(f"{len(prompt)} tokens, logits: relative error {error:.2e}, largest of one {largest:.2e} of the largest")
    # bf16 has three digits, which 30 layers of a trained model keep two of. The tiny model's weights are random and large:
    # rounding every product's input to bf16 in this reference changes its logits by 1.4e-2 to 1.7e-2.
    tiny = len(logits) < 1000
    limit = (3e-2 if tiny else 1e-2) if cuda else 1e-3
    right = error <= limit and (cuda or largest <= limit)

    expected = []
    for _ in range(64):
        expected.append(int(wanted.argmax()))
        wanted = model.run(expected[-1:])
    same = next((i for i, (a, b) in enumerate(zip(answer, expected)) if a != b), min(len(answer), len(expected)))
    print(f"text: the first {same} of {len(expected)} tokens are the same")
    right = right and len(answer) == 64 and (cuda or same == 64)
    print("right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
