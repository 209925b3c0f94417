// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cublaslt/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace trireme::testing::cublaslt {
namespace {

float of_e4m3(std::uint8_t code) {
  const float sign = (code & 0x80U) != 0 ? -1.0F : 1.0F;
  const int exponent = (code >> 3U) & 0xFU;
  const int fraction = code & 0x7U;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -9);
  return sign * std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
}

float of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

/// To the nearest, ties to even.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float load(const void* matrix, std::int32_t type, std::size_t index) {
  if (type == CUDA_R_32F) return static_cast<const float*>(matrix)[index];
  if (type == CUDA_R_16BF) return of_bf16(static_cast<const std::uint16_t*>(matrix)[index]);
  return of_e4m3(static_cast<const std::uint8_t*>(matrix)[index]);
}

void store(void* matrix, std::int32_t type, std::size_t index, double value) {
  const auto number = static_cast<float>(value);
  if (type == CUDA_R_32F) {
    static_cast<float*>(matrix)[index] = number;
  } else {
    static_cast<std::uint16_t*>(matrix)[index] = to_bf16(number);
  }
}

/// op(matrix) with its inner dimension in one run: `count` runs of `inner`.
std::vector<float> runs_of(const void* matrix, const Layout& layout, bool inner_is_rows) {
  const auto inner = inner_is_rows ? layout.rows : layout.columns;
  const auto count = inner_is_rows ? layout.columns : layout.rows;
  const auto stride = static_cast<std::size_t>(layout.stride);
  std::vector<float> runs(inner * count);
  for (std::size_t run = 0; run < count; ++run) {
    for (std::size_t at = 0; at < inner; ++at) {
      const auto index = inner_is_rows ? run * stride + at : at * stride + run;
      runs[run * inner + at] = load(matrix, layout.type, index);
    }
  }
  return runs;
}

double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  const double root = std::sqrt(sum / static_cast<double>(std::max<std::size_t>(values.size(), 1)));
  return std::isfinite(root) ? root : std::numeric_limits<double>::infinity();
}

template <typename Sum>
Sum sum_of_products(const float* a, const float* b, std::size_t count) {
  Sum sum = 0;
  for (std::size_t at = 0; at < count; ++at) {
    sum += static_cast<Sum>(a[at]) * static_cast<Sum>(b[at]);
  }
  return sum;
}

/// tanh's approximation (Hendrycks and Gimpel, arXiv:1606.08415), as the library has it.
struct Gelu {
  explicit Gelu(double x) : x_(x), tanh_(std::tanh(root * (x + cubic * x * x * x))) {}
  double value() const { return 0.5 * x_ * (1 + tanh_); }
  double slope() const {
    const double inner = root * (1 + 3 * cubic * x_ * x_);
    return 0.5 * (1 + tanh_) + 0.5 * x_ * (1 - tanh_ * tanh_) * inner;
  }

 private:
  static constexpr double root = 0.7978845608028654;  // sqrt(2 / pi)
  static constexpr double cubic = 0.044715;
  double x_;
  double tanh_;
};

class Computation {
 public:
  Computation(const Problem& problem, const Addresses& addresses, const Factors& factors)
      : problem_(problem),
        addresses_(addresses),
        factors_(factors),
        parts_(parts_of(problem.operation.epilogue)),
        a_(runs_of(addresses.a, problem.a, problem.operation.transpose_a == CUBLAS_OP_T)),
        b_(runs_of(addresses.b, problem.b, problem.operation.transpose_b == CUBLAS_OP_N)) {
    if (addresses.scale_a != nullptr) scale_ *= static_cast<double>(*addresses.scale_a);
    if (addresses.scale_b != nullptr) scale_ *= static_cast<double>(*addresses.scale_b);
  }

  OperandSizes operand_sizes() const { return {root_mean_square(a_), root_mean_square(b_)}; }

  void run(const PartialSums& partial_sums) {
    const auto m = problem_.m();
    const auto n = problem_.n();
    const auto sums = partial_sums.place;
    const bool split = sums.size() >= 2 * m * n;
    if (split) write_partial_sums(partial_sums);
    for (std::size_t column = 0; column < n; ++column) {
      for (std::size_t row = 0; row < m; ++row) {
        const auto at = column * m + row;
        const double sum = split ? static_cast<double>(sums[at] + sums[m * n + at])
                                 : sum_of_products<double>(a_of(row), b_of(column), problem_.k());
        finish(row, column, sum);
      }
      if (parts_.sums_of_b) store_sum_of_b(column);
    }
  }

 private:
  const float* a_of(std::size_t row) const { return &a_[row * problem_.k()]; }
  const float* b_of(std::size_t column) const { return &b_[column * problem_.k()]; }

  void write_partial_sums(const PartialSums& sums) const {
    const auto m = problem_.m();
    const auto half = problem_.k() / 2;
    const auto rounded = [&](float sum) {
      return sums.type == CUDA_R_32F ? sum : of_bf16(to_bf16(sum));
    };
    for (std::size_t at = 0; at < m * problem_.n(); ++at) {
      const auto* const a = a_of(at % m);
      const auto* const b = b_of(at / m);
      sums.place[at] = rounded(sum_of_products<float>(a, b, half));
      sums.place[m * problem_.n() + at] =
          rounded(sum_of_products<float>(a + half, b + half, problem_.k() - half));
    }
  }

  void finish(std::size_t row, std::size_t column, double sum) const {
    const auto place = [&](std::int64_t stride) {
      return column * static_cast<std::size_t>(stride) + row;
    };
    double value = static_cast<double>(factors_.alpha) * scale_ * sum;
    // C is not read if nothing of it is added: it may hold anything.
    if (factors_.beta != 0) {
      const auto c = load(addresses_.c, problem_.c.type, place(problem_.c.stride));
      value += static_cast<double>(factors_.beta) * static_cast<double>(c);
    }
    if (parts_.bias) {
      value += static_cast<double>(load(addresses_.bias, problem_.bias_type(), row));
    }
    const auto aux = place(problem_.operation.stride_aux);
    if (parts_.gelu) {
      store(addresses_.aux, problem_.aux_type(), aux, value);
      value = Gelu(value).value();
    }
    if (parts_.gelu_gradient) {
      const auto wide = load(addresses_.aux, problem_.aux_type(), aux);
      value *= Gelu(static_cast<double>(wide)).slope();
    }
    store(addresses_.d, problem_.d.type, place(problem_.d.stride), value);
  }

  void store_sum_of_b(std::size_t column) const {
    double sum = 0;
    for (std::size_t at = 0; at < problem_.k(); ++at) sum += static_cast<double>(b_of(column)[at]);
    store(addresses_.bias, problem_.bias_type(), column, sum);
  }

  const Problem& problem_;
  const Addresses& addresses_;
  Factors factors_;
  EpilogueParts parts_;
  std::vector<float> a_;
  std::vector<float> b_;
  double scale_ = 1;
};

}  // namespace

OperandSizes compute(const Problem& problem, const Addresses& addresses, const Factors& factors,
                     const PartialSums& partial_sums) {
  Computation computation(problem, addresses, factors);
  computation.run(partial_sums);
  return computation.operand_sizes();
}

}  // namespace trireme::testing::cublaslt
