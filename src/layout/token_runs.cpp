// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/token_runs.hpp"

#include "trireme/base/contract.hpp"

namespace trireme::layout {

std::vector<FlatRange> token_runs(std::int64_t sequence_length, int degree, int rank) {
  TRIREME_EXPECT(rank >= 0 && rank < degree, "a rank of the group");
  if (degree == 1) return {{0, sequence_length}};
  const std::int64_t chunks = 2 * std::int64_t{degree};
  TRIREME_EXPECT(sequence_length % chunks == 0, "chunks are equal");
  const auto size = sequence_length / chunks;
  const auto early = rank * size;
  const auto late = sequence_length - early - size;
  return {{early, early + size}, {late, late + size}};
}

}  // namespace trireme::layout
