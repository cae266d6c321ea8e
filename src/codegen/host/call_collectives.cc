// The text of collectives.
// A box that lies in one piece is sent and received where it is, unless both sides may share memory; other boxes are
// packed, each once.
#include "call_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "helve/runtime/communicator.h"
#include "helve/runtime/cuda/element_text.h"
#include "helve/runtime/nccl/nccl_types.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "scalar_text.h"

namespace helve {

using runtime::Collective;
using runtime::CollectiveKind;
using runtime::ScalarProgram;

namespace {

/// Do the elements of a box lie one after the other, whatever the extents are that are not known?
bool in_one_piece(const std::vector<ScalarProgram>& extents, const std::vector<ScalarProgram>& steps) {
  std::optional<int64_t> inner = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    const std::optional<int64_t> extent = constant_of(extents[d]);
    if (extent == 1) continue;
    if (!inner || constant_of(steps[d]) != inner) return false;
    inner = extent ? std::optional(*inner * *extent) : std::nullopt;
  }
  return true;
}

std::string type_text(runtime::DLDataType dtype) {
  switch (*runtime::nccl::nccl_type_of(dtype)) {
    case runtime::nccl::kNcclInt8: return "ncclInt8";
    case runtime::nccl::kNcclUint8: return "ncclUint8";
    case runtime::nccl::kNcclInt32: return "ncclInt32";
    case runtime::nccl::kNcclUint32: return "ncclUint32";
    case runtime::nccl::kNcclInt64: return "ncclInt64";
    case runtime::nccl::kNcclUint64: return "ncclUint64";
    case runtime::nccl::kNcclFloat32: return "ncclFloat32";
    case runtime::nccl::kNcclFloat64: return "ncclFloat64";
    default: HELVE_FAIL("a type of NCCL without a name");
  }
}

std::string op_text(runtime::ReduceOp op) {
  switch (op) {
    case runtime::ReduceOp::Sum: return "ncclSum";
    case runtime::ReduceOp::Prod: return "ncclProd";
    case runtime::ReduceOp::Max: return "ncclMax";
    case runtime::ReduceOp::Min: return "ncclMin";
  }
  HELVE_FAIL("an unknown operator");
}

class Writer {
 public:
  Writer(const runtime::Plan& plan, const Collective& step, const CallNames& names, std::string reduction)
      : plan_(plan), s_(step), names_(names), reduction_(std::move(reduction)) {
    members_ = runtime::group_size(plan.mesh, s_.axes);
    element_ = runtime::element_bytes(s_.dtype);
    comm_ = communicator_name(plan, s_.axes);
    const auto& aliases = static_cast<size_t>(s_.src) < plan.params.size()
                              ? plan.params[static_cast<size_t>(s_.src)].may_alias
                              : std::vector<int64_t>();
    meet_ = s_.src == s_.dst || std::ranges::find(aliases, s_.dst) != aliases.end();
    sent_in_one_ = in_one_piece(s_.extents, s_.src_strides);
    received_in_one_ = in_one_piece(s_.extents, s_.dst_strides);
    std::optional<int64_t> count = 1;
    for (const ScalarProgram& extent : s_.extents) {
      const std::optional<int64_t> known = constant_of(extent);
      if (!known) never_empty_ = false;
      count = count && known ? std::optional(*count * std::max<int64_t>(*known, 0)) : std::nullopt;
      count_text_ += (count_text_.empty() ? "" : " * ") + text(extent);
    }
    count_ = count;
    if (count) count_text_ = fmt::format("{}", *count);
    if (count == 0) is_empty_ = true;
  }

  CollectiveText write() {
    CollectiveText out;
    if (s_.kind == CollectiveKind::Barrier) {
      if (members_ > 1) {
        say("TRY(room.reserve(1, 256));");
        say(fmt::format("TRY(ncclAllReduce(pointer(room.at), pointer(room.at), 1, ncclInt8, ncclSum, {}, stream));",
                        comm_));
      }
    } else if (!is_empty_) {
      move();
    }
    if (body_.empty()) return out;
    out.lines.push_back(fmt::format("{{  // {}", title()));
    if (!room_.empty()) body_.insert(body_.begin(), fmt::format("TRY(room.reserve({}, 256));", room_));
    for (const std::string& line : declarations()) out.lines.push_back("  " + line);
    const bool guarded = !never_empty_;
    if (guarded) out.lines.push_back("  if (bytes > 0) {");
    for (const std::string& line : body_) out.lines.push_back((guarded ? "    " : "  ") + line);
    if (guarded) out.lines.push_back("  }");
    out.lines.push_back("}");
    out.kernel = kernel_;
    return out;
  }

