// Buffers, regions and statements in Python.
// Classes and properties come from the field declarations, builders are those of stmt.h; nothing is decided here.
#include <fmt/format.h>

#include "bindings.h"
#include "casters.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/thread_steps.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/report.h"

namespace helve::python {

namespace py = pybind11;

namespace {

void bind_buffers(py::module_& module) {
  bind_node<Buffer, Storage>(module, "Buffer", "A buffer: element type, scope, logical shape, tile and strides.");
  py::class_<Range>(module, "Range", "`extent` elements from `begin`; a point drops its dimension.")
      .def(py::init(
               [](Expr begin, Expr extent, bool point) { return Range{std::move(begin), std::move(extent), point}; }),
           py::arg("begin"), py::arg("extent"), py::arg("point") = false)
      .def_readonly("begin", &Range::begin)
      .def_readonly("extent", &Range::extent)
      .def_readonly("point", &Range::point);
  py::class_<Region>(module, "Region", "A box of a buffer.")
      .def(py::init([](BufferRef buffer, std::vector<Range> ranges) {
             return Region{std::move(buffer), std::move(ranges)};
           }),
           py::arg("buffer"), py::arg("ranges"))
      .def_readonly("buffer", &Region::buffer)
      .def_readonly("ranges", &Region::ranges)
      .def_property_readonly("shape", method(&Region::shape))
      .def_property_readonly("whole", method(&Region::whole));
  py::class_<IndexMap>(module, "IndexMap", "A function of one index.")
      .def(py::init([](VarRef var, Expr value) {
             return IndexMap{std::move(var), std::move(value)};
           }),
           py::arg("var"), py::arg("value"))
      .def_readonly("var", &IndexMap::var)
      .def_readonly("value", &IndexMap::value);
  module.def("whole_region", &whole_region, py::arg("buffer"));
  module.def("default_tile", &default_tile, py::arg("rank"), "The tile of T.alloc_shared_tiles without `tile_size`.");
  module.def("make_buffer", &make_buffer, py::arg("name"), py::arg("dtype"), py::arg("scope"), py::arg("shape"),
             py::arg("tile") = std::vector<int64_t>{}, py::arg("strides") = std::vector<Expr>{},
             py::arg("span") = Span{});
  module.def("as_sorted", &as_sorted, py::arg("buffer"),
             "The parameter with the promise that the elements of an argument do not decrease.");
  module.def("with_layout", &with_layout, py::arg("buffer"), py::arg("layout"), py::arg("span"),
             "The buffer of shared memory, or the fragment, with a layout.");
  module.def("at_offset", &at_offset, py::arg("buffer"), py::arg("offset"), py::arg("span"),
             "The buffer of shared memory at an offset in bytes.");
  module.def("with_slots", &with_slots, py::arg("buffer"), py::arg("slots"), py::arg("span"),
             "The buffer of shared memory as so many slots of a ring.");
  module.def("at_place", &at_place, py::arg("buffer"), py::arg("place"),
             "The buffer of a kernel at a place: registers, packed, memory, stack.");
}

void bind_nodes(py::module_& module) {
  py::class_<StmtNode, Node, Ref<StmtNode>>(module, "Stmt", "A statement.");
  bind_node<Seq, StmtNode>(module, "Seq", "Statements in order.");
  bind_node<Alloc, StmtNode>(module, "Alloc", "Brings a buffer into being.");
  bind_node<Peer, StmtNode>(module, "Peer", "Names what a buffer is on another core.");
  bind_node<Bind, StmtNode>(module, "Bind", "Names a scalar value.");
  bind_node<Store, StmtNode>(module, "Store", "Stores one element, or combines a value with it.");
  bind_node<Prefetch, StmtNode>(module, "Prefetch", "Asks for an element that is read soon.");
  bind_node<Report, StmtNode>(module, "Report", "Prints a line, or ends the call with a fault.");
  bind_node<Breakpoint, StmtNode>(module, "Breakpoint", "Stops a run of the interpreter.");
  bind_node<TileStore, StmtNode>(module, "TileStore", "Stores a tile elementwise.");
  bind_node<For, StmtNode>(module, "For", "A rectangular loop.");
  bind_node<ForTiles, StmtNode>(module, "ForTiles", "A loop over the tiles of a buffer.");
  bind_node<While, StmtNode>(module, "While", "A loop under a condition.");
  bind_node<If, StmtNode>(module, "If", "A branch.");
  bind_node<Kernel, StmtNode>(module, "Kernel", "A launch over a grid.");
  bind_node<Role, StmtNode>(module, "Role", "What a part of the block's threads executes.");
  bind_node<Outline, StmtNode>(module, "Outline", "Statements that become a function of their own.");
  bind_node<TileOp, StmtNode>(module, "TileOp", "A tile operation of the table.");
}

TileOperand operand_of(const TileParam& param, py::handle value) {
  switch (param.kind) {
    case ParamKind::In:
    case ParamKind::Out:
    case ParamKind::InOut: return py::cast<Region>(value);
    case ParamKind::Source:
      if (py::isinstance<Region>(value)) return py::cast<Region>(value);
      return py::cast<Expr>(value);
    case ParamKind::Value: return py::cast<Expr>(value);
    case ParamKind::Coord: return py::cast<std::vector<Expr>>(value);
    case ParamKind::Index: return py::cast<Expr>(value);
    case ParamKind::Map:
      if (value.is_none()) return false;
      return py::cast<IndexMap>(value);
    case ParamKind::Integer: return py::cast<int64_t>(value);
    case ParamKind::Flag: return py::cast<bool>(value);
    case ParamKind::Text:
    case ParamKind::Axes: return py::cast<std::string>(value);
    case ParamKind::Layout: return py::cast<Layout>(value);
    case ParamKind::Barriers:
      if (value.is_none()) return false;
      return py::cast<Region>(value);
  }
  __builtin_unreachable();
}

Stmt make_tile_op(TileOpcode op, const std::vector<py::object>& values, Span span, std::vector<Span> places) {
  const TileOpRow& row = row_of(op);
  if (values.size() != row.params.size())
    throw py::type_error(fmt::format("'{}' takes {} operands", row.name, row.params.size()));
  std::vector<TileOperand> operands;
  for (size_t i = 0; i < values.size(); ++i) operands.push_back(operand_of(row.params[i], values[i]));
  return tile_op(op, std::move(operands), span, std::move(places));
}

}  // namespace

void bind_stmt(py::module_& module) {
  bind_buffers(module);
  bind_nodes(module);
  const Span nowhere;
  module.def("seq", &seq, py::arg("stmts"), py::arg("span") = nowhere);
  module.def("alloc", &alloc, py::arg("buffer"), py::arg("span") = nowhere);
  module.def("peer", &peer, py::arg("buffer"), py::arg("source"), py::arg("core"), py::arg("span") = nowhere);
  module.def(
      "declare_again",
      [](const BufferRef& buffer, std::string name, Span span) {
        Ref<Buffer> out = make_ref<Buffer>(*buffer);
        out->name = std::move(name);
        out->span = span;
        return BufferRef(out);
      },
      py::arg("buffer"), py::arg("name"), py::arg("span"), "A new buffer with the declaration of `buffer`.");
  module.def("bind", &bind, py::arg("var"), py::arg("value"), py::arg("span") = nowhere);
  module.def("store", &store, py::arg("buffer"), py::arg("indices"), py::arg("value"), py::arg("span") = nowhere,
             py::arg("mode") = StoreMode::Write);
  module.def("fetch", &fetch, py::arg("previous"), py::arg("buffer"), py::arg("indices"), py::arg("value"),
             py::arg("mode"), py::arg("span") = nowhere,
             "An atomic store that names what stood in the element before.");
  module.def("breakpoint", &breakpoint, py::arg("names"), py::arg("values"), py::arg("buffers"),
             py::arg("span") = nowhere);
  module.def("update", &update, py::arg("buffer"), py::arg("indices"), py::arg("value"), py::arg("mode"),
             py::arg("span") = nowhere);
  module.def("store_vector", &store_vector, py::arg("buffer"), py::arg("indices"), py::arg("value"), py::arg("width"),
             py::arg("span") = nowhere);
  module.def("store_nontemporal", &store_nontemporal, py::arg("buffer"), py::arg("indices"), py::arg("value"),
             py::arg("piece"), py::arg("span") = nowhere);
  module.def("prefetch", &prefetch, py::arg("buffer"), py::arg("indices"), py::arg("span") = nowhere);
  module.attr("MOST_REPORTED") = kMostReported;
  module.def("report", &report, py::arg("fault"), py::arg("text"), py::arg("names"), py::arg("values"),
             py::arg("around"), py::arg("span") = nowhere);
  module.def("tile_store", &tile_store, py::arg("buffer"), py::arg("indices"), py::arg("value"),
             py::arg("span") = nowhere);
  module.def("for_loop",
             py::overload_cast<LoopKind, std::vector<VarRef>, std::vector<Expr>, std::vector<Expr>, Stmt, int, Span,
                                bool>(&for_loop),
             py::arg("kind"), py::arg("vars"), py::arg("begins"), py::arg("extents"), py::arg("body"),
             py::arg("num_stages") = 1, py::arg("span") = nowhere, py::arg("scheduled") = false);
  module.def("for_tiles", &for_tiles, py::arg("buffer"), py::arg("vars"), py::arg("parallel"), py::arg("body"),
             py::arg("span") = nowhere);
  module.def("while_loop", &while_loop, py::arg("condition"), py::arg("body"), py::arg("span") = nowhere);
  module.def(
      "if_then",
      [](Expr condition, Stmt then_body, std::optional<Stmt> else_body, Span span) {
        return if_then(std::move(condition), std::move(then_body), std::move(else_body).value_or(Stmt()), span);
      },
      py::arg("condition"), py::arg("then_body"), py::arg("else_body") = py::none(), py::arg("span") = nowhere);
  module.def(
      "kernel",
      [](std::vector<VarRef> vars, std::vector<Expr> extents, int64_t threads, Stmt body, Span span, int64_t cluster,
         int64_t producers, std::vector<int64_t> registers) {
        const Stmt out = kernel(std::move(vars), std::move(extents), threads, std::move(body), std::move(span));
        return Stmt(copy_with(*as<Kernel>(out), [&](Kernel& kernel) {
          kernel.cluster = cluster;
          kernel.producers = producers;
          kernel.registers = std::move(registers);
        }));
      },
      py::arg("vars"), py::arg("extents"), py::arg("threads"), py::arg("body"),
             py::arg("span") = nowhere, py::arg("cluster") = 1, py::arg("producers") = 0,
             py::arg("registers") = std::vector<int64_t>());
  module.def("role", &role, py::arg("first"), py::arg("threads"), py::arg("registers"), py::arg("elect"),
             py::arg("body"), py::arg("span") = nowhere);
  module.def("outline", &outline, py::arg("body"), py::arg("span") = nowhere);
  module.def("thread_steps", &thread_steps, py::arg("loop"), py::arg("names") = MeetingNames{},
             "A loop over threads with barriers inside as statements of the block with loops without. `names` are what "
             "meetings of threads are called, by their spans. Raises HV0307.");
  module.def("rolled", &rolled, py::arg("loop"), "The serial or parallel loop, rolled.");
  module.def("redeclare_buffers", [](const Stmt& s, const std::vector<std::pair<BufferRef, BufferRef>>& pairs) {
    BufferMap buffers;
    for (const auto& [from, to] : pairs) buffers.emplace(from.get(), to);
    return redeclare_buffers(s, buffers);
  }, py::arg("stmt"), py::arg("buffers"), "The statement with buffers in the places of others, allocations included.");
  module.def("tile_op", &make_tile_op, py::arg("op"), py::arg("operands"), py::arg("span") = nowhere,
             py::arg("places") = std::vector<Span>{});
}

}  // namespace helve::python
