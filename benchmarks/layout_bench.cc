// Nanoseconds of layout operations in C++.
// Reads questions, one a line, `operation<TAB>operand<TAB>...`, times each in a loop and writes its nanoseconds, one a
// line: layout_bench.py asks the same of plain Python and of helve's Python.
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "helve/layout/cute/algebra.h"
#include "helve/layout/layout.h"
#include "helve/layout/notation.h"

namespace {

using helve::cute::parse;
using Operands = std::vector<std::string>;

volatile int64_t sink = 0;

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> out;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) out.push_back(std::stoll(part));
  return out;
}

/// The least nanoseconds a call over several runs of at least five milliseconds. A template, so that the loop holds the
/// operation itself and no call through a pointer.
template <class Call>
double nanoseconds(const Call& call) {
  using Clock = std::chrono::steady_clock;
  double least = 1e300;
  int64_t calls = 64;
  for (int round = 0; round < 5;) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    const double spent = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (spent < 5e6) {
      calls *= 4;
      continue;
    }
    least = std::min(least, spent / static_cast<double>(calls));
    ++round;
  }
  return least;
}

/// The operations by name; each parses its operands once and returns the nanoseconds of a call.
using Operation = std::function<double(const Operands&)>;
const std::map<std::string, Operation>& operations() {
  namespace cute = helve::cute;
  using helve::parse_layout;
  auto count = [](auto value) { sink = static_cast<int64_t>(value); };
  static const std::map<std::string, Operation> table = {
      {"call",
       [=](const Operands& o) { return nanoseconds([&, a = parse(o[0]), i = std::stoll(o[1])] { count(a(i)); }); }},
      {"coalesce",
       [=](const Operands& o) { return nanoseconds([&, a = parse(o[0])] { count(cute::coalesce(a).size()); }); }},
      {"composition",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse(o[0]), b = parse(o[1])] { count(cute::composition(a, b).size()); });
       }},
      {"complement",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse(o[0]), n = std::stoll(o[1])] { count(cute::complement(a, n).size()); });
       }},
      {"right_inverse",
       [=](const Operands& o) { return nanoseconds([&, a = parse(o[0])] { count(cute::right_inverse(a).size()); }); }},
      {"logical_divide",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse(o[0]), b = parse(o[1])] { count(cute::logical_divide(a, b).size()); });
       }},
      {"logical_product",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse(o[0]), b = parse(o[1])] { count(cute::logical_product(a, b).size()); });
       }},
      {"apply",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse_layout(o[0]), i = std::stoll(o[1])] { count(a.apply(i).size()); });
       }},
      {"canonicalize",
       [=](const Operands& o) { return nanoseconds([&, a = parse_layout(o[0])] { count(a.canonicalize().size()); }); }},
      {"group",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse_layout(o[0]), s = numbers(o[1])] { count(a.group(s).rank()); });
       }},
      {"tile",
       [=](const Operands& o) {
         return nanoseconds([&, a = parse_layout(o[0]), s = numbers(o[1]), b = parse_layout(o[2]), t = numbers(o[3])] {
           count(helve::tile(a, s, b, t).size());
         });
       }},
  };
  return table;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Operands parts;
    std::stringstream stream(line);
    for (std::string part; std::getline(stream, part, '\t');) parts.push_back(part);
    const auto found = operations().find(parts[0]);
    if (found == operations().end()) {
      std::cerr << "unknown operation '" << parts[0] << "'\n";
      return 1;
    }
    std::cout << found->second(Operands(parts.begin() + 1, parts.end())) << std::endl;
  }
}
