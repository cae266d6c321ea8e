// What can be wrong with a question put to a layout.
// Front ends give each kind its own exception class, so the kind is part of the type and follows from the code's
// number.
#pragma once

#include "helve/support/diagnostic.h"

namespace helve {

/// Any refusal of the layout room (codes 500 to 599); itself thrown for names and notation (500 to 509).
class LayoutError : public UserError {
 public:
  using UserError::UserError;
};

/// Extents, shapes or ranks that do not fit (510 to 519).
class ShapeError : public LayoutError {
 public:
  using LayoutError::LayoutError;
};

/// A cut that does not fall on a digit boundary (520 to 529).
class DivisibilityError : public LayoutError {
 public:
  using LayoutError::LayoutError;
};

/// Two logical indices share a point where that cannot be (530 to 539).
class InjectivityError : public LayoutError {
 public:
  using LayoutError::LayoutError;
};

/// A coordinate or region outside its shape (540 to 549).
class BoundsError : public LayoutError {
 public:
  using LayoutError::LayoutError;
};

/// No layout of the required form exists, or deciding it is beyond the limits (550 to 569).
class UnsupportedError : public LayoutError {
 public:
  using LayoutError::LayoutError;
};

/// Throws the class that belongs to the code's number. Layout code knows no source position; callers add one.
[[noreturn]] void throw_layout_error(Code code, DiagnosticArgs args, Span span = {});

}  // namespace helve
