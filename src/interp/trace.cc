// Races and uses of undefined values.
// An access of the same core at time t is ordered before the present one unless an independent loop of the stack was
// already running at t, in another iteration. Where that is asked for, only barriers order the threads of a block.
#include "trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "helve/layout/warp.h"
#include "helve/support/text.h"
#include "shared_memory.h"

namespace helve::interp {

void Checker::attach(std::vector<Frame>& frames) {
  traces_.reserve(frames.size());
  std::vector<Instance*> arguments;  // the same for all cores
  std::copy_if(frames.front().buffers.begin(), frames.front().buffers.end(), std::back_inserter(arguments),
               [](const Instance* instance) { return instance != nullptr; });
  watch_shared(function().may_alias, arguments, clock_);
  for (Frame& frame : frames) {
    traces_.emplace_back(*this, frame, static_cast<int64_t>(frames.size()));
    frame.trace = &traces_.back();
    copies_.push_back(&frame.copies);
    for (Instance* instance : frame.buffers) {
      if (instance && !instance->shadow()) instance->watch(clock_);
    }
  }
  current_ = &traces_.front();
}

void Checker::synchronise(const std::vector<Frame*>& cores) {
  std::vector<int64_t> seen = cores.front()->trace->seen();
  for (const Frame* core : cores) {
    const std::vector<int64_t>& other = core->trace->seen();
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], other[i]);
  }
  const int64_t now = clock_.tick();
  std::vector<Passed> fenced = cores.front()->trace->fenced();
  for (const Frame* core : cores) {
    seen[static_cast<size_t>(core->rank)] = now;
    core->trace->synchronise_threads();
    const std::vector<Passed>& other = core->trace->fenced();
    for (size_t i = 0; i < fenced.size(); ++i) fenced[i] = std::max(fenced[i], other[i], Passed::precedes);
  }
  for (const Frame* core : cores) {
    core->trace->see(seen);
    core->trace->see_fenced(fenced);
  }
}

namespace {

/// Errors that happen on one executor; races name theirs, and control that diverges concerns several.
bool is_of_one_executor(Code code) {
  switch (code) {
    case Code::ShapeMismatch:
    case Code::ZeroDivisor:
    case Code::NegativeExtent:
    case Code::OutOfBounds:
    case Code::IndexOverflow:
    case Code::NegativeShift:
    case Code::CopyInFlight:
    case Code::UnfencedWrite:
    case Code::UnfencedRegisters:
    case Code::UninitialisedRead: return true;
    default: return false;
  }
}

}  // namespace

UserError Checker::placed(const UserError& error) const {
  Diagnostic d = error.diagnostic();
  if (is_of_one_executor(d.code)) {
    const std::string at = current_->coordinates(current_->depth());
    if (!at.empty()) d.notes.push_back({{}, "with " + at});
  }
  return UserError(std::move(d));
}

bool Checker::in_flight(const Flight& flight, bool arrives) const {
  return flight.copy && !copies_[static_cast<size_t>(flight.core)]->completed().contains(flight.copy, arrives);
}

Trace::Trace(Checker& checker, const Frame& frame, int64_t cores)
    : checker_(&checker),
      frame_(&frame),
      core_(frame.rank),
      fenced_(static_cast<size_t>(cores)),
      seen_(static_cast<size_t>(cores), 0) {}

void Trace::enter(const LoopLabel& label, std::vector<int64_t> begins, std::vector<int64_t> extents) {
  make_current();
  if (depth_ == levels_.size()) levels_.emplace_back();
  Level& level = levels_[depth_++];
  level.label = &label;
  level.begins = std::move(begins);
  level.extents = std::move(extents);
  level.iterations.clear();
  level.begin = level.current = checker_->clock().tick();
}

void Trace::iterate(int64_t iteration) {
  make_current();
  Level& level = levels_[depth_ - 1];
  if (level.label->order == LoopOrder::Sequential) return;
  level.current = checker_->clock().tick();
  level.iterations.emplace_back(level.current, iteration);
  if (level.label->threads) thread_ = iteration;
}

void Trace::leave() {
  if (levels_[--depth_].label->threads) thread_ = kNoThread;
}

void Trace::begin_threads() {
  fence();
  synchronise_threads();
  for (Passed& core : fenced_) core.time = barrier_.time;
}

void Trace::synchronise_threads() {
  barrier_ = warpgroup_barrier_ = passed();
  fenced_[static_cast<size_t>(core_)] = fence_;
}

void Trace::synchronise_warpgroups() {
  warpgroup_barrier_ = passed();
  fenced_[static_cast<size_t>(core_)] = fence_;
}

