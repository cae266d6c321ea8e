// A layout as an exact relation.
// The second oracle of the layout algebra, and the way by which placements enter exact questions.
#pragma once

#include "helve/arith/relation.h"
#include "helve/layout/layout.h"

namespace helve {

/// { coordinate in `shape` -> coordinates on `axes` }: one image for each replica, swizzled. Axes that the layout does
/// not use are 0. Throws ShapeError when the shape is not admitted.
IntegerRelation to_relation(const ExactEngine& engine, const Layout& layout, const std::vector<int64_t>& shape,
                            const Axes& axes);
/// Over the layout's own axes.
IntegerRelation to_relation(const ExactEngine& engine, const Layout& layout, const std::vector<int64_t>& shape);

/// The same in isl's notation: "{ [x0, x1] -> [laneid, m] : ... }", the entries of the image named as the axes (with an
/// underscore after a word that isl reserves). Throws UnsupportedError too, beyond kLayoutStepLimit operations of isl.
std::string relation_text(const Layout& layout, const std::vector<int64_t>& shape);

}  // namespace helve
