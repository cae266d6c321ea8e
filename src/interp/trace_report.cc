// Reports of a checked run.
// Both lines of a race, the loop that makes it one, and the coordinates at which it happens.
#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/tensor/update.h"
#include "helve/support/text.h"
#include "trace.h"

namespace helve::interp {

std::string Trace::coordinates(size_t depth) const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < depth; ++i) {
    for (const auto& [name, slot] : levels_[i].label->vars) {
      parts.push_back(fmt::format("{}={}", name, frame_->vars[slot].i));
    }
  }
  const Function& f = checker_->function();
  if (f.mesh) parts.push_back("core " + shape_text(coordinates_of(core_, f.mesh->extents)));
  return join(parts, ", ", [](const std::string& p) { return p; });
}

namespace {

/// The buffer that an access to placed memory was made to.
const std::string& name_of(const Mark& mark) { return static_cast<const Instance*>(mark.name)->declaration().name; }

/// The update that the statement makes; nothing if it makes none.
std::optional<Update> update_at(const Site& site) {
  if (!site.statement || site.statement->kind != StmtKind::Store) return std::nullopt;
  Update update = update_of(static_cast<const Store&>(*site.statement));
  return reads_old(update) ? std::optional(std::move(update)) : std::nullopt;
}

/// The write by which another buffer has taken bytes of the element; null if there is none.
const Mark* taken_over(const Instance& instance, int64_t offset) {
  for (const Cell& cell : instance.cells(offset)) {
    const Mark& write = cell.write;
    if (instance.shadow()->counts(write) && write.name && write.name != &instance) return &write;
  }
  return nullptr;
}

}  // namespace

void Trace::report_undefined(const Instance& instance, int64_t offset, const Site& site) const {
  const Shadow& shadow = *instance.shadow();
  const std::string& name = instance.declaration().name;
  const Cell& cell = instance.cells(offset).front();
  if (left_by_several(shadow, cell)) {
    const auto variable = [](const auto& var) { return var.first; };
    std::vector<std::string> fixes;
    if (const std::optional<Update> update = update_at(*cell.write.site)) fixes.push_back(private_remedy(*update));
    throw UserError(Code::LoopScratch, cell.write.site->span,
                    {{"buffer", name}, {"variables", join(cell.left.loop->vars, ", ", variable)}},
                    {{instance.allocated(), fmt::format("'{}' is allocated here", name)},
                     {cell.left.loop->span, cell.left.loop->threads ? "the threads" : "the loop"},
                     {site.span, "here one of the values is read"}},
                    std::move(fixes));
  }
  std::vector<Note> notes;
  if (const Mark* other = taken_over(instance, offset)) {
    notes.push_back({other->site->span, fmt::format("'{}' has its bytes and is written here", name_of(*other))});
  } else if (cell.undefined && shadow.counts(cell.write)) {
    notes.push_back({cell.write.site->span, "what is copied to it here was never written"});
  } else if (instance.forgotten().known()) {
    notes.push_back(
        {instance.forgotten(), fmt::format("at the start of each iteration the contents of '{}' are undefined", name)});
  } else if (instance.allocated().known()) {
    notes.push_back({instance.allocated(), fmt::format("'{}' is allocated here", name)});
  } else if (instance.is_fresh()) {
    notes.push_back({instance.declaration().span, fmt::format("'{}' is an output, which the call allocates", name)});
  }
  throw UserError(Code::UninitialisedRead, site.span,
                  {{"element", shape_text(instance.element_at(offset))}, {"buffer", name}}, std::move(notes));
}

void Trace::report_flight(const Instance& instance, int64_t offset, const Flight& flight, const Site& site, bool writes,
                          bool copy_writes) const {
  const CopyQueue& queue = checker_->queue(flight.copy.queue);
  const std::string work = work_text(queue);
  throw UserError(Code::CopyInFlight, site.span,
                  {{"element", shape_text(instance.element_at(offset))},
                   {"buffer", instance.declaration().name},
                   {"access", writes ? "written" : "read"},
                   {"work", work},
                   {"copy", copy_writes ? "has written" : "has read"}},
                  {{flight.site->span, "the " + work + " begins here"}},
                  {"wait for the " + work + " by " + wait_text(queue) + " first"});
}

void Trace::report_unfenced_registers(const Instance& instance, int64_t offset, const Mark& accessed, bool written,
                                      const Site& site) const {
  throw UserError(Code::UnfencedRegisters, site.span,
                  {{"element", shape_text(instance.element_at(offset))},
                   {"buffer", instance.declaration().name},
                   {"access", written ? "written" : "read"}},
                  {{accessed.site->span, fmt::format("it is {} here", written ? "written" : "read")}});
}

void Trace::report_unfenced(const Instance& instance, int64_t offset, const Mark& written, const Site& site,
                            bool writes) const {
  throw UserError(Code::UnfencedWrite, site.span,
                  {{"access", writes ? "overwrites" : "reads"},
                   {"element", shape_text(instance.element_at(offset))},
                   {"buffer", instance.declaration().name},
                   {"executor", executor_in_block(written)}},
                  {{written.site->span, "it is written here"},
                   {{}, "there is no T.fence_async with a barrier after it between the two"}});
}

