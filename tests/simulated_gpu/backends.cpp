// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "unit/device/compare.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{{"cuda", mirrored_on_gpu({})}};
  return all;
}

/// Which threads go first, and how own attention repeats, is looked at in tests/simt.
const std::vector<Variants>& variants_under_test() {
  static const std::vector<Variants> all{
      {"cuda", {mirrored_on_gpu({.bits = AttentionBits::repeatable})}}};
  return all;
}

bool take_large_shapes() {
  return false;
}

}  // namespace trireme::device::test
