"""What the tests of copies do with their programs.

A program is (function, shapes of its arguments, their dtypes, blocks of its kernel); its last argument is the result.
Values are small whole numbers, so that sums are exact in any order.
"""

import ml_dtypes
import numpy as np
from cuda_on_host import aligned
from undispatched import undispatched

import helve
import helve.testing
from helve import _core


def whole_numbers(shape, dtype="float32"):
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(kind)


def misaligned(array):
    """A copy whose first element stands one element past a multiple of 64 bytes."""
    memory = aligned(np.zeros(array.size + 64 // array.itemsize, array.dtype))
    out = memory[1 : 1 + array.size].reshape(array.shape)
    out[...] = array
    return out


def arguments_of(program):
    _, shapes, dtypes, _ = program
    return [whole_numbers(shape, dtype) for shape, dtype in zip(shapes, dtypes)]


def meaning(program):
    """The result, by the interpreter."""
    arguments = arguments_of(program)
    helve.testing.interpret(program[0], *arguments)
    return arguments[-1]


def check_on_the_cpu(program, thread_form):
    """The program and its form of threads, both compiled for the CPU, mean what the program means."""
    wanted = meaning(program)
    for each in (undispatched(program[0]), helve.parse(_core.print(thread_form))):
        given = arguments_of(program)
        helve.compile(each)(*given)
        np.testing.assert_array_equal(given[-1], wanted)


def check_text(kernels, name, program, place=aligned, scalars=None):
    """The text of the kernel, run on the host over arrays that stand where `place` puts them."""
    function, _, _, blocks = program
    given = [place(array) for array in arguments_of(program)]
    kernels.run(name, blocks, dict(zip([p.name for p in function.function.params], given)), scalars)
    np.testing.assert_array_equal(given[-1], meaning(program))
