"""Copies by TMA, beside threads that write and read the same memory; other machines choose the implementation."""

import program as p
import scalars

BY_TMA = ", dispatch='tma'"  # as the text of a program has it
BYTES = {"float64": 8, "float32": 4, "int32": 4, "float16": 2, "int8": 1, "uint8": 1}


class Bulk:
    """Makers of statements, over what `Generator` knows."""

    def rows_by_tma(self, variables, counts, cut):
        """Rows go through shared memory, where threads change some, to a tensor of which each block has a part."""
        rng = self.aside
        dtype = rng.choice(list(BYTES))
        columns = 16 // BYTES[dtype] * rng.choice([1, 1, 2, 4])
        rows, stages = rng.choice([1, 2, 3, 4]), rng.choice([1, 1, 2])
        source = self.whole_param([rows, columns], dtype)
        out = self.whole_param([*(max(counts[d], 1) for d in cut), rows, columns], dtype)
        x = self.declare(self.fresh("B"), [stages, columns], dtype, "shared")
        k = p.Var(self.fresh("k"))
        stage = p.Apply("%", "index", [k, p.index(stages)]) if stages > 1 else p.index(0)
        # Rows of their own, or one that is written again.
        row = rng.choice([k, k, k, p.Apply("//", "index", [k, p.index(2)]), p.index(0)])
        there = [*variables, row]
        body = []
        if rng.random() < 0.7:
            body += self.moved(self.row(source, [k]), self.row(x, [stage]))
        else:
            body.append(self.on_row(columns, lambda i: p.Store(x, [stage, i], p.Load(source, [k, i]))))
        if rng.random() < 0.6:
            body.append(self.on_row(columns, lambda i: p.Store(x, [stage, i], self.row_changed(x, [stage, i], k))))
        body += self.moved(self.row(x, [stage]), self.row(out, there))
        if rng.random() < 0.3:  # threads read and write what TMA has written
            at = lambda i: [*there, i]  # noqa: E731
            body.append(self.on_row(columns, lambda i: p.Store(out, at(i), self.row_changed(out, at(i), k))))
        return [p.Alloc(x), p.For("serial", [k], [0], [rows], body)]

    def whole_param(self, shape, dtype):
        """A compact tensor of constant extents at an aligned address."""
        buffer = self.declare(self.fresh("A"), shape, dtype, "param")
        self.params.append(buffer)
        return buffer

    def row(self, buffer, at):
        return p.Region(buffer, [*(p.Span(e, 1, True) for e in at), p.Span(0, self.shapes[buffer][-1])])

    def moved(self, of, to):
        rng = self.aside
        keywords = {"dispatch": "tma"} if rng.random() < 0.85 else {}
        if rng.random() < 0.4:
            return [p.Op("copy_async", [of, to], keywords), p.Op("wait_async", [])]
        return [p.Op("copy", [of, to], keywords)]

    def row_changed(self, buffer, at, k):
        """The element, as it is or with the number of the row in it."""
        value = p.Load(buffer, at)
        if buffer.dtype in ("int8", "uint8"):
            return value
        return p.Apply("max" if scalars.is_float(buffer.dtype) else "+", buffer.dtype, [value, p.Cast(buffer.dtype, k)])

    def on_row(self, columns, store):
        i = p.Var(self.fresh("i"))
        return p.For("Parallel", [i], [0], [columns], [store(i)])
