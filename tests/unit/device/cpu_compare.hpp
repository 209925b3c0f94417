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

/// The cpu backend against the reference within the tolerance of the type, in both tilings, and
/// with one thread against several bit by bit where tiles depend on the shape alone, for every
/// instruction set of this machine.
inline void compare(DType dtype, const Work& work) {
  const auto reference = make_reference_kernels();
  const auto expected = work(*reference);
  for (const auto isa : cpu::all_isas) {
    if (!cpu::runs(isa)) continue;
    INFO(cpu::name(isa) << " " << name(dtype) << ", --rng-seed " << run_seed());
    const auto equals_reference = [&](const Results& results) {
      REQUIRE(results.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO("result " << i);
        CHECK(relative_error(results[i], expected[i]) < (dtype == DType::f32 ? 1e-5 : 1e-2));
      }
    };
    const auto one = work(*cpu::make_kernels(1, isa, Tiling::by_shape));
    equals_reference(one);
    for (const int threads : {2, 5}) {
      INFO(threads << " threads");
      CHECK((work(*cpu::make_kernels(threads, isa, Tiling::by_shape)) == one));
    }
    for (const int threads : {1, 3}) {
      INFO(threads << " threads, tiles for them");
      const auto suited = work(*cpu::make_kernels(threads, isa, Tiling::for_threads));
      equals_reference(suited);
      CHECK((work(*cpu::make_kernels(threads, isa, Tiling::for_threads)) == suited));
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
