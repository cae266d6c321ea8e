// Reports of a kernel in CUDA C.
// A line is one call of printf. A fault is left in memory of the host, by the first thread that has one, and the thread
// goes on: a trap would take the context, and with it all memory of the process on the device.
#include "helve/ir/tensor/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr PreludePart kFault{"fault", "", R"(
// The first fault of a launch is written between the two: the number of its report and its values.
__device__ __forceinline__ bool helve_begin_fault(long long* fault) {
    return atomicCAS((unsigned long long*)fault, 0ull, 1ull) == 0ull;
}
__device__ __forceinline__ void helve_end_fault(long long* fault) {
    __threadfence_system();
    *(volatile long long*)fault = 2;
}
)"};

/// A string of C.
std::string literal(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

/// A value in 64 bits.
std::string KernelEmitter::word(const Expr& value) {
  if (value->dtype.is_float()) return fmt::format("__double_as_longlong({})", text(value));
  return fmt::format("(long long){}", text(value, c::kUnary));
}

void KernelEmitter::report(const Report& s) {
  const KernelReport what = described(s);
  const std::vector<Expr> values = reported_values(s);
  const auto listed = [&](const auto& text_of) { return join(values, ", ", text_of); };
  if (!s.fault) {
    std::string arguments = listed([&](const Expr& value) {
      if (value->dtype.is_bool()) return fmt::format("{} ? \"True\" : \"False\"", text(value, c::kConditional + 1));
      if (value->dtype.is_float()) return text(value);
      const char* type = value->dtype.code == TypeCode::UInt ? "unsigned long long" : "long long";
      return fmt::format("({}){}", type, text(value, c::kUnary));
    });
    if (!arguments.empty()) arguments = ", " + arguments;
    return line(fmt::format("printf({}{});", literal(format_of(what) + "\n"), arguments), s.span);
  }
  const auto at = std::find(source_.reports.begin(), source_.reports.end(), what);
  HELVE_CHECK(at != source_.reports.end(), "a report that the kernel does not list");
  need(kFault);
  block(fmt::format("if (helve_begin_fault({}))", faults_), s.span, [&] {
    line(fmt::format("{}[1] = {};", faults_, at - source_.reports.begin()));
    for (size_t i = 0; i < values.size(); ++i) line(fmt::format("{}[{}] = {};", faults_, i + 2, word(values[i])));
    line(fmt::format("helve_end_fault({});", faults_));
  });
}

}  // namespace helve::cuda
