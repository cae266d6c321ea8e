// A region of a buffer in the place of a tensor parameter.
// A function that is put into another one names elements of its parameters; a view says which elements of the other's
// buffers these are, so that the function's text needs no memory of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// A dimension of the buffer: one place, or the elements `begin + step * x` of dimension `of` of the parameter.
struct ViewDim {
  std::optional<size_t> of;
  Expr begin;
  int64_t step = 1;
};

struct View {
  BufferRef buffer;
  std::vector<ViewDim> dims;

  /// Are neighbours of the parameter neighbours of the buffer, and its dimensions in their order? Regions have no other
  /// form.
  bool is_box() const;
};
using Views = std::unordered_map<const Buffer*, View>;

/// The statement with accesses of the views' buffers in the place of those of the parameters. Views of which it has
/// regions are boxes.
Stmt with_views(const Stmt& s, const Views& views);

/// Is there a region of the parameter in the statement?
bool has_region_of(const Stmt& s, const Buffer& parameter);

}  // namespace helve
