#pragma once

#include "trireme/device/kernels.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace trireme::device::test {

using Results = std::vector<std::vector<float>>;
/// Runs kernels on inputs that depend on the seed alone and returns what they wrote.
using Work = std::function<Results(Kernels&)>;

/// The kernels that these suites compare with the reference: executed (tests/simt) in an order of
/// this seed, or those of a card (tests/gpu).
std::unique_ptr<Kernels> kernels_under_test(std::uint64_t seed);

/// Kernels under test against the reference within the tolerance of the type; and twice, which on
/// the executor is in two orders of threads, warps and blocks, bit by bit.
inline void compare(DType dtype, const Work& work) {
  INFO(name(dtype) << ", --rng-seed " << run_seed());
  const auto expected = work(*make_reference_kernels());
  const auto results = work(*kernels_under_test(run_seed()));
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("result " << i);
    CHECK(relative_error(results[i], expected[i]) < (dtype == DType::f32 ? 1e-5 : 1e-2));
  }
  CHECK((work(*kernels_under_test(run_seed() + 1)) == results));
}

inline Results all(std::initializer_list<std::reference_wrapper<const TestTensor>> tensors) {
  Results results;
  for (const TestTensor& tensor : tensors) {
    CHECK(tensor.written_exactly());
    results.push_back(tensor.values());
  }
  return results;
}

inline std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * i * 7919 % vocabulary));
  }
  return tokens;
}

}  // namespace trireme::device::test
