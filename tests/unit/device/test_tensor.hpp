// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

namespace trireme::device::test {

/// Where the elements of a test tensor lie: next to each other, or as a part of a wider tensor
/// along every dimension.
enum class Spread { contiguous, strided };

/// A tensor in memory of its own. All of that memory, inside the view and around it, starts as a
/// poison that no kernel computes.
class TestTensor {
 public:
  TestTensor(DType dtype, std::initializer_list<std::int64_t> shape,
             Spread spread = Spread::contiguous);

  const Tensor& view() const { return view_; }
  operator const Tensor&() const { return view_; }  // NOLINT(google-explicit-constructor)

  /// Standard normal numbers times `scale`, new for every (seed, stream).
  TestTensor& randomise(std::uint64_t stream, float scale = 1.0F);
  TestTensor& set(const std::vector<float>& values);
  TestTensor& set_integers(const std::vector<std::int32_t>& values);
  TestTensor& poison();

  /// In row-major order, as float.
  std::vector<float> values() const;
  float at(std::int64_t index) const { return values().at(static_cast<std::size_t>(index)); }
  /// The element in row-major order, for changing it; f32 only.
  float& f32_at(std::int64_t index) {
    return view_.f32()[offsets_.at(static_cast<std::size_t>(index))];
  }

  /// No element of the view holds the poison.
  bool fully_written() const;
  /// Every element around the view holds the poison.
  bool untouched_outside() const;
  /// Both.
  bool written_exactly() const { return fully_written() && untouched_outside(); }

 private:
  std::vector<std::byte> memory_;
  std::size_t memory_elements_ = 0;
  Tensor whole_;
  Tensor view_;
  /// Offset of each element in row-major order, from the first element of the view.
  std::vector<std::int64_t> offsets_;
};

/// The seed of this run: fresh each time, or what --rng-seed says. Failures print it.
std::uint64_t run_seed();

/// ‖a − b‖ / ‖b‖ in double; ‖a‖ when b is zero. NaN when either holds one.
double relative_error(const std::vector<float>& a, const std::vector<float>& b);

/// Relative error of `gradient` against central differences of `loss` in each element of x.
double gradient_error(TestTensor& x, const std::vector<float>& gradient,
                      const std::function<double()>& loss, float step = 1e-2F);

/// Sum of the products of elements: a loss whose gradient is known.
double dot(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace trireme::device::test