void Trace::fence() { fence_ = passed(); }

Passed Trace::passed() const { return {checker_->clock().tick(), frame_->copies.completed()}; }

Mark Trace::mark_of(const Instance& instance, const Site& site, StoreMode mode) const {
  const MemoryScope scope = instance.declaration().scope;
  const bool own = scope == MemoryScope::Local || scope == MemoryScope::Fragment;
  const int64_t of_block = site.statement ? kNoThread : kEveryThread;
  const int64_t of_registers = unit_ == kTensorCores ? kTensorCores : kNoThread;
  const int64_t thread = own ? of_registers : unit_ != kNoThread ? unit_ : thread_ == kNoThread ? of_block : thread_;
  return {checker_->clock().now(), core_, &site, mode, thread, flight_, false, instance.placed() ? &instance : nullptr};
}

namespace {

bool are_of_one_warpgroup(const Mark& a, const Mark& b) {
  return a.thread >= 0 && b.thread >= 0 && a.thread / kWarpgroup == b.thread / kWarpgroup;
}

}  // namespace

size_t Trace::conflict(const Shadow& shadow, const Mark& earlier, const Mark& later) const {
  if (!shadow.counts(earlier)) return kOrdered;
  if (earlier.core != core_) return earlier.time < seen_[static_cast<size_t>(earlier.core)] ? kOrdered : kOtherCore;
  if (earlier.thread == kStoredHere || earlier.thread == kRing)
    return kOrdered;  // complete, as a copy that is in flight is reported before
  for (size_t i = 0; i < depth_; ++i) {
    const Level& level = levels_[i];
    if (level.label->order == LoopOrder::Sequential) continue;
    if (earlier.time < level.begin) break;
    if (earlier.time < level.current) return i;
  }
  if (!checker_->checks().barriers || barrier_.contains(earlier)) return kOrdered;
  if (are_of_one_warpgroup(earlier, later) && warpgroup_barrier_.contains(earlier)) return kOrdered;
  if (earlier.name != later.name) {  // what the block does as a whole takes over bytes only behind a barrier, too
    const bool same = earlier.thread == later.thread && earlier.thread >= 0 && !earlier.copy;
    return same ? kOrdered : kOtherThread;
  }
  const bool threads = earlier.thread != kNoThread && later.thread != kNoThread;
  return threads && earlier.thread != later.thread ? kOtherThread : kOrdered;
}

/// Of accesses that may meet (reads, atomic stores of one mode), one that is ordered before the present one races with
/// nothing that the present one does not race with. Of those in other iterations the outermost suffices: what comes
/// later differs in its iteration from one of the two. Other cores are ordered pair by pair, so each counts, and so
/// does a part of an asynchronous copy, which a barrier passes only after the copy's wait.
void Trace::add(Shadow& shadow, std::vector<Mark>& marks, const Mark& mark) const {
  const Mark* last = marks.empty() ? nullptr : &marks.back();
  const auto same = [&](const Mark& m) {
    return m.time == mark.time && m.core == core_ && m.mode == mark.mode && m.thread == mark.thread &&
           m.copy == mark.copy;
  };
  if (last && same(*last)) return;
  size_t kept = 0;
  size_t outermost = kOrdered;
  Mark concurrent;
  for (const Mark& known : marks) {
    const size_t level = conflict(shadow, known, mark);
    const bool before = known.copy.queue == mark.copy.queue && known.copy.number <= mark.copy.number;
    const bool lasts = known.copy && !before && !barrier_.copies.contains(known.copy, false);
    const bool taken_over = mark.name && known.thread < 0 && known.thread != mark.thread && !barrier_.contains(known);
    if (level == kOtherCore || known.mode != mark.mode || known.name != mark.name || taken_over || lasts ||
        (level == kOtherThread && known.copy)) {
      marks[kept++] = known;
    } else if (level < outermost) {
      outermost = level;
      concurrent = known;
    }
  }
  marks.resize(kept);
  if (outermost != kOrdered) marks.push_back(concurrent);
  marks.push_back(mark);
}

void Trace::check(const Instance& instance, int64_t offset, const std::vector<Mark>& earlier, bool writes,
                  const Access& later) const {
  for (const Mark& known : earlier) {
    const size_t level = conflict(*instance.shadow(), known, later.mark);
    if (level != kOrdered) report_race(instance, offset, level, {known, writes}, later);
  }
}

