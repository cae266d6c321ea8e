// The lists of passes and the interface for instruments.
// A pipeline is a list of names; verification, timing and printing are instruments, so passes do not contain them.
#pragma once

#include <string_view>
#include <vector>

#include "helve/transform/passes.h"

namespace helve {

struct Pass {
  std::string_view name;
  FunctionRef (*run)(const FunctionRef& f, const PassOptions& options);
};

/// From the user's function to loops over plain buffers, for codegen/llvm and codegen/host.
const std::vector<Pass>& cpu_pipeline();

/// From the user's function to the program of the threads of a block, for codegen/cuda and codegen/host.
const std::vector<Pass>& cuda_pipeline();

/// Observes a pipeline.
class PassInstrument {
 public:
  virtual ~PassInstrument() = default;
  /// Called after `pass` converted `before` to `after` (the same object if nothing changed) in `seconds`.
  virtual void ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double seconds) = 0;
};

/// Runs the verifier after each pass; a fault becomes an InternalError that names the pass.
class VerifyInstrument final : public PassInstrument {
 public:
  void ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double seconds) override;
};

/// Records the time of each pass.
class TimeInstrument final : public PassInstrument {
 public:
  void ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double seconds) override;
  struct Row {
    std::string_view pass;
    double seconds;
    bool changed;
  };
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// Keeps the function after each pass, for printing and for running every stage.
class StageInstrument final : public PassInstrument {
 public:
  void ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double seconds) override;
  struct Stage {
    std::string_view pass;
    FunctionRef function;
    bool changed;
  };
  const std::vector<Stage>& stages() const { return stages_; }

 private:
  std::vector<Stage> stages_;
};

FunctionRef run_pipeline(const std::vector<Pass>& passes, FunctionRef f, const PassOptions& options,
                         const std::vector<PassInstrument*>& instruments);

}  // namespace helve
