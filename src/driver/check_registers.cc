// Registers that a kernel written for its threads may name, and no instruction reaches.
// They are asked of the thread form, in which such a kernel stands as it was written.
#include "driver_targets.h"
#include "helve/analysis/registers.h"
#include "helve/analysis/thread_form.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

void check_registers(const Function& f, const Function& lowered) {
  const std::optional<RegisterFault> fault = register_fault(lowered);
  if (!fault) return;
  bool by_hand = false;
  walk(f.body, [&](const Stmt& s) {
    const Kernel* kernel = as<Kernel>(s);
    by_hand |= kernel && is_written_for_threads(*kernel);
  });
  HELVE_CHECK(by_hand, fault->reason);
  throw UserError(Code::NoSchedule, fault->span, {{"operation", "an access to registers"}}, {{{}, fault->reason}},
                  {fault->remedy});
}

}  // namespace helve
