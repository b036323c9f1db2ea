#!/usr/bin/env python3
"""torch imports fields and parts of an arena in device memory: dlpack_torch.py LIBRARY

LIBRARY is dlpack_library.cpp beside this file, built as a shared library. Ends with status 77 where there is no torch
or no GPU.
"""

import ctypes
import gc
import sys

SKIPPED = 77  # for CTest

try:
    import torch
except ImportError:
    print(f"SKIPPED: {sys.executable} has no torch")
    sys.exit(SKIPPED)
if not torch.cuda.is_available():
    print("SKIPPED: no GPU")
    sys.exit(SKIPPED)

STATES, PADDED, SLOTS, FIRST_ROWS = range(4)
BATCH, WIDTH = 5, 24

library = ctypes.CDLL(sys.argv[1])
pointer, size = ctypes.c_void_p, ctypes.c_size_t
for name, result, *arguments in (
    ("open_arena", pointer, size, size),
    ("close_arena", None, pointer),
    ("living_arenas", ctypes.c_int),
    ("fill", None, pointer),
    ("zero_rows", None, pointer, size),
    ("address_of_states", size, pointer),
    ("export_tensor", pointer, pointer, ctypes.c_int, size),
):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def imported(arena, field, rows=0):
    tensor = library.export_tensor(arena, field, rows)
    assert tensor, "refused"
    return torch.utils.dlpack.from_dlpack(new_capsule(tensor, b"dltensor", None))


arena = library.open_arena(BATCH, WIDTH)
assert arena, "no arena"
library.fill(arena)

states = imported(arena, STATES)
assert states.device.type == "cuda" and states.dtype == torch.float32 and tuple(states.shape) == (BATCH, WIDTH)
assert states.data_ptr() == library.address_of_states(arena)
expected = torch.arange(BATCH * WIDTH, dtype=torch.float32).reshape(BATCH, WIDTH)
assert torch.equal(states.cpu(), expected)

padded = imported(arena, PADDED)
assert padded.dtype == torch.bfloat16 and tuple(padded.shape) == (16, WIDTH) and not padded.any().item()

slots = imported(arena, SLOTS)
assert slots.dtype == torch.int64 and torch.equal(slots.cpu(), -torch.arange(BATCH * 2).reshape(BATCH, 2))

rows = imported(arena, FIRST_ROWS, 3)
assert tuple(rows.shape) == (3, WIDTH) and torch.equal(rows.cpu(), expected[:3])

# One memory: what torch writes, the arena clears, and the other way round.
states[4] = 7.0
torch.cuda.synchronize()
library.zero_rows(arena, 2)
assert not states[:2].any().item() and torch.equal(states[2:4].cpu(), expected[2:4]) and (states[4] == 7).all().item()

# The arena lives as long as the last tensor.
library.close_arena(arena)
assert library.living_arenas() == 1
del states, padded, slots
gc.collect()
assert library.living_arenas() == 1 and torch.equal(rows[2].cpu(), expected[2])
del rows
gc.collect()
assert library.living_arenas() == 0
print(f"right: torch {torch.__version__} imported float32, bfloat16 and int64 fields and a part, by address")
