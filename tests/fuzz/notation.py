"""Random programs of index notation, and what they mean by definition.

A program is statements over small tensors of whole numbers. `value` says what an element is, from the rule of the page
(docs/notation.md) alone: it knows no loops, no reductions and no function of the core.
"""

import itertools
import math
import random
from dataclasses import dataclass, field

import helve
import numpy as np
from helve import T

EXTENTS = {"i": 3, "j": 2, "k": 4, "l": 1, "m": 2}
KINDS = {"sum": sum, "prod": math.prod, "max": max, "min": min}
LIMIT = 2**18  # sums of so many such numbers are exact in float32, in any order


@dataclass(eq=False)
class Access:
    """tensor[indices]; an index is a name, or a number."""

    tensor: str
    subscripts: tuple


@dataclass(eq=False)
class Number:
    value: int


@dataclass(eq=False)
class Sum:
    terms: list  # (sign, node)


@dataclass(eq=False)
class Product:
    factors: list


@dataclass(eq=False)
class Call:
    name: str  # abs, max or min
    args: list


@dataclass(eq=False)
class Reduce:
    kind: str
    index: str
    body: object


@dataclass
class Statement:
    tensor: str
    left: tuple
    update: str  # "", "+=" or "*="
    value: object


@dataclass
class Program:
    dtype: str
    shapes: dict = field(default_factory=dict)  # tensor -> the names of its dimensions' indices
    inputs: list = field(default_factory=list)
    statements: list = field(default_factory=list)


class Generator:
    """A program from a seed. Elements stay below LIMIT, or the seed makes another one."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.program = Program(self.rng.choice(["float32", "int32", "float32"]))

    def program_of(self):
        rng, program = self.rng, self.program
        for n in range(rng.randint(1, 3)):
            self.declare(f"A{n}")
            program.inputs.append(f"A{n}")
        self.readable = list(program.inputs)
        for n in range(rng.randint(1, 3)):
            name = f"R{n}"
            left = self.declare(name)
            update = rng.choice(["", "", "", "+=", "*="])
            program.statements.append(Statement(name, left, update, self.sum(2)))
            self.readable.append(name)
        return program

    def declare(self, name):
        left = tuple(self.rng.sample(list(EXTENTS), self.rng.choice([0, 1, 1, 2, 2, 3])))
        self.program.shapes[name] = left
        return left

    def sum(self, depth):
        count = self.rng.choice([1, 1, 2, 3])
        terms = [(self.rng.choice([1, 1, -1]) if n else 1, self.product(depth)) for n in range(count)]
        return terms[0][1] if count == 1 else Sum(terms)

    def product(self, depth):
        count = self.rng.choice([1, 1, 2, 3])
        factors = [self.factor(depth) for _ in range(count)]
        return factors[0] if count == 1 else Product(factors)

    def factor(self, depth):
        rng = self.rng
        choice = rng.random() if depth else 0.9
        if choice < 0.12:
            return self.sum(depth - 1)
        if choice < 0.2:
            return Call("abs", [self.sum(depth - 1)])
        if choice < 0.28:
            return Call(rng.choice(["max", "min"]), [self.sum(depth - 1), self.sum(depth - 1)])
        if choice < 0.45:
            body = self.sum(depth - 1)
            open_here = sorted(free(body))
            return Reduce(rng.choice(list(KINDS)), rng.choice(open_here), body) if open_here else body
        if choice < 0.53:
            return Number(rng.choice([1, 2, -1, 3]))
        tensor = rng.choice(self.readable)
        # A dimension is subscripted by an index of its extent, or by a number.
        subscripts = []
        for name in self.program.shapes[tensor]:
            fitting = [x for x in EXTENTS if EXTENTS[x] == EXTENTS[name]]
            number = rng.randrange(EXTENTS[name])
            subscripts.append(number if rng.random() < 0.08 else rng.choice(fitting))
        return Access(tensor, tuple(subscripts))


def generate(seed):
    return Generator(seed).program_of()


def parts(node):
    match node:
        case Sum(terms):
            return [part for _, part in terms]
        case Product(factors):
            return factors
        case Call(_, args):
            return args
        case Reduce(_, _, body):
            return [body]
    return []


def free(node):
    """The indices of a node that no reduction in it binds."""
    if isinstance(node, Access):
        return {x for x in node.subscripts if isinstance(x, str)}
    found = set().union(*(free(part) for part in parts(node)))
    return found - {node.index} if isinstance(node, Reduce) else found


def flat(node, kind):
    """The terms of a sum of sums, the factors of a product of products."""
    return [x for part in parts(node) for x in flat(part, kind)] if isinstance(node, kind) else [node]


def settings(indices, env):
    names = sorted(indices)
    for values in itertools.product(*(range(EXTENTS[x]) for x in names)):
        yield env | dict(zip(names, values))


class Meaning:
    """What the elements of a program's tensors are, given its inputs."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.largest = 0

    def seen(self, x):
        self.largest = max(self.largest, abs(x))
        return x

    def total(self, node, env, summed):
        """The node with the indices `summed` added up where the notation adds them."""
        summed = summed & free(node)
        match node:
            case Sum(terms):
                whole = {x for x in summed if all(x in free(term) for term in flat(node, Sum))}
                of_terms = lambda at: sum(s * self.total(t, at, summed - whole) for s, t in terms)  # noqa: E731
                return self.seen(sum(of_terms(at) for at in settings(whole, env)))
            case Product():
                factors = flat(node, Product)
                inner = {x for x in summed if self.is_inside_of_one(factors, x)}
                of_factors = lambda at: math.prod(self.total(f, at, inner) for f in factors)  # noqa: E731
                return self.seen(sum(self.seen(of_factors(at)) for at in settings(summed - inner, env)))
        return self.seen(sum(self.value(node, at) for at in settings(summed, env)))

    @staticmethod
    def is_inside_of_one(factors, index):
        holders = [f for f in factors if index in free(f)]
        return (
            len(holders) == 1
            and isinstance(holders[0], Sum)
            and not all(index in free(term) for term in flat(holders[0], Sum))
        )

    def value(self, node, env):
        match node:
            case Access(tensor, subscripts):
                return self.arrays[tensor][tuple(env[x] if isinstance(x, str) else x for x in subscripts)]
            case Number(value):
                return value
            case Sum(terms):
                return self.seen(sum(sign * self.value(term, env) for sign, term in terms))
            case Product(factors):
                return self.seen(math.prod(self.value(f, env) for f in factors))
            case Call(name, args):
                return {"abs": abs, "max": max, "min": min}[name](*(self.value(x, env) for x in args))
            case Reduce(kind, index, body):
                # Other reductions' partial products count too, so every prefix must be small.
                terms = [self.value(body, at) for at in settings({index}, env)]
                if kind in ("sum", "prod"):
                    for n in range(len(terms)):
                        self.seen(KINDS[kind](terms[: n + 1]))
                return KINDS[kind](terms)
        raise TypeError(node)

    def run(self, program):
        for s in program.statements:
            result = self.arrays[s.tensor]
            new = np.empty(result.shape, object)
            for env in settings(s.left, {}):
                at = tuple(env[x] for x in s.left)
                x = self.total(s.value, env, free(s.value) - set(s.left))
                old = result[at]
                new[at] = self.seen({"": x, "+=": old + x, "*=": old * x}[s.update])
            self.arrays[s.tensor] = new


