"""Layouts of buffers: right ones, by the rules of the language, and wrong ones, each of which is HV0584."""

import math
import re

WARP = 32
# Name, shape and layout.
FRAGMENT = re.compile(r'\b(\w+) = T\.alloc_fragment\(\((\d+(?:, \d+)*),?\), "\w+"(, layout="[^"]*")?\)')


def of_memory(shape, rng):
    """Memory of a block or a thread: room between rows, columns first, tiles, or a swizzle over whole periods."""
    count = math.prod(shape)
    rows, columns = count // shape[-1], shape[-1]
    room = rng.choice([0, 1, 3, 4])
    if count % 128 == 0 and rng.random() < 0.4:
        return f"S[({count},) : (1,)] ^ Swizzle({rng.randint(1, 3)}, {rng.randint(0, 1)}, 3)"
    if rng.random() < 0.4:
        return _in_tiles(shape, rng)
    strides = (columns + room, 1) if rng.random() < 0.6 else (1, rows + room)
    return f"S[({rows}, {columns}) : {strides}]"


def _in_tiles(shape, rng):
    """One or two digits a dimension, in any order in memory, with room between and behind elements."""
    extents = []
    for n in shape:
        tile = rng.choice([1, 1, 2, 3, 4, 8]) if n > 1 else 1
        extents += [-(-n // tile), tile]
    strides, stride = [0] * len(extents), rng.choice([1, 1, 1, 2])
    for place in rng.sample(range(len(extents)), len(extents)):
        strides[place] = stride
        stride = stride * extents[place] + rng.choice([0, 0, 0, 1, 4])
    return f"S[{tuple(extents)} : {tuple(strides)}]"


def of_fragment(shape, threads, rng):
    """A fragment on all threads of the block; None where a few attempts find nothing that is right."""
    for _ in range(4):
        digits = (_of_all if rng.random() < 0.5 else _by_dimension)(shape, threads, rng)
        copies = threads // math.prod(n for n, axis in digits if axis == "tx")
        if math.prod(n for n, _ in digits) != math.prod(shape) or not _divides([n for n, _ in digits], shape):
            continue
        strides = {}
        counted = [(d, n) for d, (n, axis) in enumerate(digits) if axis == "tx"] + [("copies", copies)]
        if _share_a_warp(_count(counted, rng, strides)):
            _count([(d, n) for d, (n, axis) in enumerate(digits) if axis == "reg"], rng, strides)
            replica = f" + R[{copies} : {strides['copies']}@tx]" if copies > 1 else ""
            return _text(digits, [strides[d] for d in range(len(digits))]) + replica
    return None


def _text(digits, strides):
    """The iters of (extent, axis) with those strides."""
    extents = ", ".join(str(n) for n, _ in digits)
    places = ", ".join(f"{stride}@{axis}" for stride, (_, axis) in zip(strides, digits, strict=True))
    return f"S[({extents},) : ({places},)]" if len(digits) == 1 else f"S[({extents}) : ({places})]"


def _of_all(shape, threads, rng):
    """(extent, axis) of the digits of an element's number, whatever the dimensions."""
    held = math.gcd(math.prod(shape), threads)
    digits = [(held, "tx"), (math.prod(shape) // held, "reg")]
    rng.shuffle(digits)
    return digits


def _by_dimension(shape, threads, rng):
    """The same where each dimension is divided by itself."""
    digits = []
    for n in shape:
        held = rng.choice([d for d in range(1, n + 1) if n % d == 0 and threads % d == 0])
        threads //= held
        pair = [(held, "tx"), (n // held, "reg")]
        rng.shuffle(pair)
        digits += pair
    return digits


def _count(digits, rng, strides):
    """Numbers the places of (name, extent), the last fastest or in any order; the extents, fastest first."""
    order = digits[::-1]
    if rng.random() < 0.3:
        rng.shuffle(order)
    stride = 1
    for name, n in order:
        strides[name] = stride
        stride *= n
    return [n for _, n in order]


def _share_a_warp(extents):
    """Do the digits of threads, the fastest first, divide the lanes of a warp, and then warps?"""
    products = [math.prod(extents[:k]) for k in range(1, len(extents) + 1)]
    return all(WARP % n == 0 or n % WARP == 0 for n in products)


def _divides(extents, shape):
    """Do digits of these extents, or parts of them, multiply to each dimension of the shape?"""
    ends = {math.prod(list(n)[:k]) for n in (extents, shape) for k in range(1, len(n) + 1)}
    ends = sorted(ends)
    return all(b % a == 0 for a, b in zip(ends, ends[1:]))


def wrong(shape, rng):
    """A layout of a fragment that breaks one rule, and nothing else before it; None where no kind of them fits."""
    count = math.prod(shape)
    texts = []
    if count:
        texts += [f"S[({count},) : (1@reg,)] + 2@reg", f"S[({count},) : (1@reg,)] ^ Swizzle(1, 0, 1)",
                  f"S[({count},) : (1@reg,)] + R[2 : {count}@reg]"]
    if count > 1:
        texts += [f"S[({count},) : (2@reg,)]", f"S[({count},) : (2@tx,)]", f"S[({count},) : (-1@reg,)]"]
    if not _share_a_warp([max(count, 1)]):
        texts.append(f"S[({count},) : (1@tx,)] + R[{WARP} : {count}@tx]")
    pairs = [(a, count // a) for a in range(2, count) if count % a == 0]
    texts += [f"S[({a}, {b}) : (1@reg, 1@tx)]" for a, b in pairs if not _divides([a, b], shape)]
    return rng.choice(texts) if texts else None


def misplaced(text, names, rng):
    """The program with a wrong layout for one of its fragments of these names; None where none can have one."""
    found = [alloc for alloc in FRAGMENT.finditer(text) if alloc[1] in names]
    if not found:
        return None
    alloc = rng.choice(found)
    layout = wrong([int(n) for n in alloc[2].split(", ")], rng)
    if layout is None:
        return None
    plain = alloc[0].replace(alloc[3] or "", "")
    return text[: alloc.start()] + f'{plain[:-1]}, layout="{layout}")' + text[alloc.end() :]
