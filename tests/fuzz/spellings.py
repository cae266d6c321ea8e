"""A program's text with other spellings of the same: the parser makes the same program of both.

Functions inside the kernel, methods, implicit conversions, jumps and `&` are sugar that leaves nothing behind, so no
program has to run: the two are printed alike.
"""

import ast
import random


class _Respell(ast.NodeTransformer):
    """Spells random places of a kernel's text otherwise."""

    def __init__(self, rng, unsigned, share=0.4):
        self.rng = rng
        self._unsigned = unsigned
        self.share = share
        self.made = []
        self._subscripts = 0
        self._bits = 0

    def _takes(self, what):
        if self.rng.random() >= self.share:
            return False
        self.made.append(what)
        return True

    def visit_FunctionDef(self, node):
        node.body = self._statements(node.body)
        return node

    def visit_With(self, node):
        node.body = self._statements(node.body)
        return node

    def visit_For(self, node):
        if _names(node.iter) == {"threads"} and self._takes("thread"):
            call = ast.Call(ast.Attribute(node.iter.func.value, "thread", ast.Load()), [], [])
            return ast.With([ast.withitem(call, node.target)], self._statements(node.body))
        node.iter = self.visit(node.iter)
        node.body = self._statements(node.body, loop=True)
        return node

    def visit_While(self, node):
        node.test = self.visit(node.test)
        node.body = self._statements(node.body, loop=True)
        return node

    def visit_If(self, node):
        node.test = self.visit(node.test)
        node.body = self._statements(node.body)
        node.orelse = self._statements(node.orelse)
        return node

    def _statements(self, nodes, loop=False):
        out = []
        for i, node in enumerate(nodes):
            last = loop and i == len(nodes) - 1
            if last and isinstance(node, ast.If) and not node.orelse and self._takes("continue"):
                out += [ast.If(self.visit(node.test), [ast.Pass()], [ast.Continue()]), *self._statements(node.body)]
                continue
            out += self._statement(self.visit(node))
        return out

    def _statement(self, node):
        stores = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if not (stores or calls) or _names(node) & _HEADS or not self._takes("function"):
            return [node]
        name = f"helper_{len(self.made)}"
        define = ast.FunctionDef(name, ast.arguments([], [], None, [], [], None, []), [node], [], None)
        return [define, ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))]

    def visit_Subscript(self, node):
        node.value = self.visit(node.value)
        self._subscripts += 1
        node.slice = self.visit(node.slice)
        self._subscripts -= 1
        plain = isinstance(node.ctx, ast.Load) and not _slices(node.slice) and not self._subscripts
        if plain and isinstance(node.value, ast.Name) and self._takes("lambda"):
            parameter = ast.arguments([], [ast.arg("value")], None, [], [], None, [])
            return ast.Call(ast.Lambda(parameter, ast.Name("value", ast.Load())), [node], [])
        return node

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in _VALUES:  # an operand of an operation may have to be a name, and elements are no values there
            return node if name in _OPERATIONS else self.generic_visit(node)
        self.generic_visit(node)
        if name != "cast":
            return node
        value, dtype = node.args
        if dtype.value == "index":
            leaf = isinstance(value, ast.Subscript) or isinstance(value, ast.Name) and value.id not in self._unsigned
            return value if self._subscripts and not self._bits and leaf and self._takes("index") else node
        if _has(value, ast.Subscript) and self._takes("astype"):
            return ast.Call(ast.Attribute(value, "astype", ast.Load()), [dtype], [])
        if self._takes("Cast"):
            return ast.Call(ast.Attribute(node.func.value, "Cast", ast.Load()), [dtype, value], [])
        return node

    def visit_BinOp(self, node):
        return self._with_bits(node, (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor))

    def visit_UnaryOp(self, node):
        return self._with_bits(node, ast.Invert)

    def _with_bits(self, node, operators):
        """Operations on bits of a number that is no index are those of its own type: what they give becomes one."""
        bits = isinstance(node.op, operators)
        self._bits += bits
        self.generic_visit(node)
        self._bits -= bits
        return node

    def visit_BoolOp(self, node):
        flat = len(node.values) == 2 and not _has(node, ast.Subscript, ast.BoolOp, ast.Call)
        self.generic_visit(node)
        if not flat or not all(isinstance(value, ast.Compare) for value in node.values) or not self._takes("&"):
            return node
        return ast.BinOp(node.values[0], ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), node.values[1])


_HEADS = {"annotate_mesh_tensor", "may_alias", "assume", "annotate_layout"}
_VALUES = {"cast", "if_then_else", "min", "max", "abs", "exp", "sqrt"}
_OPERATIONS = {"update", "atomic_add", "atomic_max", "atomic_min", "copy", "copy_async", "Kernel", "misalignment"}


def _names(node):
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _has(node, *kinds):
    return any(isinstance(part, kinds) for part in ast.walk(node) if part is not node)


def _slices(node):
    return any(isinstance(part, ast.Slice) for part in ast.walk(node))


def respelled(text, seed):
    """(the text with other spellings, which ones)."""
    tree = ast.parse(text)
    # A name of an unsigned type takes no negative number beside it.
    unsigned = {each.arg for each in tree.body[-1].args.args if ast.unparse(each.annotation).startswith("T.uint")}
    rewrite = _Respell(random.Random(f"{seed}/spelling"), unsigned)
    tree.body[-1] = rewrite.visit(tree.body[-1])
    return ast.unparse(ast.fix_missing_locations(tree)), rewrite.made
