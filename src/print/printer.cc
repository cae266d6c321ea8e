// Statements and functions as lines of Python.
// One overload a node; a node without one does not compile.
#include "helve/print/printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "helve/ir/expr/multiprocessors.h"
#include "helve/support/text.h"
#include "names.h"
#include "spelling.h"

namespace helve {

namespace {

/// A part of a line whose node has a note.
struct Mark {
  size_t begin, end;  ///< columns of the text
  int number;
};

struct MarkedText {
  std::string text;
  std::vector<Mark> marks;  ///< inner ones first
};

/// The text without its marks, which nest.
MarkedText read_marks(const std::string& marked) {
  MarkedText out;
  std::vector<size_t> open;
  for (size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] == kMarkBegin) {
      open.push_back(out.text.size());
    } else if (marked[i] == kMarkEnd) {
      const size_t close = marked.find(kMarkEnd, i + 1);
      out.marks.push_back({open.back(), out.text.size(), std::stoi(marked.substr(i + 1, close - i - 1))});
      open.pop_back();
      i = close;
    } else {
      out.text += marked[i];
    }
  }
  return out;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options), names_(options), spell_(names_) {}

  std::string function(const Function& f) {
    const std::string name = names_.reserve(f.name);
    const auto is_of_shapes = [](const VarRef& dim) { return !is_multiprocessors(*dim); };
    for (const VarRef& dim : f.dims) {
      if (!is_of_shapes(dim)) continue;
      const std::string text = spell_.name(*dim);
      document_.line(fmt::format("{} = T.dyn({})", text, quoted(text)));
    }
    if (std::any_of(f.dims.begin(), f.dims.end(), is_of_shapes)) document_.line("");
    // Two axes named x and y are what annotate_mesh_tensor makes by itself.
    const bool in_annotation = f.mesh && !f.mesh_tensors.empty() && f.mesh->names == std::vector<std::string>{"x", "y"};
    document_.line(f.mesh && !in_annotation ? fmt::format("@T.prim_func(mesh={})", Spelling::mesh(*f.mesh))
                                            : "@T.prim_func");
    document_.line(
        fmt::format("def {}({}):", name, join(f.params, ", ", [&](const Param& p) { return parameter(p); })));
    TextDocument::Indent indent = document_.indent();
    if (!f.mesh_tensors.empty()) {
      const std::string extents =
          in_annotation ? fmt::format(", nrows={}, ncols={}", f.mesh->extents[0], f.mesh->extents[1]) : "";
      document_.line(fmt::format("T.annotate_mesh_tensor({}{})", spell_.placement(f.mesh_tensors), extents));
    }
    for (const MayAlias& each : f.may_alias) {
      const auto name_of = [&](const BufferRef& b) { return spell_.name(*b); };
      document_.line(fmt::format("T.may_alias({})", join(each.buffers, ", ", name_of)));
    }
    for (const Assumption& each : f.assumptions) {
      document_.line(fmt::format("T.assume({})", spell_.expr(each.condition)));
    }
    const Seq* body = as<Seq>(f.body);
    const bool declares = !f.mesh_tensors.empty() || !f.may_alias.empty() || !f.assumptions.empty();
    if (!declares || !body || !body->stmts.empty()) write(f.body);
    return document_.text();
  }

  std::string statement(const Stmt& s) {
    write(s);
    return document_.text();
  }

  std::string expression(const Expr& e) { return spell_.expr(e); }

 private:
  std::string parameter(const Param& param) {
    if (const BufferRef* b = std::get_if<BufferRef>(&param)) {
      const std::string name = spell_.name(**b);
      return name + ": " + spell_.tensor_type(**b);
    }
    const Var& var = *std::get<VarRef>(param);
    return fmt::format("{}: T.{}", spell_.name(var), to_string(var.dtype));
  }

  void write(const Stmt& s) {
    dispatch(s, [&](const auto& node) {
      for_each_field<std::remove_cvref_t<decltype(node)>>([&](const auto& each) {
        if (each.defines) define(node.*each.member);
      });
      write(node);
    });
  }

  template <class T>
  void define(const Ref<T>& object) {
    if (object) names_.define(object.get());
  }
  void define(const std::vector<VarRef>& vars) {
    for (const VarRef& var : vars) define(var);
  }
  template <class T>
  void define(const T&) {}  // a field that holds no object

  /// The indented body of a compound statement.
  void block(const Stmt& s) {
    TextDocument::Indent indent = document_.indent();
    write(s);
  }

  void write(const Seq& n) {
    if (n.stmts.empty()) line(n, "pass");
    for (const Stmt& s : n.stmts) write(s);
  }

  void write(const Alloc& n) {
    const std::string name = spell_.name(*n.buffer);
    line(n, name + " = " + spell_.allocation(*n.buffer));
  }

  void write(const Peer& n) {
    const std::string value = fmt::format("T.peer({}, {})", spell_.name(*n.source), spell_.tuple(n.core));
    line(n, fmt::format("{} = {}", spell_.name(*n.buffer), value));
  }

  void write(const Bind& n) {
    const std::string value = spell_.typed(n.value);  // the value is named before the variable is
    line(n, fmt::format("{} = {}", spell_.name(*n.var), value));
  }

  template <class N>
  void write_store(const N& n) {
    const std::string target = spell_.subscript(*n.buffer, n.indices);
    line(n, target + " = " + spell_.value_for(n.value, n.buffer->dtype));
  }
  void write(const Store& n) {
    if (n.piece) {
      const std::string target = spell_.subscript(*n.buffer, n.indices);
      const std::string value = spell_.value_for(n.value, n.buffer->dtype);
      return line(n, fmt::format("T.store_nontemporal({}, {}, {})", target, value, n.piece));
    }
    if (n.width) {
      const std::string target = spell_.subscript(*n.buffer, n.indices);
      const std::string value = spell_.value_for(n.value, n.buffer->dtype);
      return line(n, fmt::format("T.store_vector({}, {}, {})", target, value, n.width));
    }
    if (n.mode == StoreMode::Write) return write_store(n);
    const std::string target = spell_.subscript(*n.buffer, n.indices);
    const std::string value = spell_.value_for(n.value, n.buffer->dtype);
    if (n.is_update()) return line(n, fmt::format("T.update({}, {}, \"{}\")", target, value, to_string(n.mode)));
    if (n.previous) {
      return line(n, fmt::format("{} = T.{}({}, {}, return_prev=True)", spell_.name(*n.previous), to_string(n.mode),
                                 target, value));
    }
    line(n, fmt::format("T.{}({}, {})", to_string(n.mode), target, value));
  }
  void write(const Prefetch& n) { line(n, fmt::format("T.prefetch({})", spell_.subscript(*n.buffer, n.indices))); }
  void write(const Report& n) {
    std::vector<std::string> parts{quoted(n.text)}, names, around;
    for (size_t i = 0; i < n.values.size(); ++i) {
      const std::string value = spell_.typed(n.values[i]);
      if (static_cast<int64_t>(i) < n.around) {
        around.push_back(fmt::format("{}: {}", quoted(n.names[i]), value));
      } else {
        parts.push_back(value);
        names.push_back(quoted(n.names[i]));
      }
    }
    const auto listed = [](const std::vector<std::string>& items) {
      return join(items, ", ", [](const std::string& item) { return item; });
    };
    parts.push_back(fmt::format("names=[{}]", listed(names)));
    parts.push_back(fmt::format("at={{{}}}", listed(around)));
    line(n, fmt::format("T.{}({})", n.fault ? "fail" : "print", listed(parts)));
  }
  void write(const Breakpoint& n) {
    std::string shown;
    for (size_t i = 0; i < n.names.size(); ++i) {
      const size_t k = i - n.values.size();
      const std::string value = i < n.values.size() ? spell_.typed(n.values[i]) : spell_.name(*n.buffers[k].buffer);
      shown += fmt::format("{}{}: {}", i ? ", " : "", quoted(n.names[i]), value);
    }
    line(n, fmt::format("T.breakpoint({{{}}})", shown));
  }
  void write(const TileStore& n) { write_store(n); }

  void write(const For& n) {
    std::string inside;
    switch (n.loop) {
      case LoopKind::Serial:
      case LoopKind::Unroll:
      case LoopKind::Vectorized: inside = spell_.bounds(n.begins[0], n.extents[0]); break;
      case LoopKind::Pipelined:
        inside = fmt::format("{}, num_stages={}", spell_.bounds(n.begins[0], n.extents[0]), n.num_stages);
        break;
      case LoopKind::Parallel: inside = bound_items(n); break;
      case LoopKind::Thread: inside = spell_.bounds(n.begins[0], n.extents[0]); break;
      case LoopKind::Persistent: inside = "[" + bound_items(n) + "]"; break;
    }
    if (n.scheduled) inside += ", scheduled=True";
    if (n.rolled) inside += ", rolled=True";
    line(n, fmt::format("for {} in T.{}({}):", spell_.targets(n.vars), to_string(n.loop), inside));
    block(n.body);
  }

  std::string bound_items(const For& n) {
    std::string out;
    for (size_t d = 0; d < n.vars.size(); ++d) {
      if (d) out += ", ";
      out += spell_.bound_item(n.begins[d], n.extents[d]);
    }
    return out;
  }

  void write(const ForTiles& n) {
    const std::string inside = spell_.name(*n.buffer) + (n.parallel ? ", parallel=True" : "");
    line(n, fmt::format("for {} in T.foreach_tiles({}):", spell_.targets(n.vars), inside));
    block(n.body);
  }

  void write(const While& n) {
    line(n, fmt::format("while {}:", spell_.typed(n.condition)));
    block(n.body);
  }

  void write(const If& n) { write_if(n, "if"); }

  void write_if(const If& n, const char* word) {
    line(n, fmt::format("{} {}:", word, spell_.typed(n.condition)));
    block(n.then_body);
    if (!n.else_body) return;
    if (const If* next = as<If>(n.else_body)) return write_if(*next, "elif");
    document_.line("else:");
    block(n.else_body);
  }

  void write(const Kernel& n) {
    std::string inside = join(n.extents, ", ", [&](const Expr& e) { return spell_.expr(e); });
    if (n.threads != 128) inside += fmt::format("{}threads={}", inside.empty() ? "" : ", ", n.threads);
    if (n.cluster != 1) inside += fmt::format("{}cluster={}", inside.empty() ? "" : ", ", n.cluster);
    if (n.producers != 0) inside += fmt::format("{}producers={}", inside.empty() ? "" : ", ", n.producers);
    if (!n.registers.empty()) {
      inside += fmt::format("{}registers=[{}]", inside.empty() ? "" : ", ", fmt::join(n.registers, ", "));
    }
    const std::string vars = spell_.targets(n.vars);
    line(n, fmt::format("with T.Kernel({}) as {}:", inside, n.vars.size() == 1 ? vars : "(" + vars + ")"));
    block(n.body);
  }

  void write(const Role& n) {
    const std::string registers = n.registers ? fmt::format(", registers={}", n.registers) : "";
    line(n, fmt::format("with T.role({}, {}{}{}):", n.first, n.threads, registers, n.elect ? ", elect=True" : ""));
    block(n.body);
  }

  void write(const Outline& n) {
    line(n, "with T.outline():");
    block(n.body);
  }

  void write(const TileOp& n) { line(n, spell_.call(n)); }

  /// One line of statement `n`, followed by the notes on expressions in it and on itself.
  void line(const StmtNode& n, const std::string& marked_text) {
    const MarkedText text = read_marks(marked_text);
    document_.line(text.text);
    for (const Mark& mark : text.marks) underline(mark.begin, mark.end, names_.note_of(mark.number));
    if (auto note = options_.notes.find(&n); note != options_.notes.end()) underline(0, text.text.size(), note->second);
  }

  /// Carets under the columns [begin, end) of the line above, after the "# " that makes them a comment.
  void underline(size_t begin, size_t end, const std::string& note) {
    begin = std::max<size_t>(begin, 2);
    end = std::max(end, begin + 1);
    document_.line("#" + std::string(begin - 1, ' ') + std::string(end - begin, '^') + " " + one_line(note));
  }

  const PrintOptions& options_;
  NameTable names_;
  Spelling spell_;
  TextDocument document_;
};

}  // namespace

std::string print(const FunctionRef& f, const PrintOptions& options) { return Printer(options).function(*f); }

std::string print(const Stmt& s, const PrintOptions& options) { return Printer(options).statement(s); }

std::string print_expr(const Expr& e) {
  const PrintOptions none;
  return Printer(none).expression(e);
}

}  // namespace helve
