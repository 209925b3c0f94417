#include "unit/device/backends.hpp"

#include "trireme/base/error.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "simt/compare.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{{"cuda", kernels_under_test(0)}};
  return all;
}

std::unique_ptr<Kernels> kernels_under_test(std::uint64_t) {
  return std::make_unique<MirroredKernels>(base::value_or_throw(make_cuda_kernels(0)));
}

}  // namespace trireme::device::test