 private:
  std::string text(const ScalarProgram& program) const { return scalar_text(program, names_.slots); }
  void say(std::string line) { body_.push_back(std::move(line)); }

  std::string title() const {
    std::string out(name_of(s_.kind));
    if (reduces(s_.kind)) out += fmt::format(" {}", name_of(s_.op));
    std::vector<std::string> axes;
    for (size_t a = 0; a < plan_.mesh.size(); ++a) {
      if (s_.axes >> a & 1) axes.push_back(plan_.mesh_axes[a]);
    }
    return out + " over " + join(axes, ", ", [](const std::string& axis) { return axis; });
  }

  std::vector<std::string> declarations() const {
    std::string all;
    for (const std::string& line : body_) all += line + "\n";
    std::vector<std::string> out;
    const auto array = [&](const char* name, const std::vector<std::string>& values) {
      if (all.find(name) == std::string::npos) return;
      const std::string list = join(values, ", ", [](const std::string& v) { return v; });
      out.push_back(fmt::format("const int64_t {}[] = {{{}}};", name, values.empty() ? "0" : list));
    };
    std::vector<std::string> extents, from, to, compact;
    std::string inner = "1";
    for (size_t d = s_.extents.size(); d-- > 0;) {
      extents.insert(extents.begin(), text(s_.extents[d]));
      from.insert(from.begin(), text(s_.src_strides[d]));
      to.insert(to.begin(), text(s_.dst_strides[d]));
      compact.insert(compact.begin(), inner);
      const std::optional<int64_t> known = constant_of(s_.extents[d]);
      if (known && std::ranges::all_of(inner, [](char c) { return c >= '0' && c <= '9'; })) {
        inner = fmt::format("{}", std::stoll(inner) * *known);
      } else {
        inner = inner == "1" ? extents.front() : inner + " * " + extents.front();
      }
    }
    array("extents", extents);
    array("from_steps", from);
    array("to_steps", to);
    array("compact", compact);
    if (all.find("bytes") != std::string::npos || !never_empty_) {
      out.push_back(count_ ? fmt::format("const int64_t bytes = {};", *count_ * element_)
                           : fmt::format("const int64_t bytes = {} * {};", count_text_, element_));
    }
    if (uses_me_) out.push_back(fmt::format("const int64_t me = {};", member_of("core")));
    return out;
  }

  /// The number of a core in its group.
  std::string member_of(const std::string& core) const {
    std::string out;
    int64_t inner = 1, size = 1;
    for (size_t a = plan_.mesh.size(); a-- > 0; inner *= plan_.mesh[a]) {
      if ((s_.axes >> a & 1) == 0) continue;
      std::string digit = core;
      if (inner > 1) digit += fmt::format(" / {}", inner);
      if (a > 0) digit += fmt::format(" % {}", plan_.mesh[a]);
      if (size > 1) digit += fmt::format(" * {}", size);
      out = out.empty() ? digit : digit + " + " + out;
      size *= plan_.mesh[a];
    }
    return out.empty() ? "0" : out;
  }

  /// An address of a side: of member `k`'s box, or of the only one.
  std::string place(int64_t buffer, const ScalarProgram& offset, const ScalarProgram* apart = nullptr,
                    const std::string& k = {}) const {
    std::string elements = text(offset);
    if (apart != nullptr && constant_of(*apart) != 0) {
      const std::string far = fmt::format("{} * {}", k, text(*apart));
      elements = elements == "0" ? far : elements + " + " + far;
    }
    if (elements == "0") return names_.address(buffer);
    const std::optional<int64_t> known = constant_of(offset);
    if (known && elements == text(offset)) return fmt::format("{} + {}", names_.address(buffer), *known * element_);
    const bool is_sum = elements.find(' ') != std::string::npos;
    return fmt::format("{} + {} * {}", names_.address(buffer), is_sum ? "(" + elements + ")" : elements, element_);
  }
  std::string source() const { return place(s_.src, s_.src_offset); }
  std::string source_for(const std::string& k) const { return place(s_.src, s_.src_offset, &s_.member_stride_src, k); }
  std::string target() const { return place(s_.dst, s_.dst_offset); }
  std::string target_of(const std::string& k) const { return place(s_.dst, s_.dst_offset, &s_.member_stride_dst, k); }

