// Expressions and statements of a kernel in C.
// Common to all C-family targets: scalar code, loops, branches, names, widths of indices. Where buffers are placed and
// which threads execute is defined by derived classes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/analysis/index_bounds.h"
#include "helve/arith/facts.h"
#include "helve/codegen/c/c_names.h"
#include "helve/codegen/c/c_operators.h"
#include "helve/ir/tensor/stmt.h"
#include "helve/support/text.h"

namespace helve::c {

/// The text of an expression. `wide`: an index that C computes in 64 bits.
struct CExpr {
  std::string text;
  int precedence = kPrimary;
  bool wide = false;
  std::string modular = {};  ///< of an integer: the same modulo 2^width, in the type where it was computed
  int modular_precedence = kPrimary;
};

class CEmitter {
 public:
  CEmitter(std::shared_ptr<const IndexBounds> bounds, bool line_directives)
      : bounds_(std::move(bounds)), line_directives_(line_directives) {}
  virtual ~CEmitter() = default;

 protected:
  // Defined by the target.
  virtual CExpr load(const Load& l) = 0;
  virtual void store(const Store& s) = 0;
  virtual void report(const Report& s) = 0;
  virtual void alloc(const Alloc& s) = 0;
  virtual void peer(const Peer& s) = 0;
  virtual void tile_op(const TileOp& s) = 0;
  virtual void role(const Role& s) = 0;
  virtual void thread_loop(const For& s) = 0;
  virtual void vector_loop(const For& s) = 0;
  /// Adds a part of the prelude to the text.
  virtual void need(const std::string& part) = 0;

  // emit_expr.cc
  CExpr expr(const Expr& e);
  /// The expression as an operand of an operator of precedence `least`.
  std::string text(const Expr& e, int least = kLowest);
  static std::string enclosed(const CExpr& e, int least);
  /// The value of `e` as an element of the small float type `to` in memory: rounded once.
  std::string rounded(const Expr& e, DType to);
  /// Does rounding a value of `from` to a small float through float round it once?
  static bool rounds_through_float(DType from);
  /// `function(args...)` of the prelude.
  std::string call(const std::string& part, const std::string& template_arguments, const std::string& args);
  /// Do all values of the index expression fit an int here?
  bool narrow(const Expr& e) const;
  std::string index_type(bool wide) const { return wide ? "long long" : "int"; }
  std::string type_of(const Expr& e, bool wide) const;

  // emit_stmt.cc
  void stmt(const Stmt& s);
  void seq(const Seq& s);
  void line(const std::string& text, const Span& span = {});
  /// `head {`, the body, `}`.
  void block(const std::string& head, const Span& span, const std::function<void()>& body);
  void serial_loop(const For& s, const std::string& pragma, const std::function<void()>& body);
  void declare(const VarRef& var, const std::string& type, const std::string& value, const Span& span = {});
  /// A name for `var`, declared with this width; `wide` is remembered for its uses.
  std::string define(const VarRef& var, bool wide);
  void assume(const Expr& condition, bool holds);
  /// Is the variable or buffer used in the kernel? Others are not declared.
  bool used(const Object* object) const { return used_.contains(object); }
  void find_uses(const Stmt& body);

  /// A scope: when it ends, facts and names are those of the enclosing one again.
  class Place {
   public:
    explicit Place(CEmitter& emitter) : emitter_(emitter), names_(emitter.names_), facts_(emitter.facts_) {}
    ~Place() { emitter_.facts_ = std::move(facts_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    CEmitter& emitter_;
    CNames::Scope names_;
    Facts facts_;
  };

  std::shared_ptr<const IndexBounds> bounds_;
  const bool line_directives_;
  TextDocument out_{4};
  CNames names_;
  Facts facts_;
  std::unordered_map<const Var*, bool> wide_;  ///< how index variables are declared
  std::vector<Expr> chosen_;  ///< conditions of enclosing operators under which the current operand is evaluated

 private:
  CExpr apply(const Apply& a);
  CExpr index_apply(const Apply& a, const Form& form, std::vector<CExpr> args);
  CExpr wrapped(const Apply& a, const Form& form, const std::vector<CExpr>& args);
  CExpr helper_call(const Apply& a, const Form& form, const std::vector<CExpr>& args);
  CExpr plain_quotient(const Apply& a, const std::vector<CExpr>& args);
  bool is_plain_quotient(const Apply& a) const;
  static std::optional<int64_t> power_divisor(const Apply& a);
  CExpr negated(const std::string& type, const CExpr& number);
  static bool is_negated(const Apply& a);
  CExpr shift_negated(const Apply& a, const CExpr& value, const std::string& by);
  CExpr power_quotient(const Apply& a, const CExpr& value, int64_t divisor);
  bool shifts_within(const Apply& a) const;
  /// The Bitcast node.
  CExpr bitcast(const Expr& value, DType to);
  CExpr conversion(const Expr& value, DType to, bool narrow_index);
  void bind(const Bind& s);
  void if_then(const If& s);
  void while_loop(const While& s);
  void for_loop(const For& s);

  std::unordered_set<const Object*> used_;
  const std::string* file_ = nullptr;  ///< the file to which the next line of the text is attributed
  int next_line_ = 0;
};

}  // namespace helve::c
