// Checked integers and shapes, and flattening between coordinates and indices.
// Kept apart from the algebra so that each operation states only its own law.
#include "integers.h"

#include "helve/layout/notation.h"
#include "helve/support/text.h"

namespace helve {

namespace layout_detail {

void refuse_overflow(std::string_view what) { throw_layout_error(Code::LayoutOverflow, {{"what", std::string(what)}}); }

void refuse_shape(const std::vector<int64_t>& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] >= 1) continue;
    throw_layout_error(Code::ShapeExtent,
                       {{"shape", shape_text(shape)}, {"extent", shape[d]}, {"dim", static_cast<int64_t>(d)}});
  }
  refuse_overflow("the number of elements of shape " + shape_text(shape));
}

void refuse_size(const Layout& layout, const std::vector<int64_t>& shape, int64_t product) {
  throw_layout_error(Code::LayoutSize, {{"shape", shape_text(shape)}, {"product", product}, {"size", layout.size()}});
}

void StepCounter::refuse() const {
  throw_layout_error(
      Code::LayoutBudget,
      {{"operation", std::string(operation_)}, {"layout", to_string(layout_)}, {"limit", kLayoutStepLimit}});
}

}  // namespace layout_detail

int64_t flatten(const std::vector<int64_t>& coordinate, const std::vector<int64_t>& shape) {
  layout_detail::shape_product(shape);
  if (coordinate.size() != shape.size()) {
    throw_layout_error(Code::ShapeRank, {{"operation", "flatten"},
                                         {"left", "coordinate " + shape_text(coordinate)},
                                         {"right", "shape " + shape_text(shape)}});
  }
  int64_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (coordinate[d] < 0 || coordinate[d] >= shape[d]) {
      throw_layout_error(Code::CoordinateBounds,
                         {{"coordinate", shape_text(coordinate)}, {"shape", shape_text(shape)}});
    }
    index = index * shape[d] + coordinate[d];
  }
  return index;
}

std::vector<int64_t> unflatten(int64_t index, const std::vector<int64_t>& shape) {
  if (index < 0 || index >= layout_detail::shape_product(shape)) {
    throw_layout_error(Code::CoordinateBounds,
                       {{"coordinate", shape_text(std::vector{index})}, {"shape", shape_text(shape)}});
  }
  std::vector<int64_t> coordinate(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    coordinate[d] = index % shape[d];
    index /= shape[d];
  }
  return coordinate;
}

}  // namespace helve
