// The tables of source file names and of calls.
// Their entries live as long as the process, so that a span is a plain value that may outlive the compile that made it.
#include "helve/support/span.h"

#include <mutex>
#include <set>
#include <tuple>
#include <unordered_set>

namespace helve {

const std::string* intern_file(std::string_view name) {
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>();
  std::lock_guard<std::mutex> lock(mutex);
  return &*names->emplace(name).first;
}

namespace {

/// Any order of spans.
struct SpanOrder {
  static auto key(const Span& s) { return std::tuple(s.file, s.line, s.column, s.end_line, s.end_column, s.caller); }
  bool operator()(const Span& a, const Span& b) const { return key(a) < key(b); }
};

/// The one stored copy of a call, so that equal places have equal pointers.
const Span* intern_call(const Span& call) {
  static std::mutex mutex;
  static auto* calls = new std::set<Span, SpanOrder>();
  std::lock_guard<std::mutex> lock(mutex);
  return &*calls->insert(call).first;
}

}  // namespace

Span called_from(Span inner, const Span& call) {
  if (inner.known() && call.known()) inner.caller = intern_call(inner.caller ? called_from(*inner.caller, call) : call);
  return inner;
}

}  // namespace helve
