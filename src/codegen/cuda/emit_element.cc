// Loads and stores of elements.
// A fragment's first dimension is the thread: an access at the thread's own number is a register, one at its number
// with some bits flipped, or at that of a thread of its warp, is another lane's register, read by a shuffle.
#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/expr/visit.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

using c::CExpr;

namespace {

bool is_var(const Expr& e, const Var* var) { return as<Var>(e) == var; }

}  // namespace

/// The facts that hold where the current expression is evaluated.
Facts KernelEmitter::facts_of_operand() const {
  Facts facts = facts_;
  for (const Expr& condition : chosen_) {
    if (!has_load(condition)) facts.assume(condition);
  }
  return facts;
}

/// `owner` is the subscript of the fragment's first dimension.
KernelEmitter::Exchange KernelEmitter::exchange_of(const Buffer& buffer, const Expr& owner) const {
  if (is_var(owner, thread_)) return {};
  HELVE_CHECK(thread_, "an access to registers of fragment '" + buffer.name + "'");
  // Where a guard determines which thread runs, its number may replace the variable.
  const Facts facts = facts_of_operand();
  if (can_prove(helve::apply(Op::Eq, {owner, Expr(thread_)}), facts)) return {};
  const Apply* flip = as_op(owner, Op::BitXor);
  for (size_t i : {0, 1}) {
    if (flip && is_var(flip->args[i], thread_)) return {flip->args[1 - i], true};
  }
  return {simplify(helve::apply(Op::FloorMod, {owner, int_imm(kWarp)}), facts), false};
}

KernelEmitter::Element KernelEmitter::element(const Buffer& buffer, const std::vector<Expr>& indices) const {
  const std::string& name = names_.of(&buffer, buffer.name);
  if (buffer.scope != MemoryScope::Fragment) {
    return {name, address_of(buffer, indices, facts_).swizzled(facts_), {}};
  }
  return {name, element_offset(buffer, indices, 1), exchange_of(buffer, indices[0])};
}

std::string KernelEmitter::element_text(const Element& e) { return fmt::format("{}[{}]", e.name, text(e.offset)); }

/// The element with its type in memory or registers.
std::string KernelEmitter::raw_load(const Load& l) {
  if (auto staged = stage_of_.find(&l); staged != stage_of_.end()) {
    return fmt::format("{}[{}]", staged_[staged->second].name, lane_index_);
  }
  const Buffer& buffer = buffer_of(l.buffer);
  const Element e = element(buffer, l.indices);
  std::string own = element_text(e);
  if (buffer.place == ArrayPlace::Memory && buffer.dtype.is_small_float()) own = call("read_indexed", "", own);
  if (!e.exchange.with) return own;
  const std::string arguments = own + ", " + text(e.exchange.with, c::kConditional);
  const std::string name = buffer.dtype.is_small_float() ? "shuffle_bits" : "shuffle";
  return call(e.exchange.flips ? name + "_xor" : name, "", arguments);
}

CExpr KernelEmitter::load(const Load& l) {
  const std::string raw = raw_load(l);
  if (l.dtype.is_small_float()) return {fmt::format("helve_to_float({})", raw)};
  if (l.dtype.is_bool()) return {raw + " != 0", c::precedence_of("!=")};
  return {raw};
}

/// The value before the store's conversion.
const Expr& KernelEmitter::stored(const Store& s) {
  const Cast* cast = as<Cast>(s.value);
  return cast && cast->dtype == s.buffer->dtype ? cast->value : s.value;
}

/// The value to be stored: elements of the same type are copied, else the value is rounded once.
std::string KernelEmitter::value_for(const Store& s) {
  const DType t = s.buffer->dtype;
  const Expr& value = stored(s);
  const Load* copied = as<Load>(value);
  if (copied && copied->dtype == t) return raw_load(*copied);
  if (t.is_small_float()) return rounded(value, t);
  return text(s.value);
}

