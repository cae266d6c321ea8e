// Redistributions for helve.dist: plans, what they move, and the part of one device.
// What Python sees of a step is data; boxes of one device are asked for, never listed for all.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "helve/plan/redistribution.h"

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
