"""Arithmetic on single values, as the language defines it: wrapping integers, floats rounded in their own width.

Written from the definition and apart from every engine. A float is a pair (value, error): the error bounds how far a
correct engine may be from the value, and is 0 as long as the language leaves no freedom. Whatever has no defined
result, or one
that hangs on an inexact value, raises `Undefined`.
"""

import math
import struct
from fractions import Fraction

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
        "int4": 4}
# precision in bits, exponent of the smallest subnormal, largest value
FLOATS = {
    "float16": (11, -24, 65504.0),
    "bfloat16": (8, -133, 3.3895313892515355e38),
    "float32": (24, -149, 3.4028234663852886e38),
    "float64": (53, -1074, 1.7976931348623157e308),
    "float8_e4m3": (4, -9, 448.0),
    "float8_e5m2": (3, -16, 57344.0),
    "float4_e2m1": (2, -1, 6.0),
}
SMALL = ("float16", "bfloat16", "float8_e4m3", "float8_e5m2", "float4_e2m1")  # evaluated in float32
COARSE = ("float16", "float8_e4m3", "float8_e5m2", "float4_e2m1")  # of small range, or of few integers
# Beyond these a program is not tame: rounding freedom could reach infinity.
TAME = {"float16": 3e4, "bfloat16": 1e12, "float32": 1e12, "float64": 1e12, "float8_e4m3": 300.0,
        "float8_e5m2": 3e4, "float4_e2m1": 6.1}
PACKED = ("int4", "float4_e2m1")  # of which two share a byte
_SINGLE = struct.Struct("f")


class Undefined(Exception):
    """The program has no single defined result here."""


def is_float(dtype):
    return dtype in FLOATS


def is_int(dtype):
    return dtype in BITS


def is_unsigned(dtype):
    return dtype.startswith("uint")


def evaluation_dtype(dtype):
    """Floats below 32 bits are evaluated in float32."""
    return "float32" if dtype in SMALL else dtype


def epsilon(dtype):
    """Twice the relative error of one rounding."""
    return 2.0 ** (1 - FLOATS[dtype][0])


def int_range(dtype):
    bits = BITS[dtype]
    return (0, 2**bits - 1) if is_unsigned(dtype) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wrap(value, dtype):
    """The representative of value modulo 2^bits."""
    bits = BITS[dtype]
    value &= (1 << bits) - 1
    return value if is_unsigned(dtype) or value < 1 << (bits - 1) else value - (1 << bits)


def round_exact(value, dtype):
    """A Fraction or float rounded to nearest even in dtype."""
    if value == 0 or isinstance(value, float) and not math.isfinite(value):
        return float(value)
    precision, least, limit = FLOATS[dtype]
    if isinstance(value, float):  # exact in doubles: scaled to units of the last place, a tie goes to the even one
        unit = max(math.frexp(value)[1] - precision, least)
        if -900 < unit < 900:
            result = math.ldexp(round(math.ldexp(value, -unit)), unit)
            if abs(result) > limit:
                raise Undefined("a float overflows")
            return result
    exact = Fraction(value)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least)
    result = float(round(exact / unit) * unit)
    if abs(result) > limit:
        raise Undefined("a float overflows")
    return result


def round_float(value, dtype):
    """A double rounded to nearest even in dtype."""
    if dtype == "float64":
        return value
    if dtype == "float32":
        try:
            return _SINGLE.unpack(_SINGLE.pack(value))[0]
        except OverflowError:
            raise Undefined("a float overflows") from None
    return round_exact(value, dtype)


def settle(value, error, dtype):
    """The pair for a result of dtype; where it is inexact already, its rounding may go either way."""
    if not abs(value) < TAME[dtype]:
        raise Undefined("a float is not tame")
    value = round_float(value, dtype)
    if error:
        error += abs(value) * epsilon(dtype) + 2.0 ** FLOATS[dtype][1]
    return value, error


def convert(x, source, target):
    """T.cast and the conversions of stores."""
    if source == target and source not in SMALL:
        return x
    if is_float(source):
        value, error = x
        if is_float(target):
            return x if math.isinf(value) else settle(value, error, target)
        if error and (target == "bool" or math.trunc(value - error) != math.trunc(value + error)):
            raise Undefined("an inexact float becomes an integer")
        if target == "bool":
            return value != 0
        if math.isinf(value):
            return int_range(target)[value > 0]
        low, high = int_range(target)
        return min(max(math.trunc(value), low), high)
    x = int(x)
    if is_float(target):
        return settle(round_exact(float(x) if abs(x) <= 2**53 else Fraction(x), target), 0.0, target)
    if target == "bool":
        return x != 0
    return x if target == "index" else wrap(x, target)


def compare(op, a, b, dtype):
    if is_float(dtype):
        (a, ea), (b, eb) = a, b
        if ea + eb and abs(a - b) <= ea + eb:
            raise Undefined("a comparison hangs on an inexact float")
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]


