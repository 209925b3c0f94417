#include "unit/device/backends.hpp"

#include "support/simt/kernels.hpp"

namespace trireme::device::test {

/// The contract suites run over the executed kernels alone; the reference is their oracle
/// elsewhere.
const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{
      {"simt", std::make_shared<simt::ExecutedKernels>(run_seed())}};
  return all;
}

}  // namespace trireme::device::test