  /// Room for so many boxes, side by side.
  std::string reserve(int64_t boxes) {
    const std::string size = boxes == 1 ? "padded(bytes)" : fmt::format("padded({} * bytes)", boxes);
    const std::string out = room_.empty() ? "room.at" : "room.at + " + room_;
    room_ += (room_.empty() ? "" : " + ") + size;
    return out;
  }

  std::string copy(const std::string& to, const char* to_steps, const std::string& from, const char* from_steps) const {
    return fmt::format("TRY(copy_box({}, {}, {}, {}, extents, {}, {}, stream));", to, to_steps, from, from_steps,
                       s_.extents.size(), element_);
  }
  void unpack(const std::string& to, const std::string& from) { say(copy(to, "to_steps", from, "compact")); }
  void for_members(const std::string& line, const std::string& condition = {}) {
    say(fmt::format("for (int64_t member = 0; member < {}; ++member){}", members_, condition.empty() ? "" : " {"));
    if (condition.empty()) return say("  " + line);
    say(fmt::format("  if ({}) {}", condition, line));
    say("}");
  }

  /// The only box of the source in one piece.
  std::string piece() {
    if (!is_packed()) return source();
    const std::string out = reserve(1);
    say(copy(out, "compact", source(), "from_steps"));
    return out;
  }

  /// The address of what belongs to a member of that number.
  using AddressOf = std::function<std::string(const std::string& k)>;
  static AddressOf part_of(const std::string& whole) {
    return [whole](const std::string& k) { return fmt::format("{} + {} * bytes", whole, k); };
  }

  /// The boxes of the source for each member, in one piece each.
  AddressOf pieces() {
    if (!is_packed()) return [this](const std::string& k) { return source_for(k); };
    const AddressOf out = part_of(reserve(members_));
    for_members(copy(out("member"), "compact", source_for("member"), "from_steps"));
    return out;
  }

  bool is_packed() const { return meet_ || !sent_in_one_; }
  const char* sent_steps() const { return is_packed() ? "compact" : "from_steps"; }

  void call(const std::string& name, const std::string& sent, const std::string& received, const std::string& rest) {
    say(fmt::format("TRY({}(pointer({}), pointer({}), {}, {}, stream));", name, sent, received, rest, comm_));
  }

  /// Where the only box of the target arrives; `arrive` brings it to its place.
  std::string arrival() { return received_in_one_ ? target() : reserve(1); }
  void arrive(const std::string& at) {
    if (!received_in_one_) unpack(target(), at);
  }

  bool is_one_call() const { return runtime::nccl::is_one_call(s_.kind, s_.dtype, s_.op, members_); }

  void move() {
    if (members_ < 2) return move_alone();
    if (is_one_call()) return move_named();
    switch (s_.kind) {
      case CollectiveKind::AllToAll: return all_to_all();
      case CollectiveKind::Gather: return gather();
      case CollectiveKind::Scatter: return scatter();
      case CollectiveKind::Permute: return permute();
      case CollectiveKind::AllReduce:
      case CollectiveKind::Reduce:
      case CollectiveKind::ReduceScatter: return reduce();
      default: HELVE_FAIL("a collective without a text");
    }
  }

  /// In a group of one member everything stays on it.
  void move_alone() {
    if (s_.kind != CollectiveKind::Permute) return own_copy("");
    say(fmt::format("const int64_t {} = 0;", member()));
    say(fmt::format("if ({} == 0) {{", text(s_.source)));
    own_copy("  ");
    say("}");
  }

  /// The variable of a member in the program of its source.
  const std::string& member() const { return names_.slots.at(static_cast<size_t>(s_.member)); }

  void own_copy(const std::string& indent) {
    if (!meet_) return say(indent + copy(target(), "to_steps", source(), "from_steps"));
    const std::string at = reserve(1);
    say(indent + copy(at, "compact", source(), "from_steps"));
    say(indent + copy(target(), "to_steps", at, "compact"));
  }

