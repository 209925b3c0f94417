// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "unit/device/compare.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{{"cuda", mirrored_on_gpu({})}};
  return all;
}

const std::vector<Variants>& variants_under_test() {
  const AttentionChoice repeatable{.bits = AttentionBits::repeatable};
  static const std::vector<Variants> all{
      {"cuda", {mirrored_on_gpu(repeatable), mirrored_on_gpu(repeatable)}},
      {"cuda, own attention",
       {mirrored_on_gpu({.by = AttentionBy::own}), mirrored_on_gpu({.by = AttentionBy::own})}}};
  return all;
}

bool take_large_shapes() {
  return true;
}

}  // namespace trireme::device::test
