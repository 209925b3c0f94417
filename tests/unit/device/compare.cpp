// SPDX-License-Identifier: Apache-2.0
#include "unit/device/compare.hpp"

namespace trireme::device::test {
namespace {

void compare_within(double tolerance, const Work& work) {
  const auto expected = work(*make_reference_kernels());
  for (const auto& variants : variants_under_test()) {
    INFO(variants.name << ", --rng-seed " << run_seed());
    const auto results = work(*variants.kernels.front());
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("result " << i);
      CHECK(relative_error(results[i], expected[i]) <= tolerance);
    }
    for (std::size_t i = 1; i < variants.kernels.size(); ++i) {
      INFO("variant " << i);
      CHECK((work(*variants.kernels[i]) == results));
    }
  }
}

}  // namespace

void compare(DType dtype, const Work& work) {
  INFO(name(dtype));
  compare_within(dtype == DType::f32 ? 1e-5 : 1e-2, work);
}

void compare_exactly(const Work& work) {
  compare_within(0, work);
}

Results all(std::initializer_list<std::reference_wrapper<const TestTensor>> tensors) {
  Results results;
  for (const TestTensor& tensor : tensors) {
    CHECK(tensor.written_exactly());
    results.push_back(tensor.values());
  }
  return results;
}

std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * i * 7919 % vocabulary));
  }
  return tokens;
}

std::vector<Shape> shapes_of(std::vector<Shape> odd, Shape large) {
  if (take_large_shapes()) odd.push_back(large);
  return odd;
}

}  // namespace trireme::device::test
