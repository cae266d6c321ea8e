// Redistributions for helve.dist: plans, what they move, and the part of one device.
// What Python sees of a step is data; boxes of one device are asked for, never listed for all.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "array_parts.h"
#include "bindings.h"
#include "helve/plan/local_exchange.h"
#include "helve/plan/redistribution.h"
#include "waiting.h"

namespace py = pybind11;

namespace helve::python {

namespace {

py::list pieces(const std::vector<TransferBox>& all) {
  py::list out;
  for (const TransferBox& each : all) {
    out.append(py::make_tuple(py::tuple(py::cast(each.peer)), py::tuple(py::cast(each.begin)),
                              py::tuple(py::cast(each.extents))));
  }
  return out;
}

py::list ends(const std::vector<LocalExchange::End>& all) {
  py::list out;
  for (const LocalExchange::End& each : all) {
    out.append(py::make_tuple(each.device, py::tuple(py::cast(each.begin))));
  }
  return out;
}

/// Moves between arrays, which they keep.
class PreparedMoves {
 public:
  PreparedMoves(const LocalExchange& exchange, const py::list& sources, const py::list& targets)
      : sources_(sources),
        targets_(targets),
        from_(sources),
        to_(targets),
        moves_(exchange.prepare(from_.parts(), to_.parts(), exchange.terms() > 1 ? from_.dtype() : from_.bytes())) {
    to_.check_writable();
  }

  void run() {
    if (!from_.is_still() || !to_.is_still()) {
      throw UserError(Code::LayoutArgument, {},
                      {{"value", std::string("an array that changed since its moves were prepared")},
                       {"expected", std::string("part of the tensor")},
                       {"remedy", std::string("prepare them again")}});
    }
    to_.check_writable();
    if (moves_.bytes_moved() < runtime::BoxMoves::kParallelBytes) {
      moves_.run(nullptr);
    } else {
      runtime::InterruptPoll poll(interrupt_hook());
      const Unlocked unlocked;
      moves_.run(&poll);
    }
    to_.count_writes();
  }

 private:
  py::list sources_, targets_;
  ArrayParts from_, to_;
  LocalMoves moves_;
};

py::tuple moved(const Volume& volume) { return py::make_tuple(volume.most, volume.total); }

}  // namespace

void bind_plan(py::module_& module) {
  py::class_<CollectiveStep>(module, "CollectiveStep", "A transfer as a collective; see helve.dist.Step.")
      .def_property_readonly("form", [](const CollectiveStep& self) { return std::string(to_string(self.form)); })
      .def_readonly("axes", &CollectiveStep::axes)
      .def_readonly("root", &CollectiveStep::root)
      .def_property_readonly("op", [](const CollectiveStep& self) {
        return std::string(to_string(self.transfer.op()));
      })
      .def_property_readonly("terms", [](const CollectiveStep& self) { return self.transfer.terms(); })
      .def_property_readonly("source", [](const CollectiveStep& self) { return self.transfer.from(); })
      .def_property_readonly("destination", [](const CollectiveStep& self) { return self.transfer.to(); })
      .def("volume", [](const CollectiveStep& self, int64_t bytes) { return moved(volume(self, bytes)); },
           py::arg("element_bytes"))
      .def("received", [](const CollectiveStep& self, const std::vector<int64_t>& device) {
        return pieces(self.transfer.received(device));
      }, py::arg("device"))
      .def("sent", [](const CollectiveStep& self, const std::vector<int64_t>& device) {
        return pieces(self.transfer.sent(device));
      }, py::arg("device"));
  py::class_<Redistribution>(module, "Redistribution", "Steps between distributions; see helve.dist.Redistribution.")
      .def_readonly("steps", &Redistribution::steps)
      .def_readonly("seconds", &Redistribution::seconds)
      .def("volume", [](const Redistribution& self) { return moved(volume(self)); })
      .def("text", [](const Redistribution& self) { return to_text(self); });
  py::class_<PreparedMoves>(module, "PreparedMoves", "Moves between arrays; see LocalExchange.prepare.")
      .def("__call__", &PreparedMoves::run,
           "Runs them.\n\nRaises:\n    helve.LayoutError: an array has other memory or extents than when they were "
           "prepared (HV0507).");
  py::class_<LocalExchange>(module, "LocalExchange",
                            "The moves of a transfer between devices whose parts are all in this process. Devices are "
                            "numbers, row-major in the mesh.")
      .def(py::init([](const Distribution& from, const Distribution& to) { return LocalExchange(Transfer(from, to)); }),
           py::arg("source"), py::arg("destination"))
      .def_property_readonly("terms", [](const LocalExchange& self) { return self.terms(); })
      .def_property_readonly("moves",
                             [](const LocalExchange& self) {
                               py::list out;
                               for (const LocalExchange::Move& each : self.moves()) {
                                 out.append(py::make_tuple(py::tuple(py::cast(each.extents)), ends(each.senders),
                                                           ends(each.receivers)));
                               }
                               return out;
                             })
      .def("prepare",
           [](const LocalExchange& self, const py::list& sources, const py::list& targets) {
             return std::make_unique<PreparedMoves>(self, sources, targets);
           },
           py::arg("sources"), py::arg("targets"),
           "A function that moves all boxes from parts to parts: arrays of NumPy and tensors of PyTorch on the CPU by "
           "device, None where there is none. Targets share no memory with sources and with each other.\n\nRaises:\n"
           "    helve.Error: a dtype without that reduction (HV0624), a target that cannot be written (HV0610, "
            "HV0643).")
      .def_static("reads", &ArrayParts::reads, py::arg("array"),
                  "Can the memory of an array be read in place? Of PyTorch's tensors where it has DLPack's C exchange.")
      .def_static("overlap",
                  [](const py::list& sources, const py::list& targets) {
                    const ArrayParts from(sources), to(targets);
                    return overlapping_part(from.parts(), to.parts(), to.element_bytes());
                  },
                  py::arg("sources"), py::arg("targets"),
                  "The number of a target that shares memory with a source, another target or itself; None where none "
                  "does.");
  module.def(
      "redistribute",
      [](const Distribution& from, const Distribution& to, int64_t element_bytes, double latency, double bandwidth) {
        return redistribute(from, to, element_bytes, {latency, bandwidth});
      },
      py::arg("source"), py::arg("destination"), py::arg("element_bytes"), py::arg("latency"), py::arg("bandwidth"),
      "The cheapest steps from one distribution of a tensor to another. Latency in seconds, bandwidth in bytes per "
      "second.\n\nRaises:\n    helve.Error: tensors or meshes that differ, terms of different operators (HV0413).");
}

}  // namespace helve::python