def shape_of(program, name):
    return tuple(EXTENTS[x] for x in program.shapes[name])


def arrays_of(program, seed):
    """Small whole numbers for all tensors, those that statements update or define included."""
    rng = np.random.default_rng(seed)
    return {name: np.asarray(rng.integers(-2, 3, shape_of(program, name))) for name in program.shapes}


def built(program, index=helve.index):
    """The tensors of the program, with its statements made by helve."""
    indices = {name: index(name) for name in EXTENTS}
    tensors = {name: helve.tensor(name, shape_of(program, name), program.dtype) for name in program.shapes}
    # An index that the program gives no range of its own subscripts some dimension alone: accesses have no arithmetic.

    def subscripts(given):
        return tuple(indices[x] if isinstance(x, str) else x for x in given)

    def expression(node):
        match node:
            case Access(tensor, given):
                return tensors[tensor][subscripts(given)]
            case Number(value):
                return value
            case Sum(terms):
                out = expression(terms[0][1])
                for sign, term in terms[1:]:
                    out = out + expression(term) if sign > 0 else out - expression(term)
                return out
            case Product(factors):
                out = expression(factors[0])
                for f in factors[1:]:
                    out = out * expression(f)
                return out
            case Call(name, args):
                values = [expression(x) for x in args]
                if not any(isinstance(x, helve.notation.Expression) for x in values):
                    return {"abs": abs, "max": max, "min": min}[name](*values)
                return getattr(T, name)(*values)
            case Reduce(kind, name, body):
                return getattr(helve, f"reduce_{kind}")(indices[name], expression(body))
        raise TypeError(node)

    for s in program.statements:
        tensor, at, value = tensors[s.tensor], subscripts(s.left), expression(s.value)
        match s.update:
            case "":
                tensor[at] = value
            case "+=":
                tensor[at] += value
            case "*=":
                tensor[at] *= value
    return tensors
