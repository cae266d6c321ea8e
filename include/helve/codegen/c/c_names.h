// Names of one C text.
// Users' names are kept; what C, C++ or CUDA give a meaning of their own, and what is visible already, gets a number.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/support/object.h"

namespace helve::c {

/// The name of what the linker and the driver see. Names of ASCII stay; another one is its letters of ASCII and a
/// digest of all of it, so that it is the same each time and no other's.
std::string symbol_of(const std::string& name);

class CNames {
 public:
  CNames() : scopes_(1) {}

  /// What is defined while it lives is forgotten at its end.
  class Scope {
   public:
    explicit Scope(CNames& names) : names_(names) { names_.scopes_.emplace_back(); }
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CNames& names_;
  };

  /// A new name in the innermost scope, unlike all that are visible.
  std::string fresh(const std::string& hint);
  /// As `fresh`, for a variable or buffer. One that is defined again has the newer name from then on.
  std::string define(const Object* object, const std::string& hint);
  /// The object goes by this name, which nothing that is defined can have, in the innermost scope.
  void alias(const Object* object, const std::string& name);
  /// InternalError for an object without a definition; `what` names it there.
  const std::string& of(const Object* object, const std::string& what) const;
  bool known(const Object* object) const { return names_.contains(object); }

 private:
  struct Level {
    std::vector<std::string> names;
    std::vector<std::pair<const Object*, std::string>> hidden;  ///< what an object was called before; empty: nothing
  };
  std::vector<Level> scopes_;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> visible_;
};

}  // namespace helve::c