def _integer(op, args, dtype):
    """An integer operator before wrapping; index is not bounded here."""
    a = int(args[0])
    b = int(args[1]) if len(args) > 1 else None
    if op in ("//", "%", "ceildiv") and b == 0:
        raise Undefined("division by zero")
    if op in ("<<", ">>") and not 0 <= b <= 200:
        raise Undefined("a negative or absurd shift")
    match op:
        case "+":
            return a + b
        case "-":
            return -a if b is None else a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b
        case "ceildiv":
            return -(-a // b)
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "~":
            return ~a
        case "<<":
            return a << b
        case ">>":
            return a >> b
        case "abs":
            return abs(a)
    raise KeyError(op)


_FUNCTIONS = {
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "exp2_approx": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "pow": math.pow,
}
# Functions with freedom: engines may differ by this many units in the last place, and by this much near zero.
_FREEDOM = 8


def _function(op, args, dtype):
    f = _FUNCTIONS[op]
    values = [v for v, _ in args]
    try:
        result = f(*values)
        spread = 0.0
        for place, (_, error) in enumerate(args):
            for sign in (-1, 1) if error else ():
                moved = list(values)
                moved[place] += sign * error
                spread += 1.5 * abs(f(*moved) - result)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise Undefined(f"{op} outside its domain") from None
    if isinstance(result, complex):
        raise Undefined(f"{op} outside its domain")
    if op == "sqrt":
        return settle(result, spread, dtype)
    freedom = _FREEDOM * (4 if op == "pow" else 1)
    return settle(result, spread + freedom * epsilon(dtype) * abs(result) + 2.0**-120, dtype)


def _float(op, args, dtype):
    if op in _FUNCTIONS:
        return _function(op, args, dtype)
    if op in ("min", "max"):
        (a, ea), (b, eb) = args
        return (min if op == "min" else max)(a, b), max(ea, eb)
    a, ea = args[0]
    b, eb = args[1] if len(args) > 1 else (None, 0.0)
    if op == "-" and b is None:
        return -a, ea
    if op == "abs":
        return abs(a), ea
    if not all(math.isfinite(v) for v, _ in args):
        raise Undefined("arithmetic on infinity")
    if op in ("floor", "ceil", "round"):
        f = {"floor": math.floor, "ceil": math.ceil, "round": round}[op]
        if f(a - ea) != f(a + ea):
            raise Undefined(f"{op} of an inexact float")
        return float(f(a)), 0.0
    match op:
        case "+":
            return settle(a + b, ea + eb, dtype)
        case "-":
            return settle(a - b, ea + eb, dtype)
        case "*":
            return settle(a * b, abs(a) * eb + abs(b) * ea + ea * eb, dtype)
        case "/":
            if abs(b) <= eb:
                raise Undefined("division by zero")
            value = a / b
            return settle(value, (ea + abs(value) * eb) / (abs(b) - eb), dtype)
        case "fma":
            c, ec = args[2]
            error = abs(a) * eb + abs(b) * ea + ea * eb + ec
            return settle(round_exact(Fraction(a) * Fraction(b) + Fraction(c), dtype), error, dtype)
    raise KeyError(op)


def apply(op, args, dtype):
    """An arithmetic operator on operands of dtype; small floats come and go unrounded in float32."""
    if is_float(dtype):
        return _float(op, args, evaluation_dtype(dtype))
    result = _integer(op, args, dtype)
    if dtype == "index":
        if abs(result) > 2**40:
            raise Undefined("an index is out of any machine's range")
        return result
    return wrap(result, dtype)


def _exactly_summable(values, dtype):
    """Is every partial sum, in every order, a value of dtype?"""
    unit = 2.0**-10
    total = 0.0
    for v in values:
        if v != math.floor(v / unit) * unit:
            return False
        total += abs(v)
    return total < unit * 2.0 ** FLOATS[dtype][0]


def total(pairs, dtype):
    """The sum of floats in any order, each addition rounded in dtype."""
    values = [v for v, _ in pairs]
    if not all(map(math.isfinite, values)):
        raise Undefined("arithmetic on infinity")
    error = math.fsum(e for _, e in pairs)
    value = math.fsum(values)
    if error == 0 and _exactly_summable(values, dtype):
        return value, 0.0
    error += len(pairs) * epsilon(dtype) * math.fsum(map(abs, values)) + 2.0**-140
    return settle(value, error, dtype)


def fold(kind, start, items, dtype):
    """A reduction in any order, in the evaluation dtype of dtype; `start` is the identity or the old value."""
    if kind == "any":
        return bool(start or any(items))
    if kind == "all":
        return bool(start and all(items))
    evaluated = evaluation_dtype(dtype)
    if kind == "absmax":
        items, kind = [apply("abs", [x], dtype) for x in items], "max"
    if not is_float(dtype):
        for x in items:
            start = apply({"sum": "+", "prod": "*"}.get(kind, kind), [start, x], dtype)
        return start
    if kind == "sum":
        return total([start, *items], evaluated)
    if kind == "prod":
        value, error = start
        for v, e in items:
            error = abs(value) * e + abs(v) * error + error * e
            value *= v
        if not math.isfinite(value):
            raise Undefined("arithmetic on infinity")
        if error == 0 and len(items) <= 1:
            return settle(value, 0.0, evaluated)
        return settle(value, error + (len(items) + 1) * epsilon(evaluated) * abs(value) + 2.0**-120, evaluated)
    choose = min if kind == "min" else max
    return choose(v for v, _ in [start, *items]), max(e for _, e in [start, *items])


def identity(kind, dtype):
    """The result of a reduction over nothing."""
    if dtype == "bool":
        return kind == "all"
    value = {"sum": 0, "absmax": 0, "prod": 1}.get(kind)
    if value is None:
        value = ((-math.inf, math.inf) if is_float(dtype) else int_range(dtype))[kind == "min"]
    return (float(value), 0.0) if is_float(dtype) else value
