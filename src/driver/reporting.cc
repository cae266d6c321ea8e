// The text of a report: the function as its printer gives it, and the call that compiles it.
// Options that have their default are left out, so that the report stays short.
#include "reporting.h"

#include <fmt/format.h>

#include "helve/print/printer.h"
#include "helve/support/text.h"

namespace helve {

namespace {

std::string mesh_text(const MeshShape& mesh) {
  const std::string comma = mesh.extents.size() == 1 ? "," : "";
  return fmt::format("helve.Mesh(({0}{2}), ({1}{2}))",
                     join(mesh.extents, ", ", [](int64_t e) { return std::to_string(e); }),
                     join(mesh.names, ", ", [](const std::string& n) { return quoted(n); }), comma);
}

std::string check_text(const interp::Checks& check) {
  return check.uninitialised && check.races ? "all" : check.races ? "races" : "uninitialised";
}

std::string script(const Function& f) {
  try {
    return print(FunctionRef(&f));
  } catch (const std::exception& fault) {
    return fmt::format("# the function '{}' cannot be printed: {}\n", f.name, fault.what());
  }
}

}  // namespace

std::string reproducer(const Function& f, const CompileOptions& options) {
  const CompileOptions usual;
  std::string arguments = fmt::format("target=\"{}\"", to_string(options.target));
  if (options.mesh) arguments += ", mesh=" + mesh_text(*options.mesh);
  if (options.verify_passes) arguments += ", verify=True";
  if (options.persistent_chunk != usual.persistent_chunk) {
    arguments += fmt::format(", persistent_chunk={}", options.persistent_chunk.value_or(1));
  }
  if (options.fast_math) arguments += ", fast_math=True";
  if (options.stream_bytes != usual.stream_bytes) {
    arguments += fmt::format(", stream_bytes={}", options.stream_bytes);
  }
  if (options.strict) arguments += ", strict=True";
  if (!options.arch.empty()) arguments += ", arch=" + quoted(options.arch);
  if (options.check.any()) arguments += fmt::format(", check=\"{}\"", check_text(options.check));
  std::string text = script(f);
  if (text.empty() || text.back() != '\n') text += '\n';
  return fmt::format("# helve {}\nimport helve\n\nmain = helve.parse(r'''\n{}''')\nkernel = helve.compile(main, {})\n",
                     HELVE_VERSION, text, arguments);
}

std::string report_text(const Function& f, const CompileOptions& options) {
  return "This is a fault of helve, not of your program. Please report it together with this text:\n\n" +
         reproducer(f, options);
}

}  // namespace helve
