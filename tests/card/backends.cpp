#include "unit/device/backends.hpp"

#include "trireme/base/error.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "unit/device/compare.hpp"

namespace trireme::device::test {
namespace {

std::shared_ptr<Kernels> on_card(AttentionBy attention) {
  return std::make_shared<MirroredKernels>(base::value_or_throw(make_cuda_kernels(0, attention)));
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{{"cuda", on_card(AttentionBy::either)}};
  return all;
}

/// Which threads go first, and how own attention repeats, is looked at in tests/simt.
const std::vector<Variants>& variants_under_test() {
  static const std::vector<Variants> all{{"cuda", {on_card(AttentionBy::either)}}};
  return all;
}

bool take_large_shapes() {
  return false;
}

}  // namespace trireme::device::test
