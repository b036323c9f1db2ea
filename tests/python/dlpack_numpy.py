#!/usr/bin/env python3
"""numpy imports fields and parts of an arena: dlpack_numpy.py LIBRARY

LIBRARY is dlpack_library.cpp, built as a shared library. `--skip REASON` says why there is none.
"""

import ctypes
import gc
import sys

SKIPPED = 77  # for CTest

if sys.argv[1:2] == ["--skip"]:
    print(f"SKIPPED: {sys.argv[2]}")
    sys.exit(SKIPPED)
try:
    import numpy
except ImportError:
    print(f"SKIPPED: {sys.executable} has no numpy")
    sys.exit(SKIPPED)
if not hasattr(numpy, "from_dlpack"):
    print(f"SKIPPED: numpy {numpy.__version__} has no from_dlpack")
    sys.exit(SKIPPED)

STATES, SCALES, FLAGS, SLOTS, EXTRA, FIRST_ROWS = range(6)
NUMPY_VERSION = tuple(int(number) for number in numpy.__version__.split(".")[:2])


def load(path):
    library = ctypes.CDLL(path)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, *arguments in (
        ("open_arena", pointer, size, size),
        ("close_arena", None, pointer),
        ("living_arenas", ctypes.c_int),
        ("write_state", None, pointer, size, ctypes.c_float),
        ("read_state", ctypes.c_float, pointer, size),
        ("write_slot", None, pointer, size, ctypes.c_int64),
        ("write_scale_bits", None, pointer, size, ctypes.c_uint16),
        ("offset_of_slots", size, pointer),
        ("export_tensor", pointer, pointer, ctypes.c_int, size),
        ("delete_tensor", None, pointer),
        ("export_versioned", pointer, pointer, ctypes.c_int, size),
        ("delete_versioned", None, pointer),
    ):
        if hasattr(library, name):  # the versioned form takes a newer dlpack.h
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    return library


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# By address: a destructor's capsule must not be counted again.
is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.restype, is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]


class Capsules:
    """Capsules of one form; one that nobody imported deletes its tensor."""

    def __init__(self, name, make, delete):
        self.name, self.make = name, make

        def destroy(capsule):
            if is_valid(capsule, name):  # whoever imports it gives it another name
                delete(get_pointer(capsule, name))

        self.destroy = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(destroy)

    def new(self, arena, field, rows):
        tensor = self.make(arena, field, rows)
        if not tensor:
            raise BufferError("refused")
        return new_capsule(tensor, self.name, self.destroy)


class Exported:
    """A field as Python's array libraries import it."""

    def __init__(self, capsules, versioned, arena, field, rows=0):
        self.capsules, self.versioned, self.arguments = capsules, versioned, (arena, field, rows)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.versioned is not None and max_version is not None and max_version[0] >= 1:
            return self.versioned.new(*self.arguments)
        return self.capsules.new(*self.arguments)

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU


def check(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)


def test_form(library, capsules, versioned):
    def imported(*arguments):
        return numpy.from_dlpack(Exported(capsules, versioned, *arguments))

    arena = library.open_arena(5, 3)
    check(library.living_arenas() == 1, "an arena is there")
    for index in range(15):
        library.write_state(arena, index, index / 2)
    for index in range(10):
        library.write_slot(arena, index, 2**40 + index)
    for index, bits in enumerate((0x3C00, 0xC000, 0x3800)):
        library.write_scale_bits(arena, index, bits)

    # Values, extents, types.
    states = imported(arena, STATES)
    check(states.shape == (5, 3) and states.dtype == numpy.float32, "states are float32 [5, 3]")
    check(states.flags.c_contiguous and states.strides == (12, 4), "states are compact")
    check((states == numpy.arange(15, dtype=numpy.float32).reshape(5, 3) / 2).all(), "the values of states")
    scales = imported(arena, SCALES)
    check(scales.shape == (3,) and scales.dtype == numpy.float16, "scales are float16 [3]")
    check(scales.tolist() == [1.0, -2.0, 0.5], "the values of scales")

    # A part, at its offset.
    flags = imported(arena, FLAGS)
    slots = imported(arena, SLOTS)
    check(flags.shape == (5,) and flags.dtype == numpy.uint8, "flags are uint8 [5]")
    check(slots.shape == (5, 2) and slots.dtype == numpy.int64, "slots are int64 [5, 2]")
    check((slots == 2**40 + numpy.arange(10).reshape(5, 2)).all(), "the values of slots")
    offset = library.offset_of_slots(arena)
    check(offset == 8 and slots.ctypes.data - flags.ctypes.data == offset, "slots lie behind the flags")

    # The first rows.
    rows = imported(arena, FIRST_ROWS, 2)
    check(rows.shape == (2, 3) and rows.ctypes.data == states.ctypes.data, "the first two rows of states")
    check(imported(arena, FIRST_ROWS, 0).shape == (0, 3), "no rows of states")

    # One memory, from both sides.
    library.write_state(arena, 4, 77.5)
    check(states[1, 1] == 77.5 and rows[1, 1] == 77.5, "numpy sees what the library wrote")
    # numpy leaves what comes in the older form read-only, so the test writes at the array's address.
    writable = states
    if versioned is None:
        writable = numpy.ctypeslib.as_array((ctypes.c_float * 15).from_address(states.ctypes.data)).reshape(5, 3)
    else:
        check(states.flags.writeable, "the versioned form can be written to")
    writable[2, 2] = -8.25
    check(library.read_state(arena, 8) == -8.25, "the library sees what numpy wrote")

    # Refusals.
    for arguments in ((arena, EXTRA), (arena, FIRST_ROWS, 6)):
        try:
            imported(*arguments)
            check(False, f"{arguments[1:]} is refused")
        except BufferError:
            pass

    # The arena lives until the last array is gone, views of it included.
    library.close_arena(arena)
    check(library.living_arenas() == 1, "the arrays keep the arena")
    view = slots[3:]
    del states, writable, scales, flags, slots, rows
    gc.collect()
    check(library.living_arenas() == 1, "a view of an array keeps the arena")
    check(view.tolist() == [[2**40 + 6, 2**40 + 7], [2**40 + 8, 2**40 + 9]], "the memory is still there")
    del view
    gc.collect()
    check(library.living_arenas() == 0, "the last array took the arena with it")

    # A capsule that nobody imports.
    arena = library.open_arena(1, 1)
    capsule = Exported(capsules, versioned, arena, STATES).__dlpack__(max_version=(1, 0))
    library.close_arena(arena)
    check(library.living_arenas() == 1, "a capsule keeps the arena")
    del capsule
    gc.collect()
    check(library.living_arenas() == 0, "the capsule took the arena with it")


def main():
    library = load(sys.argv[1])
    capsules = Capsules(b"dltensor", library.export_tensor, library.delete_tensor)
    test_form(library, capsules, None)
    forms = 1
    if hasattr(library, "export_versioned") and NUMPY_VERSION >= (2, 1):
        versioned = Capsules(b"dltensor_versioned", library.export_versioned, library.delete_versioned)
        test_form(library, capsules, versioned)
        forms = 2
    print(f"passed with numpy {numpy.__version__}, {forms} of the forms of a tensor")


if __name__ == "__main__":
    main()
