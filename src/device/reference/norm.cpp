// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

#include <cmath>
#include <vector>

namespace trireme::device::reference {
namespace {

struct Statistics {
  double mean = 0;
  double rstd = 0;
};

template <typename T>
Statistics statistics(NormKind kind, const T* row, std::int64_t width, float eps) {
  const auto count = static_cast<double>(width);
  Statistics result;
  if (kind == NormKind::layer) {
    for (std::int64_t c = 0; c < width; ++c) result.mean += static_cast<double>(to_float(row[c]));
    result.mean /= count;
  }
  double squares = 0;
  for (std::int64_t c = 0; c < width; ++c) {
    const auto centered = static_cast<double>(to_float(row[c])) - result.mean;
    squares += centered * centered;
  }
  result.rstd = 1.0 / std::sqrt(squares / count + static_cast<double>(eps));
  return result;
}

template <typename T>
void forward_row(const NormForward& norm, const T* x, T* y, const Statistics& stats) {
  const auto* weight = data_of<T>(norm.weight);
  const auto* bias = data_of<T>(norm.bias);
  const auto mean = static_cast<float>(stats.mean);
  const auto rstd = static_cast<float>(stats.rstd);
  const auto width = norm.weight.element_count();
  for (std::int64_t c = 0; c < width; ++c) {
    const float offset = bias == nullptr ? 0.0F : to_float(bias[c]);
    assign(y[c], (to_float(x[c]) - mean) * rstd * to_float(weight[c]) + offset);
  }
}

/// dx of one row: with g = dy * weight and h the normalised row,
/// dx = rstd * (g - mean(g) - h * mean(g * h)); RMS norm lacks the first mean.
template <typename T>
void backward_row(const NormBackward& norm, const T* dy, const std::vector<double>& normalised,
                  double rstd, const T* d_residual, T* dx) {
  const auto* weight = data_of<T>(norm.weight);
  const auto width = norm.weight.element_count();
  double mean_g = 0;
  double mean_gh = 0;
  for (std::int64_t c = 0; c < width; ++c) {
    const auto g = static_cast<double>(to_float(dy[c])) * static_cast<double>(to_float(weight[c]));
    mean_g += g;
    mean_gh += g * normalised[static_cast<std::size_t>(c)];
  }
  mean_g = norm.kind == NormKind::layer ? mean_g / static_cast<double>(width) : 0.0;
  mean_gh /= static_cast<double>(width);
  for (std::int64_t c = 0; c < width; ++c) {
    const auto g = static_cast<double>(to_float(dy[c])) * static_cast<double>(to_float(weight[c]));
    const auto through = rstd * (g - mean_g - normalised[static_cast<std::size_t>(c)] * mean_gh);
    const float direct = d_residual == nullptr ? 0.0F : to_float(d_residual[c]);
    assign(dx[c], static_cast<float>(through) + direct);
  }
}

template <typename T>
void backward(const NormBackward& norm) {
  const Rows dy_rows(norm.dy);
  const Rows x_rows(norm.x);
  const Rows dx_rows(norm.dx);
  const auto width = static_cast<std::size_t>(dy_rows.width());
  std::vector<double> normalised(width);
  std::vector<double> d_weight(width);
  std::vector<double> d_bias(width);
  for (std::int64_t row = 0; row < dy_rows.count(); ++row) {
    const auto* dy = data_of<T>(norm.dy) + dy_rows.offset(row);
    const auto* x = data_of<T>(norm.x) + x_rows.offset(row);
    const auto* d_residual =
        norm.d_residual ? data_of<T>(norm.d_residual) + Rows(norm.d_residual).offset(row) : nullptr;
    // Statistics are computed anew, not taken rounded from the forward: of a row of one number, or
    // of two around their mean, the gradient is what eps alone leaves, and fp32 would lose it.
    const auto stats = statistics(norm.kind, x, dy_rows.width(), norm.eps);
    for (std::size_t c = 0; c < width; ++c) {
      normalised[c] = (static_cast<double>(to_float(x[c])) - stats.mean) * stats.rstd;
      d_weight[c] += static_cast<double>(to_float(dy[c])) * normalised[c];
      d_bias[c] += static_cast<double>(to_float(dy[c]));
    }
    backward_row<T>(norm, dy, normalised, stats.rstd, d_residual,
                    data_of<T>(norm.dx) + dx_rows.offset(row));
  }
  for (std::size_t c = 0; c < width; ++c) {
    norm.d_weight.f32()[c] += static_cast<float>(d_weight[c]);
    if (norm.d_bias) norm.d_bias.f32()[c] += static_cast<float>(d_bias[c]);
  }
}

}  // namespace

template <>
void run(const NormForward& norm) {
  const Rows x_rows(norm.x);
  const Rows y_rows(norm.y);
  with_type(norm.x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < x_rows.count(); ++row) {
      const auto* x = data_of<T>(norm.x) + x_rows.offset(row);
      if (norm.residual) {
        const auto* residual = data_of<T>(norm.residual) + Rows(norm.residual).offset(row);
        auto* sum = data_of<T>(norm.sum) + Rows(norm.sum).offset(row);
        for (std::int64_t c = 0; c < x_rows.width(); ++c) {
          assign(sum[c], to_float(x[c]) + to_float(residual[c]));
        }
        // The sum that is kept is the one that is normalised, rounding included: backward sees the
        // same.
        x = sum;
      }
      const auto stats = statistics(norm.kind, x, x_rows.width(), norm.eps);
      if (norm.mean) norm.mean.f32()[row] = static_cast<float>(stats.mean);
      if (norm.rstd) norm.rstd.f32()[row] = static_cast<float>(stats.rstd);
      forward_row<T>(norm, x, data_of<T>(norm.y) + y_rows.offset(row), stats);
    }
  });
}

template <>
void run(const NormBackward& norm) {
  with_type(norm.dy.dtype(), [&](auto element) { backward<decltype(element)>(norm); });
}

}  // namespace trireme::device::reference
