// From an internal error to a report that someone else can reproduce.
// The program is at hand when an invariant is violated, so the report contains it.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "helve/driver/compile.h"
#include "helve/support/diagnostic.h"

namespace helve {

/// Runs `work`; an InternalError, or any unexpected exception, is rethrown as an InternalError with a report.
template <class F>
auto reporting(const Function& f, const CompileOptions& options, F&& work) {
  try {
    return work();
  } catch (const UserError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const InternalError& fault) {
    throw InternalError(fault, report_text(f, options));
  } catch (const std::exception& fault) {
    throw InternalError(InternalError(fault.what(), __FILE__, __LINE__), report_text(f, options));
  }
}

}  // namespace helve
