// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/save.hpp"

#include "checkpoint/manifest/manifest_text.hpp"

namespace trireme::checkpoint {

std::uint64_t predict_manifest_bytes(std::span<const SaveItem> items, int replicas,
                                     comm::ProcessGroup& world) {
  constexpr double checksum_digits = 8;
  double mine = 0;
  for (const auto& item : items) {
    const auto bytes = static_cast<std::uint64_t>(layout::element_count(item.box)) *
                       device::size_of(item.data.dtype());
    if (bytes == 0) continue;
    const StoredBox stored{item.box, static_cast<std::size_t>(world.size()), bytes * 100};
    const double blocks =
        static_cast<double>(bytes) / static_cast<double>(Manifest::default_block_bytes);
    mine += (static_cast<double>(box_text_bytes(stored)) + checksum_digits * blocks) / replicas;
  }
  auto all = static_cast<float>(mine);
  world.all_reduce(device::Tensor(&all, device::DType::f32, {1}), comm::ReduceOp::sum);
  return static_cast<std::uint64_t>(all);
}

base::Status check_manifest_bytes(std::uint64_t predicted) {
  if (predicted <= Manifest::max_text_bytes) return {};
  return base::usage_failure(
      manifest_too_long(base::format("would have about {}", base::bytes_text(predicted))));
}

}  // namespace trireme::checkpoint
