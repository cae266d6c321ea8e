// Unique Python names for the variables and buffers of one text.
// Identity is the object and hints repeat, but text has only names; the table keeps the two apart.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/ir/expr/text.h"
#include "helve/print/printer.h"

namespace helve {

/// Names in order of first request: the hint if it is free, else the hint and the least free number.
class NameTable final : public Namer {
 public:
  explicit NameTable(const PrintOptions& options) : options_(options) {}

  std::string name_of(const Var& var) override { return name(&var, var.name); }
  std::string name_of(const Storage& storage) override { return name(&storage, storage.name); }
  int mark_of(const ExprNode& e) override;
  /// The note on the node with this mark.
  const std::string& note_of(int mark) const { return options_.notes.at(marked_[static_cast<size_t>(mark)]); }

  /// A definition of the object follows. Scopes that do not meet may define one object; each definition has a name of
  /// its own.
  void define(const Object* object) { names_.erase(object); }
  /// A name that stands for no object of the table, such as the function's.
  std::string reserve(const std::string& hint);

 private:
  std::string name(const Object* object, const std::string& hint);

  const PrintOptions& options_;
  std::vector<const ExprNode*> marked_;
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace helve
