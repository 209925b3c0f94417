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

/// Adds the words of f32 `x` to the digest.
void add(const Tensor& x, base::Fnv1a& digest) {
  const auto* const words = static_cast<const std::uint32_t*>(x.raw());
  for (std::int64_t index = 0; index < x.element_count(); ++index) digest.add_word(words[index]);
}

/// Adds f32 `x` in parts: host memory for all of a table at once may not be there.
void add_in_parts(device::Device& device, const Tensor& x, base::Fnv1a& digest) {
  constexpr std::int64_t part = std::int64_t{1} << 24;
  for (std::int64_t begin = 0; begin < x.element_count(); begin += part) {
    device::HostMirror mirror(device);
    const auto here = mirror.of(x.slice(0, begin, std::min(part, x.element_count() - begin)));
    mirror.fetch();
    add(here, digest);
  }
}

/// The state of elements `range` of the rank's flat buffer.
std::uint64_t digest_of(device::Device& device, const optim::Optimizer& optimizer,
                        layout::FlatRange range) {
  base::Fnv1a digest;
  for (const auto& segment : optimizer.segments()) {
    const auto begin = std::max(range.begin, segment.flat.begin);
    const auto count = std::min(range.end, segment.flat.end) - begin;
    if (count <= 0) continue;
    const auto offset = begin - segment.flat.begin;
    add_in_parts(device, optimizer.master(segment).slice(0, offset, count), digest);
    for (const auto& state : optimizer.states()) {
      add_in_parts(device, state.values.slice(0, segment.state_begin + offset, count), digest);
    }
  }
  return digest.value();
}

}  // namespace

bool Engine::tied_copies_differ() {
  auto& parts = *parts_;
  auto* const group = parts.groups.embedding;
  const auto& flat = parts.stage.flat();
  const auto bucket = parts.stage.first_tied_bucket();
  if (group == nullptr || group->size() == 1 || bucket == flat.buckets.size()) return false;
  // Each data-parallel rank digests its shard, at every ZeRO level.
  auto own =
      digest_of(device(), parts.updates(), flat.shard_of_bucket(bucket, parts.groups.data->rank()));
  std::uint64_t both[2] = {};
  group->host_group().all_gather(Tensor(&own, device::DType::i32, {2}),
                                 Tensor(both, device::DType::i32, {4}));
  return both[0] != both[1];
}

}  // namespace trireme::engine
