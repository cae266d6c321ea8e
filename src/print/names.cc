// Choice of names.
// A name must be a Python identifier that the language gives no meaning of its own.
#include "names.h"

namespace helve {

namespace {

/// Keywords of Python, and the names that a program finds without defining them.
const std::unordered_set<std::string>& taken_names() {
  static const std::unordered_set<std::string> names = {
      "False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await",  "break",      "class",
      "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",    "from",       "global",
      "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",     "pass",       "raise",
      "return",   "try",    "while", "with", "yield",  "match",    "case",    "type",   "T",          "helve",
      "np",       "range",  "min",   "max",  "abs",    "len",      "int",     "float",  "bool",       "str",
      "list",     "tuple",  "dict",  "set",  "sum",    "pow",      "round",   "divmod", "enumerate",  "zip",
      "map",      "filter", "any",   "all",  "sorted", "reversed", "slice",   "print",  "isinstance", "getattr",
      "hasattr",  "super",  "self"};
  return names;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The hint with everything else than ASCII letters, digits and underscores replaced. A name of two leading underscores
/// would be private in Python's reading.
std::string identifier(const std::string& hint) {
  std::string out;
  for (char c : hint) out += is_letter(c) || is_digit(c) ? c : '_';
  while (out.starts_with("__")) out.erase(0, 1);
  if (out == "_") out.clear();  // means no name at all
  if (out.empty() || is_digit(out[0])) out = "v" + out;
  return out;
}

}  // namespace

std::string NameTable::reserve(const std::string& hint) {
  const std::string base = identifier(hint);
  std::string name = base;
  while (taken_names().contains(name) || !used_.insert(name).second) {
    name = base + "_" + std::to_string(++next_[base]);
  }
  return name;
}

int NameTable::mark_of(const ExprNode& e) {
  if (!options_.notes.contains(&e)) return -1;
  marked_.push_back(&e);
  return static_cast<int>(marked_.size()) - 1;
}

std::string NameTable::name(const Object* object, const std::string& hint) {
  auto it = names_.find(object);
  if (it == names_.end()) it = names_.emplace(object, reserve(hint)).first;
  return it->second;
}

}  // namespace helve
