#include "unit/device/backends.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "unit/device/compare.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all{{"cuda", mirrored_on_card(AttentionBy::either)}};
  return all;
}

const std::vector<Variants>& variants_under_test() {
  static const std::vector<Variants> all{
      {"cuda", {mirrored_on_card(AttentionBy::either), mirrored_on_card(AttentionBy::either)}},
      {"cuda, own attention",
       {mirrored_on_card(AttentionBy::own), mirrored_on_card(AttentionBy::own)}}};
  return all;
}

bool take_large_shapes() {
  return true;
}

}  // namespace trireme::device::test
