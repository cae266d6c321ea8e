// Names of the variables of a call's text.
// Users' names may be words of C++, or those of the text itself; then they get a number.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "helve/runtime/plan.h"

namespace helve {

/// One name for each thing of a plan, no two alike.
struct CallNames {
  explicit CallNames(const runtime::Plan& plan);

  std::vector<std::string> tensors;  ///< by buffer id: the variable of a parameter, or of memory that is reserved
  std::vector<std::string> slots;
  std::vector<std::string> scalars;  ///< the parameter of each scalar, of its own type

  /// The address of a buffer.
  std::string address(int64_t id) const;

 private:
  /// A name that is free, and is with `beside` after it too.
  std::string unique(const std::string& wanted, const std::string& beside = "");
  bool take(const std::string& name, const std::string& beside);

  size_t params_;
  std::set<std::string> taken_;
};

/// The communicator of a set of axes: "comm_x", "comm_x_y".
std::string communicator_name(const runtime::Plan& plan, uint64_t axes);

/// An identifier of C++ near a name.
std::string identifier(const std::string& name);

}  // namespace helve
