// Thread axes counted together, and who executes a layout.
// The hardware numbers the threads of a block in several ways; one number is what a compiler divides by.
#pragma once

#include <optional>
#include <string_view>

#include "helve/layout/layout.h"

namespace helve {

/// The layout with thread axes counted together on `target`, one of tx (32 * warpid + laneid, or 128 * wgid +
/// tid_in_wg), tid_in_wg (32 * wid_in_wg + laneid) and warpid (4 * wgid + wid_in_wg): every axis that is a part of the
/// target, or of a part, is replaced by its multiple on the target. The domain and other axes stay. Never done by any
/// other operation. Throws UnsupportedError for another target, for a layout on two axes that count the same threads
/// (warpid and wgid): their sum means nothing, and for parts that leave a gap (laneid and wgid: which warp?).
Layout fuse_axes(const Layout& layout, Axis target);

/// Who executes a layout: instances of `unit` inside one instance of `scope`.
struct ExecutionScopes {
  std::string_view unit;
  std::string_view scope;

  bool operator==(const ExecutionScopes&) const = default;
};

/// The scopes of the layout's thread axes: laneid is a thread in a warp, warpid a warp in a cta, both together a thread
/// in a cta. None without a thread axis of the hardware. Throws UnsupportedError unless the axes form one chain, where
/// each begins at the scope at which the one before ends: not for laneid with wgid, nor for warpid with wgid.
std::optional<ExecutionScopes> execution_scopes(const Layout& layout);

}  // namespace helve
