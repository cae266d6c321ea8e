// Breakpoints end with the program that its author reads.
// Input: any function. Output: the same function without T.breakpoint.
// Before:  T.breakpoint({"x": x})
//          B[i] = x
// After:   B[i] = x
// Only the interpreter stops, and only in the program as it was written: what passes make of its buffers has other
// names and shapes. So no later pass needs a rule for a statement that looks at everything.
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef drop_breakpoints(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) { return as<Breakpoint>(s) ? seq({}, s->span) : s; }));
}

}  // namespace helve
