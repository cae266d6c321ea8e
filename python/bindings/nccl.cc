// The GPUs of processes for helve.dist, one each: their connection, and the part of one of them in a step.
// What a step puts on a stream goes on when the call has returned; a wait for other processes ends at Ctrl-C.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "device_part.h"
#include "helve/plan/device_exchange.h"
#include "helve/plan/rank_exchange.h"
#include "waiting.h"

namespace py = pybind11;

namespace helve::python {

namespace {

using runtime::InterruptPoll;
using runtime::ProcessGroup;
using runtime::nccl::NcclWorld;

/// The moves of a process between its arrays on its GPU, which they keep, as they do what `allocate` gives.
class PreparedDeviceMoves {
 public:
  PreparedDeviceMoves(std::shared_ptr<NcclWorld> world, const CollectiveStep& step, const py::object& source,
                      const py::object& target, const py::object& like, std::vector<std::string> site_packages,
                      bool compares, const py::function& allocate)
      : world_(std::move(world)),
        like_(like),
        from_(source),
        to_(target),
        compares_(compares),
        moves_(RankExchange(step, world_->processes().rank()), from_.part(), to_.part(), like_.dtype(),
               std::move(site_packages), [&](int64_t bytes) {
                 kept_.push_back(DevicePart(allocate(bytes)));
                 return kept_.back().part().data;
               }) {
    to_.check_writable();
  }

  void run() {
    to_.check_writable();
    const runtime::cuda::CudaStream stream = like_.stream();
    InterruptPoll poll(interrupt_hook());
    try {
      const Unlocked unlocked;
      moves_.run(*world_, stream, compares_, poll);
    } catch (...) {
      py::cast(this).inc_ref();  // what was given up may still be at work
      throw;
    }
    to_.count_writes();
  }

 private:
  std::shared_ptr<NcclWorld> world_;
  DevicePart like_, from_, to_;
  bool compares_;
  std::vector<DevicePart> kept_;
  DeviceMoves moves_;
};

}  // namespace

void bind_nccl(py::module_& module) {
  py::class_<NcclWorld, std::shared_ptr<NcclWorld>>(module, "NcclWorld",
                                                    "The GPUs of processes, one each. They are connected at the first "
                                                    "step.")
      .def(py::init<std::shared_ptr<ProcessGroup>, std::vector<std::string>, double>(), py::arg("processes"),
           py::arg("paths"), py::arg("timeout"),
           "Args:\n    paths: where NCCL's library may be, before the system's.\n"
           "    timeout: seconds after which what does not end is an error.")
      .def("take", &NcclWorld::take, py::arg("ordinal"),
           "Says which GPU is that of this process.\n\nRaises:\n    helve.Error: it was another one (HV0429).")
      .def("end",
           [](NcclWorld& self) {
             const Unlocked unlocked;
             self.end();
           },
           "Ends its communicators.");
  py::class_<PreparedDeviceMoves>(module, "PreparedDeviceMoves",
                                  "What a process does in a step, between its arrays on its GPU: call it, on all "
                                  "processes.")
      .def(py::init<std::shared_ptr<NcclWorld>, const CollectiveStep&, const py::object&, const py::object&,
                    const py::object&, std::vector<std::string>, bool, const py::function&>(),
           py::arg("world"), py::arg("step"), py::arg("source"), py::arg("target"), py::arg("like"),
           py::arg("site_packages"), py::arg("compares"), py::arg("allocate"),
           "Moves from this process's part, None where it holds nothing, to the new one, of the dtype of `like`, on "
           "whose library's current stream they are.\n\nArgs:\n    site_packages: folders that may contain pip's "
           "NVRTC.\n    compares: do processes compare the step before it is done?\n    allocate: gives an array of so "
           "many bytes on the GPU.\n\nRaises:\n    helve.Error: a dtype without that reduction (HV0624), a target that "
           "cannot be written (HV0610, HV0643).")
      .def("__call__", &PreparedDeviceMoves::run,
           "Raises helve.Error: HV0419 to HV0423, HV0427, HV0428, HV0430, HV0431, HV0926.");
  module.def("device_parts_overlap",
             [](const py::object& a, const py::object& b) {
               const DevicePart source(a), target(b);
               const LocalPart from[] = {source.part()}, to[] = {target.part()};
               return overlapping_part(from, to, runtime::element_bytes(target.dtype())).has_value();
             },
             py::arg("source"), py::arg("target"),
             "Do the arrays on a GPU, or elements of the second, share memory? None has none.");
}

}  // namespace helve::python
