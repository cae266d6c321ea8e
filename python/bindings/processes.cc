// Processes of a mesh for helve.dist: their group, and the part of one of them in a step.
// A step runs outside the interpreter lock; a wait ends at Ctrl-C.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "array_parts.h"
#include "bindings.h"
#include "helve/plan/rank_exchange.h"
#include "helve/runtime/mpi/mpi_group.h"
#include "helve/runtime/tcp/tcp_group.h"
#include "helve/support/sha256.h"
#include "waiting.h"

namespace py = pybind11;

namespace helve::python {

namespace {

using runtime::InterruptPoll;
using runtime::Message;
using runtime::ProcessGroup;

py::list list_of(const py::object& array) {
  py::list out;
  out.append(array);
  return out;
}

/// The moves of a process between its arrays, which they keep.
class PreparedRankMoves {
 public:
  PreparedRankMoves(std::shared_ptr<ProcessGroup> processes, const CollectiveStep& step, const py::object& source,
                    const py::object& target, const py::object& like)
      : processes_(std::move(processes)),
        arrays_(py::make_tuple(source, target)),
        from_(list_of(source)),
        to_(list_of(target)),
        moves_(RankExchange(step, processes_->rank())
                   .prepare(from_.parts()[0], to_.parts()[0], ArrayParts(list_of(like)).dtype())) {
    to_.check_writable();
  }

  void run() {
    to_.check_writable();
    InterruptPoll poll(interrupt_hook());
    try {
      const Unlocked unlocked;
      moves_.run(*processes_, poll);
    } catch (...) {
      arrays_.inc_ref();  // messages that were given up may still be read or written
      throw;
    }
    to_.count_writes();
  }

 private:
  std::shared_ptr<ProcessGroup> processes_;
  py::tuple arrays_;
  ArrayParts from_, to_;
  RankMoves moves_;
};

/// The bytes of the root on all processes, in a step that is always compared.
py::bytes broadcast(ProcessGroup& self, const std::string& what, const std::string& text, int64_t root) {
  const auto bytes = std::make_shared<std::string>(text);
  InterruptPoll poll(interrupt_hook());
  const auto exchange = [&] {
    std::vector<Message> sends, receives;
    auto* data = reinterpret_cast<std::byte*>(bytes->data());
    const auto length = static_cast<int64_t>(bytes->size());
    for (int64_t other = 0; other < self.size(); ++other) {
      if (self.rank() == root && other != root) sends.push_back({other, data, length});
    }
    if (self.rank() != root) receives.push_back({root, data, length});
    self.exchange(sends, receives, bytes, poll);
  };
  {
    const Unlocked unlocked;
    self.run(runtime::step_of(what), poll, exchange, {}, true);
  }
  return py::bytes(*bytes);
}

}  // namespace

void bind_processes(py::module_& module) {
  py::class_<ProcessGroup, std::shared_ptr<ProcessGroup>>(module, "ProcessGroup",
                                                          "Processes that were started together.")
      .def_static("mpi",
                  [](const std::vector<std::string>& paths, double timeout, bool check) {
                    const Unlocked unlocked;
                    return runtime::mpi_group(paths, {timeout, check});
                  },
                  py::arg("paths"), py::arg("timeout"), py::arg("check"),
                  "Those that mpirun started. Called on all of them.\n\nArgs:\n    paths: where Open MPI's library may "
                  "be, before the system's.\n    timeout: seconds without a message after which a wait ends.\n    "
                  "check: are steps compared before they are done?\n\nRaises:\n    helve.Error: no MPI, or another one "
                  "(HV0417).")
      .def_static("tcp",
                  [](int64_t rank, int64_t size, const std::string& address, double timeout, bool check) {
                    InterruptPoll poll(interrupt_hook());
                    const Unlocked unlocked;
                    return runtime::tcp_group({rank, size, address}, {timeout, check}, poll);
                  },
                  py::arg("rank"), py::arg("size"), py::arg("address"), py::arg("timeout"), py::arg("check"),
                  "Those that meet at an address by TCP. Called on all of them.\n\nArgs:\n    rank: the number of this "
                  "process, from 0.\n    size: how many there are.\n    address: \"host:port\", where process 0 "
                  "listens; one process alone needs none.\n    timeout: seconds after which they give up to meet, and "
                  "without a message after which a wait ends.\n    check: are steps compared before they are "
                  "done?\n\nRaises:\n    helve.Error: they do not meet (HV0426).")
      .def_property_readonly("rank", [](const ProcessGroup& self) { return self.rank(); })
      .def_property_readonly("size", [](const ProcessGroup& self) { return self.size(); })
      .def("require_size", [](const ProcessGroup& self, int64_t devices) { self.require_size(devices); },
           py::arg("devices"), "Raises HV0418 unless there is one process for each device.")
      .def("begin",
           [](ProcessGroup& self, const std::string& what, const std::string& text, bool refuses) {
             InterruptPoll poll(interrupt_hook());
             const Unlocked unlocked;
             self.begin({what, runtime::step_of(text).hash}, poll,
                        refuses ? ProcessGroup::Part::Refuses : ProcessGroup::Part::Takes, true);
           },
           py::arg("what"), py::arg("text"), py::arg("refuses") = false,
           "Compares a text, of which errors show `what`, on all processes.\n\nArgs:\n    refuses: has this process an "
           "error of its own? The others are told of it.\n\nRaises:\n    helve.Error: HV0419 to HV0423.")
      .def("broadcast", &broadcast, py::arg("what"), py::arg("text"), py::arg("root"),
           "The text of the root, of equal length on all processes. Raises as `begin`.")
      .def("finalize",
           [](ProcessGroup& self, bool by_mpi) {
             const Unlocked unlocked;
             by_mpi ? runtime::finalize_mpi(self) : runtime::finalize_tcp(self);
           },
           py::arg("by_mpi"), "Ends the group, and MPI if helve began it.\n\nArgs:\n    by_mpi: is it one of MPI?");
  py::class_<PreparedRankMoves>(module, "PreparedRankMoves",
                                "What a process does in a step, between its arrays: call it, on all processes.")
      .def(py::init<std::shared_ptr<ProcessGroup>, const CollectiveStep&, const py::object&, const py::object&,
                    const py::object&>(),
           py::arg("processes"), py::arg("step"), py::arg("source"), py::arg("target"), py::arg("like"),
           "Moves from this process's part, None where it holds nothing, to the new one, of the dtype of "
           "`like`.\n\nRaises:\n    helve.Error: a dtype without that reduction (HV0624), a target that cannot be "
           "written (HV0610, HV0643).")
      .def("__call__", &PreparedRankMoves::run, "Raises helve.Error: HV0419 to HV0423.");
}

}  // namespace helve::python