  void move_named() {
    const std::string bytes = "static_cast<size_t>(bytes)";
    const std::string count = count_ ? fmt::format("{}", *count_) : fmt::format("static_cast<size_t>({})", count_text_);
    const bool adjacent_from = count_ && constant_of(s_.member_stride_src) == count_;
    const bool adjacent_to = count_ && constant_of(s_.member_stride_dst) == count_;
    switch (s_.kind) {
      case CollectiveKind::AllGather: {
        const std::string sent = piece();
        const bool direct = received_in_one_ && adjacent_to;
        const std::string received = direct ? target() : reserve(members_);
        call("ncclAllGather", sent, received, bytes + ", ncclInt8");
        if (!direct) for_members(copy(target_of("member"), "to_steps", received + " + member * bytes", "compact"));
        return;
      }
      case CollectiveKind::ReduceScatter: {
        std::string sent = source();
        if (is_packed() || !adjacent_from) {
          sent = reserve(members_);
          for_members(copy(sent + " + member * bytes", "compact", source_for("member"), "from_steps"));
        }
        const std::string received = arrival();
        call("ncclReduceScatter", sent, received,
             fmt::format("{}, {}, {}", count, type_text(s_.dtype), op_text(s_.op)));
        return arrive(received);
      }
      case CollectiveKind::AllReduce: {
        const bool in_place = s_.src == s_.dst && s_.src_offset == s_.dst_offset && sent_in_one_ && received_in_one_;
        const std::string sent = in_place ? source() : piece();
        const std::string received = arrival();
        call("ncclAllReduce", sent, received, fmt::format("{}, {}, {}", count, type_text(s_.dtype), op_text(s_.op)));
        return arrive(received);
      }
      case CollectiveKind::Reduce: {
        uses_me_ = !received_in_one_;
        const std::string sent = piece();
        const std::string received = arrival();
        call(
            "ncclReduce", sent, received,
            fmt::format("{}, {}, {}, static_cast<int>({})", count, type_text(s_.dtype), op_text(s_.op), text(s_.root)));
        if (!received_in_one_) say(on_root() + copy(target(), "to_steps", received, "compact"));
        return;
      }
      case CollectiveKind::Broadcast: {
        const std::string sent = piece();
        const std::string received = arrival();
        call("ncclBroadcast", sent, received, fmt::format("{}, ncclInt8, static_cast<int>({})", bytes, text(s_.root)));
        return arrive(received);
      }
      default: HELVE_FAIL("no collective of NCCL");
    }
  }

  /// Sends of pieces and receives of others, between all members; with a root, those that it, or the others, take part
  /// in.
  enum class Between { All, ToRoot, FromRoot };
  void exchange(const AddressOf& sent, const AddressOf& received, Between between = Between::All) {
    const auto when = [&](bool at_root) {
      if (between == Between::All) return std::string();
      return fmt::format("if ({} == {}) ", at_root ? "me" : "member", text(s_.root));
    };
    uses_me_ = true;
    say(fmt::format("Group group({}, stream);", comm_));
    say(fmt::format("for (int64_t member = 0; member < {}; ++member) {{", members_));
    say("  if (member == me) continue;");
    const bool gathers = between == Between::ToRoot;
    say(fmt::format("  {}group.receive({}, bytes, member);", when(gathers), received("member")));
    say(fmt::format("  {}group.send({}, bytes, member);", when(!gathers), sent("member")));
    say("}");
    say("TRY(group.end());");
  }
  std::string on_root() const { return fmt::format("if (me == {}) ", text(s_.root)); }

  void gather() {
    const AddressOf sent = [at = piece()](const std::string&) { return at; };
    const AddressOf target_for = [this](const std::string& k) { return target_of(k); };
    const AddressOf received = received_in_one_ ? target_for : part_of(reserve(members_));
    exchange(sent, received, Between::ToRoot);
    say(on_root() + copy(target_of("me"), "to_steps", sent("me"), sent_steps()));
    if (received_in_one_) return;
    for_members(copy(target_of("member"), "to_steps", received("member"), "compact"),
                fmt::format("me == {} && member != me", text(s_.root)));
  }

  void scatter() {
    const AddressOf sent = pieces();
    const std::string received = arrival();
    exchange(sent, [&](const std::string&) { return received; }, Between::FromRoot);
    say(on_root() + copy(target(), "to_steps", sent("me"), sent_steps()));
    if (received_in_one_) return;
    say(fmt::format("if (me != {}) {}", text(s_.root), copy(target(), "to_steps", received, "compact")));
  }

  void all_to_all() {
    const AddressOf sent = pieces();
    const AddressOf target_for = [this](const std::string& k) { return target_of(k); };
    const AddressOf received = received_in_one_ ? target_for : part_of(reserve(members_));
    exchange(sent, received);
    say(copy(target_of("me"), "to_steps", sent("me"), sent_steps()));
    if (received_in_one_) return;
    for_members(copy(target_of("member"), "to_steps", received("member"), "compact"), "member != me");
  }

