// What PyTorch keeps of a tensor beside its memory.
// A view may wait for a negation that its memory does not show, a tensor may record gradients, and autograd counts the
// writes to what it saved. DLPack knows none of it, and a kernel that went by it would be silently wrong.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace helve::python {

/// Refuses a tensor that cannot be read or written through its memory: UserError LazyArgumentView for a view whose
/// negation or conjugation is pending, ArgumentRequiresGrad for one that is written outside torch.no_grad() and
/// requires grad.
void check_torch_tensor(const std::string& parameter, pybind11::handle tensor, bool written);

/// Tells autograd that the tensors of a list were written.
void count_torch_writes(pybind11::handle tensors);

}  // namespace helve::python
