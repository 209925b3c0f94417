// SPDX-License-Identifier: Apache-2.0
#include "host_sum.hpp"

#include <cstdint>

namespace trireme::engine {

void ordered_sum(comm::ProcessGroup& group, std::span<double> values) {
  if (group.size() == 1 || values.empty()) return;
  // Doubles travel as pairs of 32-bit words: groups move types that tensors have.
  const auto words = static_cast<std::int64_t>(2 * values.size());
  std::vector<double> all(values.size() * static_cast<std::size_t>(group.size()));
  group.host_group().all_gather(
      device::Tensor(values.data(), device::DType::i32, {words}),
      device::Tensor(all.data(), device::DType::i32, {group.size() * words}));
  for (std::size_t index = 0; index < values.size(); ++index) {
    double sum = 0;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(group.size()); ++rank) {
      sum += all[rank * values.size() + index];
    }
    values[index] = sum;
  }
}

}  // namespace trireme::engine