std::string Trace::executor_in_block(const Mark& mark) {
  switch (mark.thread) {
    case kNoThread: return "the block";
    case kEveryThread: return "every thread";
    case kTma: return "TMA";
    case kTensorCores: return "the tensor cores";
    case kStoredHere: return "another core";
    default: return fmt::format("thread {}", mark.thread);
  }
}

std::string Trace::executor(size_t level, const Mark& mark) const {
  if (level == kOtherCore) {
    return "core " + shape_text(coordinates_of(mark.core, checker_->function().mesh->extents));
  }
  if (level == kOtherThread) return executor_in_block(mark);
  const Level& loop = levels_[level];
  const auto after = std::upper_bound(loop.iterations.begin(), loop.iterations.end(), mark.time,
                                      [](int64_t time, const auto& iteration) { return time < iteration.first; });
  HELVE_CHECK(after != loop.iterations.begin(), "an access before the first iteration of its loop");
  const std::vector<int64_t> at = coordinates_of(std::prev(after)->second, loop.extents);
  std::vector<std::string> parts;
  for (size_t d = 0; d < at.size(); ++d) {
    parts.push_back(fmt::format("{}={}", loop.label->vars[d].first, loop.begins[d] + at[d]));
  }
  return (loop.label->order == LoopOrder::Blocks ? "block " : "iteration ") +
         join(parts, ", ", [](const std::string& p) { return p; });
}

std::string Trace::values_text(const Instance& instance, size_t level, const Mark& earlier, const Mark& later,
                               const Values& values) const {
  const DType dtype = instance.dtype();
  const auto text = [&](Scalar value) -> std::string {
    if (dtype.is_bool()) return value.i != 0 ? "True" : "False";
    if (is_uint64(dtype)) return fmt::format("{}", static_cast<uint64_t>(value.i));
    return dtype.is_float() ? float_text(value.f) : fmt::format("{}", value.i);
  };
  const std::string first = text(values.earlier), second = text(values.later);
  if (first == second) {
    return fmt::format("both write {}, which is no race where T.annotate_mesh_tensor gives them one shard of '{}'",
                       first, instance.declaration().name);
  }
  return fmt::format("{} writes {}, {} writes {}", executor(level, earlier), first, executor(level, later), second);
}

void Trace::report_race(const Instance& instance, int64_t offset, size_t level, Access earlier, Access later,
                        const Values* values) const {
  const Site* first = earlier.mark.site;
  if (first->statement && first->statement == later.mark.site->statement && earlier.writes && !later.writes &&
      !instance.has_other_names()) {
    std::swap(earlier, later);  // within a statement the store is the place, if it is of the same buffer
  }
  const std::string name = executor(level, later.mark);
  const std::string other = executor(level, earlier.mark);
  const auto word = [](const Access& access) {
    return !access.writes ? "reads" : access.mark.mode == StoreMode::Write ? "writes" : "updates";
  };
  const std::string access = word(later), other_access = word(earlier);
  std::vector<Note> notes = {{earlier.mark.site->span, fmt::format("{} {} it here", other, other_access)}};
  Code code = Code::RacingCores;
  if (level == kOtherThread) {
    code = Code::RacingIterations;
    notes.push_back({{}, "there is no T.sync_threads between the two"});
    if (earlier.mark.name != later.mark.name) {
      notes.push_back({{}, fmt::format("'{}' and '{}' share these bytes", name_of(earlier.mark), name_of(later.mark))});
    }
  } else if (level != kOtherCore) {
    const LoopLabel& loop = *levels_[level].label;
    const bool blocks = loop.order == LoopOrder::Blocks;
    code = blocks ? Code::RacingBlocks : Code::RacingIterations;
    const char* executors = blocks ? "blocks" : "iterations";
    notes.push_back({loop.span, fmt::format("the {} of this {} run in any order", executors, loop.kind)});
  }
  if (values && level == kOtherCore) {
    notes.push_back({{}, values_text(instance, level, earlier.mark, later.mark, *values)});
  }
  std::vector<std::string> fixes;
  if (level != kOtherCore && earlier.mark.site->statement == later.mark.site->statement) {
    const std::optional<Update> update = update_at(*later.mark.site);
    const std::string atomic = update ? atomic_text(*update) : "";
    if (!atomic.empty()) fixes = {fmt::format("write {}", atomic), std::string(diagnostic_row(code).help)};
  }
  // Around a loop that races, the coordinates are those of both accesses; of two cores, those of the one that runs.
  const std::string around = coordinates(std::min(level, depth_));
  if (!around.empty()) notes.push_back({{}, "with " + around});
  throw UserError(code, later.mark.site->span,
                  {{"executor", name},
                   {"access", access},
                   {"element", shape_text(instance.element_at(offset))},
                   {"buffer", instance.declaration().name},
                   {"other", other},
                   {"other_access", access == other_access ? access + " too" : other_access}},
                  std::move(notes), std::move(fixes));
}

}  // namespace helve::interp
