// The two accounts of what a statement accesses, effects.h and access.h, agree.
// Checked for every row of the table of tile operations with every setting of its flags and optional operands, and for
// every other statement. Where they differ by design, an atomic access is a write alone in the model.
#include <gtest/gtest.h>

#include <algorithm>

#include "helve/analysis/access.h"
#include "helve/analysis/effects.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

using Listed = std::vector<std::string>;

/// An index that is loaded from a buffer of its own.
Expr loaded_index(const std::string& name) { return cast(load(shared(name, kInt32, {1}), {idx(0)}), kIndex); }

Region part_of(const std::string& name, DType dtype = kFloat32) {
  return {shared(name, dtype, {8}), {{loaded_index("at_" + name), idx(1), false}}};
}

/// Operands of a row; the bits of `setting` decide what the row leaves open, `count` is how many bits there are.
std::vector<TileOperand> operands_of(const TileOpRow& row, size_t setting, size_t* count) {
  std::vector<TileOperand> out;
  *count = 0;
  const auto chosen = [&] { return (setting >> (*count)++ & 1) != 0; };
  for (const TileParam& param : row.params) {
    const std::string name(param.name);
    switch (param.kind) {
      case ParamKind::In:
      case ParamKind::Out:
      case ParamKind::InOut: out.emplace_back(part_of(name)); break;
      case ParamKind::Source:
        if (chosen()) {
          out.emplace_back(part_of(name));
        } else {
          out.emplace_back(load(shared(name, kFloat32, {1}), {idx(0)}));
        }
        break;
      case ParamKind::Value: out.emplace_back(load(shared(name, kFloat32, {1}), {idx(0)})); break;
      case ParamKind::Coord: out.emplace_back(std::vector<Expr>{loaded_index(name)}); break;
      case ParamKind::Index: out.emplace_back(loaded_index(name)); break;
      case ParamKind::Map: out.emplace_back(false); break;
      case ParamKind::Integer: out.emplace_back(int64_t{0}); break;
      case ParamKind::Flag: out.emplace_back(chosen()); break;
      case ParamKind::Axes:
      case ParamKind::Text: out.emplace_back(std::string()); break;
      case ParamKind::Layout: out.emplace_back(Layout()); break;
      case ParamKind::Barriers:
        if (param.required() || chosen()) {
          out.emplace_back(part_of(name, {TypeCode::UInt, 64}));
        } else {
          out.emplace_back(false);
        }
        break;
    }
  }
  return out;
}

std::string text_of(bool write, const std::string& name) { return (write ? "write " : "read ") + name; }

/// Reads, which have no order among them, then writes.
Listed in_order(Listed reads, const Listed& writes) {
  std::sort(reads.begin(), reads.end());
  reads.insert(reads.end(), writes.begin(), writes.end());
  return reads;
}

Listed by_effects(const Stmt& s) {
  Listed reads, writes;
  for (const RegionAccess& each : direct_accesses(s)) {
    EXPECT_TRUE(each.write || writes.empty()) << "a read behind a write of '" << each.region.buffer->name << "'";
    (each.write ? writes : reads).push_back(text_of(each.write, each.region.buffer->name));
  }
  return in_order(std::move(reads), writes);
}

/// Of a statement without parts. An atomic write is listed as what it does: it reads too, but for mbarriers.
Listed by_model(const Stmt& s) {
  Listed reads, writes;
  const AccessModel model = access_model(s);
  for (const Access& each : model.accesses) {
    const std::string& name = each.buffer->name;
    EXPECT_TRUE(each.write || writes.empty()) << "a read behind a write of '" << name << "'";
    EXPECT_FALSE(is_atomic(each.mode) && !each.write) << name;
    if (is_atomic(each.mode) && name != "barriers") reads.push_back(text_of(false, name));
    (each.write ? writes : reads).push_back(text_of(each.write, name));
  }
  return in_order(std::move(reads), writes);
}

TEST(OperandEffects, BothModelsAgreeForEveryRowAndFlag) {
  for (const TileOpRow& row : tile_op_rows()) {
    size_t count = 0;
    operands_of(row, 0, &count);
    for (size_t setting = 0; setting < size_t{1} << count; ++setting) {
      const Stmt s = tile_op(row.op, operands_of(row, setting, &count));
      EXPECT_EQ(by_model(s), by_effects(s)) << row.python << " with setting " << setting;
    }
  }
}

TEST(OperandEffects, AResultIsReadUnlessItIsCleared) {
  size_t count = 0;
  for (const TileOpRow& row : tile_op_rows()) {
    const std::optional<size_t> clear = row.find("clear");
    if (!clear) continue;
    for (const bool clears : {false, true}) {
      std::vector<TileOperand> operands = operands_of(row, 0, &count);
      operands[*clear] = clears;
      const Stmt s = tile_op(row.op, std::move(operands));
      const size_t result = row.find("dst").value_or(row.find("C").value_or(0));
      const OperandEffect effect = operand_effect(*as<TileOp>(s), result);
      EXPECT_TRUE(effect.writes) << row.python;
      EXPECT_EQ(effect.reads, !clears) << row.python;
    }
  }
}

TEST(OperandEffects, BothModelsAgreeForOtherStatements) {
  const BufferRef a = shared("A", kFloat32, {8}), t = shared("T", kFloat32, {64}, {8});
  const VarRef i = make_var("i");
  const Expr at = loaded_index("at"), value = load(shared("value", kFloat32, {1}), {idx(0)});
  const Expr condition = less(load(shared("limit", kInt32, {1}), {idx(0)}), constant_of(int64_t{3}, kInt32));
  const Expr count = loaded_index("count");
  const Stmt nothing = seq({});
  std::vector<Stmt> all = {alloc(a),
                           peer(shared("other", kFloat32, {8}), a, {loaded_index("core")}),
                           bind(make_var("v", kFloat32), value),
                           prefetch(a, {at}),
                           tile_store(t, {at}, tile_load(shared("U", kFloat32, {64}, {8}), {loaded_index("tile")})),
                           for_loop(LoopKind::Serial, {i}, {at}, {count}, nothing),
                           while_loop(condition, nothing),
                           if_then(condition, nothing),
                           kernel({i}, {count}, 128, nothing)};
  for (int mode = 0; mode < kStoreModes; ++mode) {
    all.push_back(store(a, {at}, value, {}, static_cast<StoreMode>(mode)));
  }
  for (const Stmt& s : all) EXPECT_EQ(by_model(s), by_effects(s)) << "kind " << static_cast<int>(s->kind);
}

}  // namespace
}  // namespace helve::testing
