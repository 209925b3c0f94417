#include "device/cpu/norm.hpp"

#include "device/cpu/chunks.hpp"
#include "device/cpu/runs.hpp"
#include "device/cpu/simd/tables.hpp"

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

void expect_vector(const Tensor& vector, std::int64_t length, const char* what) {
  TRIREME_EXPECT(vector.contiguous() && vector.element_count() == length,
                 std::string("norm: ") + what + " is " + vector.text());
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
  const auto& functions = tables_of(context.isa).norm.of(T{});
  const auto run = norm.kind == NormKind::layer ? functions.layer_forward : functions.rms_forward;
  parallel_for(context.threads, rows.count(), row_grain(rows.width()), [&](Range range) {
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
  const auto& functions = tables_of(context.isa).norm.of(T{});
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
               {layer ? mean[row] : 0.0F, rstd[row]}});
        }
      });
  if (total == nullptr) return;
  const auto& arithmetic = tables_of(context.isa).arithmetic.f32;
  arithmetic.accumulate(total, norm.d_weight.f32(), width);
  if (norm.d_bias) arithmetic.accumulate(total + width, norm.d_bias.f32(), width);
}

}  // namespace

void norm_forward(const Context& context, const NormForward& norm) {
  const Rows rows(norm.x);
  expect_same_shape(norm.x, norm.y);
  expect_vector(norm.weight, rows.width(), "weight");
  if (norm.residual) {
    TRIREME_EXPECT(norm.sum, "norm: a residual needs a place for the sum");
    expect_same_shape(norm.x, norm.residual);
    expect_same_shape(norm.x, norm.sum);
  }
  if (norm.bias) expect_vector(norm.bias, rows.width(), "bias");
  if (norm.mean) expect_vector(norm.mean, rows.count(), "mean");
  if (norm.rstd) expect_vector(norm.rstd, rows.count(), "rstd");
  with_type(norm.x.dtype(), [&](auto element) { forward<decltype(element)>(context, norm); });
}

void norm_backward(Context& context, const NormBackward& norm) {
  const Rows rows(norm.dy);
  expect_same_shape(norm.dy, norm.x);
  expect_same_shape(norm.dy, norm.dx);
  if (norm.d_residual) expect_same_shape(norm.dy, norm.d_residual);
  expect_vector(norm.weight, rows.width(), "weight");
  expect_vector(norm.d_weight, rows.width(), "d_weight");
  if (norm.d_bias) expect_vector(norm.d_bias, rows.width(), "d_bias");
  expect_vector(norm.rstd, rows.count(), "rstd");
  if (norm.kind == NormKind::layer) expect_vector(norm.mean, rows.count(), "mean");
  with_type(norm.dy.dtype(), [&](auto element) { backward<decltype(element)>(context, norm); });
}

}  // namespace trireme::device::cpu
