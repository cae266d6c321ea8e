// The entry of the interpreter.
// A call prepares the function, checks the arguments, and runs the body on its one executor or on all cores.
#include <vector>

#include "arguments.h"
#include "helve/interp/interp.h"
#include "stmt_code.h"

namespace helve::interp {

namespace {

void run_body(const StmtCode& body, std::vector<Frame>& frames, bool on_mesh) {
  if (!on_mesh) return body.run(frames.front());
  CoreSet cores;
  for (Frame& frame : frames) cores.push_back(&frame);
  body.run_all(cores);
}

}  // namespace

std::optional<Checks> parse_checks(const std::string& name) {
  if (name == "all") return Checks::all();
  if (name == "uninitialised") return Checks{.uninitialised = true};
  if (name == "races") return Checks{.races = true};
  if (name == "in_turn") return Checks{.uninitialised = true, .races = true, .in_turn = true};
  const bool fences = name == "fences";
  if (!fences && name != "barriers") return std::nullopt;
  return Checks{.uninitialised = true, .races = true, .barriers = true, .fences = fences, .in_turn = true};
}

void run(const FunctionRef& f, const std::vector<Arg>& args, const Options& options) {
  Scope scope(f, options);
  const Arguments arguments(f, args, scope);
  const StmtCodeRef body = prepare(f->body, scope);
  std::vector<Frame> frames;
  const int64_t executors = f->mesh ? f->mesh->size() : 1;
  frames.reserve(static_cast<size_t>(executors));
  for (int64_t rank = 0; rank < executors; ++rank) {
    frames.push_back(scope.make_frame(rank));
    arguments.enter(frames.back());
    frames.back().cores = &frames;
  }
  if (!scope.checked()) return run_body(*body, frames, scope.has_mesh());
  Checker checker(scope);
  checker.attach(frames);
  try {
    run_body(*body, frames, scope.has_mesh());
    if (options.check.uninitialised) arguments.check_written();
  } catch (const UserError& error) {
    throw checker.placed(error);
  }
}

}  // namespace helve::interp
