// Names of one C text.
// Users' names are kept; reserved names of C, C++ and CUDA, and names that are already visible, get a number.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/support/object.h"

namespace helve::c {

/// A name for the linker and the driver. ASCII names are kept; another one becomes its ASCII letters and a digest of
/// all of it, so that it is deterministic and unique.
std::string symbol_of(const std::string& name);

class CNames {
 public:
  CNames() : scopes_(1) {}

  /// Definitions are undone when it ends.
  class Scope {
   public:
    explicit Scope(CNames& names) : names_(names) { names_.scopes_.emplace_back(); }
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CNames& names_;
  };

  /// A new name in the innermost scope, distinct from all visible ones.
  std::string fresh(const std::string& hint);
  /// As `fresh`, for a variable or buffer. A second definition replaces the name.
  std::string define(const Object* object, const std::string& hint);
  /// Gives the object this name in the innermost scope; no definition can have it.
  void alias(const Object* object, const std::string& name);
  /// InternalError for an object without a definition; `what` names it there.
  const std::string& of(const Object* object, const std::string& what) const;
  bool known(const Object* object) const { return names_.contains(object); }

 private:
  struct Level {
    std::vector<std::string> names;
    std::vector<std::pair<const Object*, std::string>> hidden;  ///< the previous name of an object; empty: none
  };
  std::vector<Level> scopes_;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> visible_;
};

}  // namespace helve::c
