// Distributions, meshes and plans as text.
// A plan is read by people; its volumes are counted as it is written.
#include "helve/plan/describe.h"

#include <fmt/format.h>

#include "helve/plan/redistribution.h"

#include "helve/support/text.h"

namespace helve {

std::string quoted_notation(const Distribution& distribution) {
  return fmt::format("'{}'", join(notation_of(distribution), "; ", [](const std::string& level) { return level; }));
}

std::string mesh_text(const std::vector<MeshAxis>& mesh) {
  return fmt::format("({})", join(mesh, ", ", [](const MeshAxis& each) {
                       return fmt::format("{}={}", each.axis.name(), each.extent);
                     }));
}

std::string to_text(const CollectiveStep& step) {
  std::string out(to_string(step.form));
  if (!step.axes.empty()) {
    out += " over " + join(step.axes, ", ", [&](size_t a) { return step.transfer.from().mesh[a].axis.name(); });
  }
  if (step.root >= 0) out += fmt::format(", root {}", step.root);
  if (step.transfer.terms() > 1 && step.form != CollectiveForm::Local) {
    out += fmt::format(", {}", to_string(step.transfer.op()));
  }
  return fmt::format("{}, to {}", out, quoted_notation(step.transfer.to()));
}

std::string to_text(const Redistribution& plan) {
  std::string out =
      fmt::format("{} over {}, {} to {}, elements of {} bytes\n", shape_text(plan.from.shape),
                  mesh_text(plan.from.mesh), quoted_notation(plan.from), quoted_notation(plan.to), plan.element_bytes);
  for (size_t k = 0; k < plan.steps.size(); ++k) {
    const Volume moved = volume(plan.steps[k], plan.element_bytes);
    out += fmt::format("{}. {}: {} bytes a device at most, {} in all\n", k + 1, to_text(plan.steps[k]), moved.most,
                       moved.total);
  }
  if (plan.steps.empty()) out += "nothing to do\n";
  return out;
}

}  // namespace helve
