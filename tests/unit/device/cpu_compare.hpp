#pragma once

#include "device/cpu/cpu_kernels.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <vector>

namespace trireme::device::test {

using Results = std::vector<std::vector<float>>;
/// Runs kernels on inputs that depend on the seed alone and returns what they wrote.
using Work = std::function<Results(Kernels&)>;

/// The cpu backend against the reference within the tolerance of the type, and with one thread
/// against several bit by bit, for every instruction set of this machine.
inline void compare(DType dtype, const Work& work) {
  const auto reference = make_reference_kernels();
  const auto expected = work(*reference);
  for (const auto isa : cpu::all_isas) {
    if (!cpu::runs(isa)) continue;
    INFO(cpu::name(isa) << " " << name(dtype) << ", --rng-seed " << run_seed());
    const auto one = work(*cpu::make_kernels(1, isa));
    REQUIRE(one.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("result " << i);
      CHECK(relative_error(one[i], expected[i]) < (dtype == DType::f32 ? 1e-5 : 1e-2));
    }
    for (const int threads : {2, 5}) {
      INFO(threads << " threads");
      CHECK((work(*cpu::make_kernels(threads, isa)) == one));
    }
  }
}

inline Results all(std::initializer_list<std::reference_wrapper<const TestTensor>> tensors) {
  Results results;
  for (const TestTensor& tensor : tensors) {
    CHECK(tensor.written_exactly());
    results.push_back(tensor.values());
  }
  return results;
}

}  // namespace trireme::device::test
