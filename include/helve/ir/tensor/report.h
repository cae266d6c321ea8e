// The reports of a kernel for code generators.
// A kernel has a list of them; machine code gives the position in it and each value in 64 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/support/report.h"

namespace helve {

/// The report without its values.
KernelReport described(const Report& report);

/// What the statements below `s` report, each once, in program order.
std::vector<KernelReport> reports_of(const Stmt& s);

/// The values as they are handed over: floats as float64, data integers as int64 or uint64; index and bool as they are.
std::vector<Expr> reported_values(const Report& report);

/// Is there a report below `s`?
bool has_report(const Stmt& s);

}  // namespace helve
