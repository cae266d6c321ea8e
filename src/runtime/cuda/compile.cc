// Choice of a compiler, and caching of its results.
// The key of an entry contains everything that the cubin depends on.
#include "helve/runtime/cuda/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "helve/support/text.h"
#include "toolchain.h"

namespace helve::runtime::cuda {

namespace {

std::shared_ptr<const Toolchain> choose(const CompileOptions& options) {
  if (options.compiler == Compiler::Nvcc) return nvcc();
  if (options.compiler == Compiler::Nvrtc) return nvrtc(options.site_packages);
  try {
    return nvrtc(options.site_packages);
  } catch (const UserError& without_nvrtc) {
    try {
      return nvcc();
    } catch (const UserError& without_nvcc) {
      Diagnostic both = without_nvrtc.diagnostic();
      both.notes.push_back({{}, "nvcc would do as well: " + without_nvcc.diagnostic().message()});
      throw UserError(std::move(both));
    }
  }
}

/// From this architecture on there are architecture-specific instructions, under the name that ends in 'a'.
constexpr int kFirstWithOwn = 90;

void check_architecture(const Toolchain& compiler, const std::string& arch) {
  const std::vector<int>& known = compiler.architectures();
  const std::optional<int> number = architecture_number(arch);
  const bool own = arch.ends_with('a') || arch.ends_with('f');
  if (number && (!own || *number >= kFirstWithOwn) && std::ranges::find(known, *number) != known.end()) return;
  throw UserError(Code::CudaArchitecture, {},
                  {{"compiler", compiler.text()}, {"arch", arch}, {"known", join(known, ", ", [](int n) {
                                                                     return n < kFirstWithOwn
                                                                                ? fmt::format("sm_{}", n)
                                                                                : fmt::format("sm_{0}, sm_{0}a", n);
                                                                   })}});
}

Digest key_of(const Toolchain& compiler, std::string_view source, const std::string& name, const std::string& arch,
              const std::vector<std::string>& flags) {
  Sha256 hash;
  for (std::string_view field :
       {std::string_view("cubin"), std::string_view(build_id()), std::string_view(compiler.text()),
        std::string_view(arch), std::string_view(name), source}) {
    hash.add_field(field);
  }
  for (const std::string& flag : flags) hash.add_field(flag);
  return hash.finish();
}

void put(std::string& out, std::string_view field) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(static_cast<uint64_t>(field.size()) >> (8 * i) & 0xff);
  out += field;
}

/// Removes the next field from `text`. The cache has checked the digest, so a malformed entry was written by this
/// build.
std::string take(std::string_view& text) {
  HELVE_CHECK(text.size() >= 8, "a cached cubin ends within a field");
  uint64_t size = 0;
  for (size_t i = 0; i < 8; ++i) size |= uint64_t{static_cast<uint8_t>(text[i])} << (8 * i);
  text.remove_prefix(8);
  HELVE_CHECK(size <= text.size(), "a cached cubin ends within a field");
  std::string out(text.substr(0, size));
  text.remove_prefix(size);
  return out;
}

Toolchain::Result compile_now(const Toolchain& compiler, std::string_view source, const std::string& name,
                              const std::string& arch, const std::vector<std::string>& flags) {
  Toolchain::Result result = compiler.compile(source, name, arch, flags);
  if (!result.compiled) {
    HELVE_FAIL(fmt::format("{} does not compile what helve wrote for {}:\n{}\n--- {}\n{}", compiler.text(), arch,
                           result.log, name, source));
  }
  return result;
}

}  // namespace

std::optional<int> architecture_number(std::string_view arch) {
  if (!arch.starts_with("sm_")) return std::nullopt;
  arch.remove_prefix(3);
  if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
  int number = 0;
  const auto [stop, fault] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
  return fault == std::errc() && stop == arch.data() + arch.size() ? std::optional(number) : std::nullopt;
}

std::string compiler_text(const CompileOptions& options) { return choose(options)->text(); }

Cubin compile_cubin(std::string_view source, const std::string& name, const std::string& arch,
                    const CompileOptions& options) {
  const std::shared_ptr<const Toolchain> compiler = choose(options);
  check_architecture(*compiler, arch);
  const Digest key = key_of(*compiler, source, name, arch, options.flags);
  Cubin out;
  std::optional<Diagnostic> cache_fault;
  if (const std::optional<std::string> entry = options.cache.load(key)) {
    std::string_view rest = *entry;
    out.bytes = take(rest);
    out.log = take(rest);
    out.from_cache = true;
  } else {
    Toolchain::Result made = compile_now(*compiler, source, name, arch, options.flags);
    out.bytes = std::move(made.bytes);
    out.log = std::move(made.log);
    std::string payload;
    put(payload, out.bytes);
    put(payload, out.log);
    cache_fault = options.cache.store(key, payload);
  }
  out.arch = arch;
  out.compiler = compiler->text();
  out.kernels = read_ptxas_log(out.log);
  out.warnings = warnings_of(out.kernels);
  if (cache_fault) out.warnings.push_back(std::move(*cache_fault));
  return out;
}

std::string ptx_text(std::string_view source, const std::string& name, const std::string& arch,
                     const CompileOptions& options) {
  const std::shared_ptr<const Toolchain> compiler = choose(options);
  check_architecture(*compiler, arch);
  return compile_now(*compiler, source, name, "compute_" + arch.substr(3), options.flags).bytes;
}

}  // namespace helve::runtime::cuda
