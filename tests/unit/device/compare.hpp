// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Kernels beside the reference. Suites are written once; each test program says which kernels it
/// compares: the cpu backend's, those of the cuda backend on the executor (tests/simt) or on a GPU
/// (tests/gpu).
namespace trireme::device::test {

/// Kernels that agree with the reference within the tolerance of the type, and with each other bit
/// by bit: of other numbers of threads, or in other orders of threads and blocks.
struct Variants {
  std::string name;
  std::vector<std::shared_ptr<Kernels>> kernels;
};

/// Those of this test program.
const std::vector<Variants>& variants_under_test();
/// Whether they are fast enough for more than a few thousand elements.
bool take_large_shapes();

using Results = std::vector<std::vector<float>>;
/// Runs kernels on inputs that depend on the seed alone and returns what they wrote.
using Work = std::function<Results(Kernels&)>;

/// Relative errors up to 1e-5 in f32, 1e-2 in bf16.
void compare(DType dtype, const Work& work);
/// No error at all.
void compare_exactly(const Work& work);

/// Contents of the tensors; every element must have been written, and nothing beside them.
Results all(std::initializer_list<std::reference_wrapper<const TestTensor>> tensors);

/// Ids that repeat in no simple pattern.
std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocabulary);

struct Shape {
  std::int64_t rows;
  std::int64_t width;
};
/// The odd ones, and the large one where kernels take it.
std::vector<Shape> shapes_of(std::vector<Shape> odd, Shape large);

}  // namespace trireme::device::test
