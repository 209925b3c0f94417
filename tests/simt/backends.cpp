// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include "support/simt/kernels.hpp"
#include "unit/device/compare.hpp"

namespace trireme::device::test {

/// The contract suites run over the executed kernels alone; the reference is their oracle
/// elsewhere.
const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{
      {"simt", std::make_shared<simt::ExecutedKernels>(run_seed())}};
  return all;
}

/// In two orders of threads, warps and blocks.
const std::vector<Variants>& variants_under_test() {
  static const std::vector<Variants> all{
      {"simt",
       {std::make_shared<simt::ExecutedKernels>(run_seed()),
        std::make_shared<simt::ExecutedKernels>(run_seed() + 1)}}};
  return all;
}

bool take_large_shapes() {
  return false;
}

}  // namespace trireme::device::test
