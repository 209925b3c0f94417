// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/chunks.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/elements.hpp"

#include <cmath>

namespace trireme::device::cpu {
namespace {

/// The rows of a tensor that may be absent.
template <typename T>
class OptionalRows {
 public:
  explicit OptionalRows(const Tensor& tensor) : rows_(tensor), data_(data_of<T>(tensor)) {}
  T* at(std::int64_t row) const { return data_ == nullptr ? nullptr : data_ + rows_.offset(row); }

 private:
  Rows rows_;
  T* data_;
};

/// Rows shorter than this are computed in fp64, backward from the numbers themselves: of a row of
/// one number, or of two around their mean, the gradient is what eps alone leaves, and in fp32
/// rounding errors would hide it.
constexpr std::int64_t narrow_width = 16;

template <typename T>
double wide(const T* row, std::int64_t column) {
  return static_cast<double>(to_float(row[column]));
}

/// A narrow row, normalised.
struct NarrowRow {
  double mean = 0;
  double rstd = 0;
  double normalised[narrow_width] = {};

  template <typename T>
  NarrowRow(NormKind kind, const T* x, std::int64_t width, float eps) {
    const auto count = static_cast<double>(width);
    if (kind == NormKind::layer) {
      for (std::int64_t c = 0; c < width; ++c) mean += wide(x, c) / count;
    }
    double squares = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      squares += (wide(x, c) - mean) * (wide(x, c) - mean);
    }
    rstd = 1.0 / std::sqrt(squares / count + static_cast<double>(eps));
    for (std::int64_t c = 0; c < width; ++c) normalised[c] = (wide(x, c) - mean) * rstd;
  }
};

template <typename T, NormKind kind>
NormStatistics narrow_forward(const NormForwardRow<T>& row) {
  const T* x = row.x;
  if (row.residual != nullptr) {
    for (std::int64_t c = 0; c < row.width; ++c) {
      assign(row.sum[c], to_float(row.x[c]) + to_float(row.residual[c]));
    }
    x = row.sum;
  }
  const NarrowRow narrow(kind, x, row.width, row.eps);
  for (std::int64_t c = 0; c < row.width; ++c) {
    const double offset = row.bias == nullptr ? 0.0 : wide(row.bias, c);
    assign(row.y[c], static_cast<float>(narrow.normalised[c] * wide(row.weight, c) + offset));
  }
  return {static_cast<float>(narrow.mean), static_cast<float>(narrow.rstd)};
}

/// The formula of norm_backward_row (simd/norm.hpp).
template <typename T, NormKind kind>
void narrow_backward(const NormBackwardRow<T>& row) {
  const NarrowRow narrow(kind, row.x, row.width, row.eps);
  const auto count = static_cast<double>(row.width);
  double mean_g = 0;
  double mean_gh = 0;
  for (std::int64_t c = 0; c < row.width; ++c) {
    const double g = wide(row.dy, c) * wide(row.weight, c);
    if (kind == NormKind::layer) mean_g += g / count;
    mean_gh += g * narrow.normalised[c] / count;
    row.d_weight[c] += static_cast<float>(wide(row.dy, c) * narrow.normalised[c]);
    if (row.d_bias != nullptr) row.d_bias[c] += to_float(row.dy[c]);
  }
  for (std::int64_t c = 0; c < row.width; ++c) {
    const double g = wide(row.dy, c) * wide(row.weight, c);
    const double direct = row.d_residual == nullptr ? 0.0 : wide(row.d_residual, c);
    const double through = narrow.rstd * (g - mean_g - narrow.normalised[c] * mean_gh);
    assign(row.dx[c], static_cast<float>(through + direct));
  }
}

template <typename T>
constexpr NormFunctions<T> narrow_functions{
    narrow_forward<T, NormKind::rms>, narrow_forward<T, NormKind::layer>,
    narrow_backward<T, NormKind::rms>, narrow_backward<T, NormKind::layer>};

template <typename T>
const NormFunctions<T>& functions_for(const Context& context, std::int64_t width) {
  return width < narrow_width ? narrow_functions<T> : tables_of(context.isa).norm.of(T{});
}

template <typename T>
void forward(const Context& context, const NormForward& norm) {
  const Rows rows(norm.x);
  const OptionalRows<T> x(norm.x);
  const OptionalRows<T> residual(norm.residual);
  const OptionalRows<T> sum(norm.sum);
  const OptionalRows<T> y(norm.y);
  const auto* weight = data_of<T>(norm.weight);
  const auto* bias = data_of<T>(norm.bias);
  auto* mean = data_of<float>(norm.mean);
  auto* rstd = data_of<float>(norm.rstd);
  const auto& functions = functions_for<T>(context, rows.width());
  const auto run = norm.kind == NormKind::layer ? functions.layer_forward : functions.rms_forward;
  parallel_for(*context.team, rows.count(), row_grain(rows.width()), [&](Range range) {
    for (auto row = range.begin; row < range.end; ++row) {
      const auto statistics = run({x.at(row), residual.at(row), sum.at(row), weight, bias,
                                   y.at(row), rows.width(), norm.eps});
      if (mean != nullptr) mean[row] = statistics.mean;
      if (rstd != nullptr) rstd[row] = statistics.rstd;
    }
  });
}

template <typename T>
void backward(Context& context, const NormBackward& norm) {
  const Rows rows(norm.dy);
  const auto width = rows.width();
  const OptionalRows<T> dy(norm.dy);
  const OptionalRows<T> x(norm.x);
  const OptionalRows<T> d_residual(norm.d_residual);
  const OptionalRows<T> dx(norm.dx);
  const auto* weight = data_of<T>(norm.weight);
  const auto* mean = data_of<float>(norm.mean);
  const auto* rstd = data_of<float>(norm.rstd);
  const bool layer = norm.kind == NormKind::layer;
  const auto& functions = functions_for<T>(context, rows.width());
  const auto run = layer ? functions.layer_backward : functions.rms_backward;
  // A chunk's partial sums: those of the weight, then those of the bias.
  const auto* total =
      sum_columns(context, RowChunks(rows.count()), 2 * width, [&](Range range, float* partial) {
        for (auto row = range.begin; row < range.end; ++row) {
          run({dy.at(row),
               x.at(row),
               weight,
               d_residual.at(row),
               dx.at(row),
               partial,
               norm.d_bias ? partial + width : nullptr,
               width,
               {layer ? mean[row] : 0.0F, rstd[row]},
               norm.eps});
        }
      });
  if (total == nullptr) return;
  const auto& arithmetic = tables_of(context.isa).arithmetic.f32;
  arithmetic.accumulate(total, norm.d_weight.f32(), width);
  if (norm.d_bias) arithmetic.accumulate(total + width, norm.d_bias.f32(), width);
}

}  // namespace

template <>
void run(Context& context, const NormForward& norm) {
  with_type(norm.x.dtype(), [&](auto element) { forward<decltype(element)>(context, norm); });
}

template <>
void run(Context& context, const NormBackward& norm) {
  with_type(norm.dy.dtype(), [&](auto element) { backward<decltype(element)>(context, norm); });
}

}  // namespace trireme::device::cpu
