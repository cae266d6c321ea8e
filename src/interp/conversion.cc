// Conversions between dtypes.
// Every pair of kinds has one function; the target's width is data, so that int8 and int64 share it.
#include <cmath>

#include "helve/ir/expr/rounding.h"
#include "helve/support/diagnostic.h"
#include "operators.h"

namespace helve::interp {

namespace {

Scalar keep(Scalar v, DType, const Span&) { return v; }
Scalar round_float(Scalar v, DType to, const Span&) { return of_float(round_to(v.f, to)); }
Scalar wrap_integer(Scalar v, DType to, const Span&) { return of_int(wrap_to(v.i, to)); }
Scalar float_truth(Scalar v, DType, const Span&) { return of_int(v.f != 0); }

template <class T>
Scalar integer_to_float(Scalar v, DType to, const Span&) {
  return of_float(float_of(static_cast<T>(v.i), to));
}

/// Truncation, saturated to the range of the target; NaN gives 0.
Scalar float_to_integer(Scalar v, DType to, const Span&) {
  if (std::isnan(v.f)) return of_int(0);
  const double value = std::trunc(v.f);
  const int bits = to.code == TypeCode::UInt ? to.bits : to.bits - 1;
  if (value >= std::ldexp(1.0, bits)) return of_int(extreme_int(to, false));
  const double low = to.code == TypeCode::UInt ? 0.0 : -std::ldexp(1.0, bits);
  if (value <= low) return of_int(extreme_int(to, true));
  if (is_uint64(to)) return of_int(static_cast<int64_t>(static_cast<uint64_t>(value)));
  return of_int(static_cast<int64_t>(value));
}

Scalar uint64_to_index(Scalar v, DType, const Span& span) {
  if (v.i < 0) throw UserError(Code::IndexOverflow, span, {{"operation", "T.index"}});
  return v;
}

}  // namespace

Converter converter_of(DType from, DType to) {
  if (from.is_float()) {
    if (to == from && !from.is_small_float()) return keep;
    if (to.is_float()) return round_float;
    return to.is_bool() ? float_truth : float_to_integer;
  }
  if (to.is_float()) return is_uint64(from) ? integer_to_float<uint64_t> : integer_to_float<int64_t>;
  if (to.is_index()) return is_uint64(from) ? uint64_to_index : keep;
  return wrap_integer;
}

}  // namespace helve::interp
