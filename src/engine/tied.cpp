// SPDX-License-Identifier: Apache-2.0
// The table that first and last stage both hold, where embeddings are tied.
#include "trireme/base/text.hpp"
#include "trireme/engine/engine.hpp"

#include "parts.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::engine {

using device::Tensor;

namespace {

/// The state of elements `range` of the rank's flat buffer. Both stages cut it into the same
/// segments: they share the ZeRO level and the data-parallel degree. `word` is room for a hash.
std::uint64_t digest_of(device::Kernels& kernels, const optim::Optimizer& optimizer,
                        layout::FlatRange range, const Tensor& word) {
  base::Fnv1a digest;
  const auto add_part = [&](const Tensor& x) {
    kernels.issue(device::HashBits{x, word});
    device::HostMirror mirror(kernels.device());
    const auto hash = mirror.of(word);
    mirror.fetch();
    for (int index = 0; index < 2; ++index) {
      digest.add_word(static_cast<std::uint32_t>(hash.i32()[index]));
    }
  };
  const auto add = [&](const Tensor& x) { optimizer.read(x, add_part); };
  const auto& all = optimizer.state();
  for (const auto& segment : all.segments()) {
    const auto begin = std::max(range.begin, segment.flat.begin);
    const auto count = std::min(range.end, segment.flat.end) - begin;
    if (count <= 0) continue;
    const auto offset = begin - segment.flat.begin;
    add(all.master(segment).slice(0, offset, count));
    for (const auto& state : all.of(segment)) {
      add(state.values.slice(0, offset, count));
    }
  }
  return digest.value();
}

}  // namespace

bool Engine::tied_copies_differ() {
  auto& parts = *parts_;
  auto* const group = parts.groups.ends();
  const auto& flat = parts.stage.flat();
  const auto bucket = parts.stage.first_tied_bucket();
  if (group == nullptr || group->size() == 1 || bucket == flat.buckets.size()) return false;
  // Each data-parallel rank digests its shard, at every ZeRO level.
  auto own = digest_of(parts.kernels, parts.updates(), parts.sharding.counted(bucket),
                       parts.hashes.slice(0, 0, 1).reshape({2}));
  std::uint64_t both[2] = {};
  group->host_group().all_gather(Tensor(&own, device::DType::i32, {2}),
                                 Tensor(both, device::DType::i32, {4}));
  return both[0] != both[1];
}

}  // namespace trireme::engine