Scalar Trace::read(Instance& instance, int64_t offset, const Site& site, Origin* origin) {
  checker_->step();
  make_current();
  Shadow& shadow = *instance.shadow();
  const Mark mark = mark_of(instance, site);
  for (Cell& cell : instance.cells(offset)) {
    if (!checker_->checks().races) break;
    check_flights(instance, offset, cell, site, false);
    check_fences(instance, offset, cell, site, false);
    if (flight_ && !adds_) read_by_copy(cell, site);
    const size_t level = conflict(shadow, cell.write, mark);
    if (level != kOrdered) report_race(instance, offset, level, {cell.write, true}, {mark, false});
    check(instance, offset, cell.updates, true, {mark, false});
    if (instance.declaration().scope != MemoryScope::Local) add(shadow, cell.reads, mark);
  }
  const bool left = checker_->checks().races && left_by_several(shadow, instance.cells(offset).front());
  if (left || (checker_->checks().uninitialised && instance.undefined(offset))) {
    if (!origin) report_undefined(instance, offset, site);
    *origin = {&instance, offset, &site};
  }
  return instance.read(offset);
}

void Trace::read_by_copy(Cell& cell, const Site& site) const {
  std::erase_if(cell.from, [&](const Flight& known) {
    return (known.copy.queue == flight_.queue && known.core == core_) || !checker_->in_flight(known, false);
  });
  cell.from.push_back({flight_, core_, &site});
}

void Trace::write(Instance& instance, int64_t offset, Scalar value, const Site& site, bool undefined) {
  checker_->step();
  make_current();
  Mark mark = mark_of(instance, site);
  mark.arrives = static_cast<bool>(flight_) && is_global(instance.declaration());
  for (Cell& cell : instance.cells(offset)) {
    if (!checker_->checks().races) break;
    check_flights(instance, offset, cell, site, true);
    check_fences(instance, offset, cell, site, true);
  }
  if (checker_->checks().races && instance.declaration().scope != MemoryScope::Local) {
    check_write(instance, offset, mark, value);
  } else {
    instance.write(offset, value);
    for (Cell& cell : instance.cells(offset)) cell.left = {};
  }
  for (Cell& cell : instance.cells(offset)) {
    if (flight_ && checker_->checks().races) cell.into = {flight_, core_, &site};
    cell.write = mark;
    if (!may_leave_several(instance)) cell.reads.clear();  // else what races with them may meet the write
    cell.updates.clear();
    cell.undefined = undefined;
  }
}

void Trace::send(Instance& instance, int64_t offset, Scalar value, const Flight& arrival, const Site& site,
                 bool undefined) {
  checker_->step();
  make_current();
  Mark mark = mark_of(instance, site);
  if (checker_->checks().races) {
    for (const Cell& cell : instance.cells(offset)) check_flights(instance, offset, cell, site, true);
    check_write(instance, offset, mark, value);
  } else {
    instance.write(offset, value);
  }
  mark.core = arrival.core;
  mark.thread = kStoredHere;
  for (Cell& cell : instance.cells(offset)) {
    if (checker_->checks().races) cell.into = arrival;
    cell.write = mark;
    cell.reads.clear();
    cell.updates.clear();
    cell.undefined = undefined;
  }
}

bool Trace::may_leave_several(const Instance& instance) const {
  return checker_->checks().in_turn && thread_ != kNoThread && instance.declaration().scope == MemoryScope::Shared;
}

bool Trace::left_by_several(const Shadow& shadow, const Cell& cell) const {
  return cell.left.loop && shadow.counts(cell.write);
}

void Trace::check_flights(const Instance& instance, int64_t offset, const Cell& cell, const Site& site,
                          bool writes) const {
  const bool arrives = is_global(instance.declaration());
  const bool in_order = adds_ && cell.into.copy.queue == flight_.queue;
  if (!in_order && checker_->in_flight(cell.into, arrives))
    report_flight(instance, offset, cell.into, site, writes, true);
  for (const Flight& from : cell.from) {
    if (writes && checker_->in_flight(from, false)) report_flight(instance, offset, from, site, writes, false);
  }
}

void Trace::check_fences(const Instance& instance, int64_t offset, const Cell& cell, const Site& site,
                         bool writes) const {
  if (unit_ == kNoThread || !checker_->checks().fences) return;
  if (instance.declaration().scope == MemoryScope::Fragment) return check_registers(instance, offset, cell, site);
  const auto check = [&](const Mark& written) {
    if (written.thread == kTma || written.thread == kRing || !instance.shadow()->counts(written)) return;
    if (fenced_[static_cast<size_t>(written.core)].contains(written)) return;
    report_unfenced(instance, offset, written, site, writes);
  };
  check(cell.write);
  for (const Mark& update : cell.updates) check(update);
}

