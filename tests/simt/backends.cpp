#include "unit/device/backends.hpp"

#include "simt/compare.hpp"
#include "support/simt/kernels.hpp"

namespace trireme::device::test {

/// The contract suites run over the executed kernels alone; the reference is their oracle
/// elsewhere.
const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{
      {"simt", std::make_shared<simt::ExecutedKernels>(run_seed())}};
  return all;
}

std::unique_ptr<Kernels> kernels_under_test(std::uint64_t seed) {
  return std::make_unique<simt::ExecutedKernels>(seed);
}

}  // namespace trireme::device::test