  void permute() {
    const std::string sent = piece();
    const std::string received = arrival();
    uses_me_ = true;
    say(fmt::format("Group group({}, stream);", comm_));
    say("bool stays = false;");
    if (!received_in_one_) say("bool comes = false;");
    say(fmt::format("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", member(), members_));
    say(fmt::format("  const int64_t source = {};", text(s_.source)));
    say(fmt::format("  const bool sends = source == me, receives = {} == me && source >= 0 && source < {};", member(),
                    members_));
    say(fmt::format("  if (sends && !receives) group.send({}, bytes, {});", sent, member()));
    say(fmt::format("  if (receives && !sends) group.receive({}, bytes, source);", received));
    say("  stays = stays || (sends && receives);");
    if (!received_in_one_) say("  comes = comes || (receives && !sends);");
    say("}");
    say("TRY(group.end());");
    say("if (stays) " + copy(target(), "to_steps", sent, sent_steps()));
    if (!received_in_one_) say("if (comes) " + copy(target(), "to_steps", received, "compact"));
  }

  /// All members' terms side by side, reduced in their order.
  void reduce() {
    const bool has_root = s_.kind == CollectiveKind::Reduce;
    const bool scatters = s_.kind == CollectiveKind::ReduceScatter;
    const AddressOf sent = scatters ? pieces() : [at = piece()](const std::string&) { return at; };
    const std::string terms = reserve(members_);
    exchange(sent, part_of(terms), has_root ? Between::ToRoot : Between::All);
    if (has_root) say(on_root() + "{");
    say(copy(terms + " + me * bytes", "compact", sent("me"), sent_steps()));
    const std::string received = arrival();
    say(fmt::format("int64_t members = {}, count = {};", members_, count_text_));
    say(fmt::format("CUdeviceptr source = {}, destination = {};", terms, received));
    say("void* arguments[] = {&source, &destination, &members, &count};");
    say(fmt::format("TRY(launch(kernels, \"{}\", Shape{{.blocks = (count + 255) / 256, .threads = 256}}, "
                    "arguments, stream));",
                    reduction_));
    arrive(received);
    if (has_root) say("}");
    kernel_ = reduction_kernel();
  }

  std::string reduction_kernel() const {
    using namespace runtime::cuda;
    const ElementType type = reduced_type(s_.dtype);
    if (type.stored.empty()) {
      throw UserError(Code::ReductionDType, {},
                      {{"dtype", runtime::to_text(s_.dtype)}, {"operation", std::string(name_of(s_.op))}});
    }
    return fmt::format(R"(
extern "C" __global__ void __launch_bounds__(256)
{name}(const char* terms, char* target, long long members, long long count) {{
  using namespace reductions;
  typedef {stored} E;
  const Int t = blockIdx.x * (Int)blockDim.x + threadIdx.x;
  if (t >= count) return;
  {value} a = {first};
  for (Int k = 1; k < members; ++k) {{
    const {value} b = {next};
    a = {combined};
  }}
  ((E*)target)[t] = {encoded};
}}
)",
                       fmt::arg("name", reduction_), fmt::arg("stored", type.stored), fmt::arg("value", type.value),
                       fmt::arg("first", around(type.decode, "((const E*)terms)[t]")),
                       fmt::arg("next", around(type.decode, "((const E*)terms)[k * count + t]")),
                       fmt::arg("combined", combined_text(type, s_.op)), fmt::arg("encoded", around(type.encode, "a")));
  }

  const runtime::Plan& plan_;
  const Collective& s_;
  const CallNames& names_;
  const std::string reduction_;
  std::string comm_, count_text_, room_, kernel_;
  std::optional<int64_t> count_;
  int64_t members_ = 1, element_ = 1;
  bool uses_me_ = false, meet_ = false, sent_in_one_ = false, received_in_one_ = false, never_empty_ = true,
       is_empty_ = false;
  std::vector<std::string> body_;
};

}  // namespace

bool has_communicator(const runtime::Plan& plan, uint64_t axes) { return runtime::group_size(plan.mesh, axes) > 1; }

CollectiveText collective_text(const runtime::Plan& plan, const Collective& step, const CallNames& names,
                               const std::string& reduction) {
  return Writer(plan, step, names, reduction).write();
}

std::string reduction_prelude() { return runtime::cuda::element_prelude(); }

}  // namespace helve