void Trace::check_registers(const Instance& instance, int64_t offset, const Cell& cell, const Site& site) const {
  const auto check = [&](const Mark& mark, bool written) {
    if (mark.thread == kTensorCores || !instance.shadow()->counts(mark) || mark.time < register_fence_) return;
    report_unfenced_registers(instance, offset, mark, written, site);
  };
  check(cell.write, true);
  for (const Mark& read : cell.reads) check(read, false);
}

Scalar Trace::update(Instance& instance, int64_t offset, Scalar value, const Fold& combine, StoreMode mode,
                     const Site& site) {
  checker_->step();
  make_current();
  Shadow& shadow = *instance.shadow();
  const Mark mark = mark_of(instance, site, mode);
  for (Cell& cell : instance.cells(offset)) {
    if (!checker_->checks().races) break;
    check_flights(instance, offset, cell, site, true);
    const size_t level = conflict(shadow, cell.write, mark);
    if (level != kOrdered) report_race(instance, offset, level, {cell.write, true}, {mark, true});
    check(instance, offset, cell.reads, false, {mark, true});
    std::vector<Mark> others;
    std::copy_if(cell.updates.begin(), cell.updates.end(), std::back_inserter(others),
                 [&](const Mark& known) { return known.mode != mode || known.name != mark.name; });
    check(instance, offset, others, true, {mark, true});
    add(shadow, cell.updates, mark);
  }
  if (checker_->checks().uninitialised && instance.undefined(offset)) {
    report_undefined(instance, offset, site);
  }
  const Scalar previous = instance.read(offset);
  instance.write(offset, combine(previous, value));
  return previous;
}

void Trace::check_write(Instance& instance, int64_t offset, const Mark& mark, Scalar value) {
  const Shadow& shadow = *instance.shadow();
  size_t level = kOrdered;
  Access earlier{};
  const auto look = [&](const Mark& known, bool writes) {
    if (level != kOrdered) return;
    level = conflict(shadow, known, mark);
    earlier = {known, writes};
  };
  const Level* several = nullptr;
  for (const Cell& cell : instance.cells(offset)) {
    const size_t met = conflict(shadow, cell.write, mark);
    if (met < depth_ && may_leave_several(instance) && is_of_thread(met)) {
      several = &levels_[met];
    } else {
      look(cell.write, true);
    }
    for (const Mark& update : cell.updates) look(update, true);
    for (const Mark& read : cell.reads) look(read, false);
  }
  for (Cell& cell : instance.cells(offset)) {
    if (several) {
      cell.left = {several->begin, several->label};
    } else if (!runs(cell.left)) {
      cell.left = {};
    }
  }
  const Scalar before = instance.read(offset);
  instance.write(offset, value);
  if (level == kOrdered) return;
  const bool same = before.i == instance.read(offset).i;
  if (level == kOtherCore && same && replicas(instance.declaration(), earlier.mark.core)) return;
  const Values values{before, instance.read(offset)};
  const bool known = earlier.writes && earlier.mark.mode == StoreMode::Write;  // else others may have stored since
  report_race(instance, offset, level, earlier, {mark, true}, known ? &values : nullptr);
}

bool Trace::is_of_thread(size_t level) const {
  return std::any_of(levels_.begin(), levels_.begin() + static_cast<std::ptrdiff_t>(level) + 1,
                     [](const Level& each) { return each.label->threads; });
}

bool Trace::runs(const Left& loop) const {
  return std::any_of(levels_.begin(), levels_.begin() + static_cast<std::ptrdiff_t>(depth_),
                     [&](const Level& each) { return each.label == loop.loop && each.begin == loop.begin; });
}

bool Trace::replicas(const Buffer& buffer, int64_t core) const {
  const Function& f = checker_->function();
  const MeshTensor* tensor = f.mesh_tensor(&buffer);
  if (!tensor) return false;
  const std::vector<int64_t> mine = coordinates_of(core_, f.mesh->extents);
  const std::vector<int64_t> other = coordinates_of(core, f.mesh->extents);
  return std::all_of(tensor->sharding.begin(), tensor->sharding.end(), [&](const auto& cut) {
    const size_t axis = *f.mesh->axis(cut.first);
    return mine[axis] == other[axis];
  });
}

void Trace::bind(size_t slot, const Origin& origin) {
  if (origin.instance) {
    unset_[slot] = origin;
  } else if (!unset_.empty()) {
    unset_.erase(slot);
  }
}

void Trace::use(size_t slot, Origin* origin) {
  if (unset_.empty()) return;
  const auto at = unset_.find(slot);
  if (at == unset_.end()) return;
  make_current();
  if (!origin) report_undefined(*at->second.instance, at->second.offset, *at->second.site);
  *origin = at->second;
}

}  // namespace helve::interp