/// Uses the machine's own operation if it has one for the type, else a compare-and-swap loop.
void KernelEmitter::atomic_store(const Store& s) {
  const Buffer& buffer = *s.buffer;
  HELVE_CHECK(buffer.scope != MemoryScope::Local && buffer.scope != MemoryScope::Fragment,
              "an atomic update of what no other thread reaches");
  const DType t = buffer.dtype;
  const std::string place = "&" + element_text(element(buffer, s.indices));
  const bool adds = s.mode == StoreMode::AtomicAdd;
  const VarRef previous = used(s.previous.get()) ? s.previous : VarRef();
  if (!t.is_float() || (adds && t.bits >= 32)) {
    const char* name = adds ? "atomicAdd" : s.mode == StoreMode::AtomicMax ? "atomicMax" : "atomicMin";
    const bool wraps = adds && t == kInt64;  // CUDA has 64-bit addition for unsigned integers only
    const std::string bits = wraps ? fmt::format("({})", c::wrapping_type(t)) : "";
    const std::string pointer = wraps ? fmt::format("({}*)", c::wrapping_type(t)) : "";
    const std::string value = wraps ? text(s.value, c::kUnary) : text(s.value);
    const std::string call = fmt::format("{}({}{}, {}{})", name, pointer, place, bits, value);
    if (!previous) return line(call + ";", s.span);
    return declare(previous, c::value_type(t), wraps ? fmt::format("({}){}", c::value_type(t), call) : call, s.span);
  }
  need("atomic");
  if (previous) return exchange_until_kept(s, place, previous);
  block("", s.span, [&] { exchange_until_kept(s, place, previous); });
}

/// A compare-and-swap loop. Names what it found, if `previous` is given.
void KernelEmitter::exchange_until_kept(const Store& s, const std::string& place, const VarRef& previous) {
  const DType t = s.buffer->dtype;
  const DType computed = t.is_small_float() ? kFloat32 : t;
  const std::string type = c::value_type(computed);
  const VarRef value = make_var("value", computed), old = make_var("old", computed);
  declare(value, type, text(s.value));
  const Expr next = helve::apply(combining_operator(s.mode), {Expr(old), Expr(value)});
  const std::string name = define(old, false);
  std::string head, tail = ");";
  if (previous) {
    head = fmt::format("const {} {} = {}", type, define(previous, false), t.is_small_float() ? "helve_to_float(" : "");
    if (t.is_small_float()) tail = "));";
  }
  if (!t.is_small_float()) {
    return line(
        fmt::format("{}helve_atomic({}, [&]({} {}) {{ return {}; }}{}", head, place, type, name, text(next), tail),
        s.span);
  }
  const std::string bits = names_.fresh("bits");
  line(fmt::format("{}helve_atomic({}, [&]({} {}) {{", head, place, element_type(*s.buffer), bits));
  {
    TextDocument::Indent indent = out_.indent();
    line(fmt::format("const {} {} = helve_to_float({});", type, name, bits));
    line(fmt::format("return {};", rounded(next, t)));
  }
  line("}" + tail);
}

void KernelEmitter::store(const Store& s) {
  if (s.is_atomic()) return atomic_store(s);
  HELVE_CHECK(s.mode == StoreMode::Write, "an update that lower_updates has left");
  const std::string value = value_for(s);
  if (auto found = stage_of_.find(&s); found != stage_of_.end()) {
    const Staged& staged = staged_[found->second];
    return line(fmt::format("{}[{}] = {};", staged.name, lane_index_, staged.rounds ? text(stored(s)) : value), s.span);
  }
  const Element e = element(*s.buffer, s.indices);
  HELVE_CHECK(!e.exchange.with, "a store to the registers of another thread");
  if (s.buffer->place == ArrayPlace::Memory && s.buffer->dtype.is_small_float()) {
    return line(call("write_indexed", "", element_text(e) + ", " + value) + ";", s.span);
  }
  line(fmt::format("{} = {};", element_text(e), value), s.span);
}

}  // namespace helve::cuda
