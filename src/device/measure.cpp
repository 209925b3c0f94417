#include "trireme/device/measure.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/device/arena.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace trireme::device {
namespace {

constexpr std::array all_products{Product::forward, Product::backward_input,
                                  Product::backward_weight};

/// The operands of all three products.
struct Operands {
  Operands(Arena& arena, DType dtype, const ProductShape& shape)
      : x(arena.allocate(dtype, {shape.rows, shape.in})),
        w(arena.allocate(dtype, {shape.out, shape.in})),
        y(arena.allocate(dtype, {shape.rows, shape.out})),
        dw(arena.allocate(DType::f32, {shape.out, shape.in})) {}

  Tensor x;
  Tensor w;
  Tensor y;
  Tensor dw;
};

/// Rows that differ: zeros would be kinder to a processor's clock than real numbers are.
void set_rows(Kernels& kernels, const Tensor& tensor, std::uint64_t stream) {
  for (std::int64_t row = 0; row < tensor.dim(0); ++row) {
    const float value = base::philox_normal(1, stream, static_cast<std::uint64_t>(row));
    kernels.fill(tensor.slice(0, row, 1), 0.1F * value);
  }
}

void multiply(Kernels& kernels, Product product, const Operands& operands) {
  switch (product) {
    case Product::forward:
      return kernels.linear_forward(operands.x, operands.w, {}, operands.y);
    case Product::backward_input:
      return kernels.linear_backward_input(operands.y, operands.w, operands.x, false);
    case Product::backward_weight:
      return kernels.linear_backward_weight(operands.y, operands.x, operands.dw, {});
  }
}

}  // namespace

const char* name(Product product) {
  switch (product) {
    case Product::forward:
      return "forward";
    case Product::backward_input:
      return "backward_input";
    case Product::backward_weight:
      return "backward_weight";
  }
  return "?";
}

std::vector<ProductTime> measure_products(Kernels& kernels, DType dtype, const ProductShape& shape,
                                          int repeats) {
  TRIREME_EXPECT(repeats > 0, "a measurement needs a repeat");
  auto measuring = Arena::measuring(Purpose::workspace);
  const Operands measured(measuring, dtype, shape);
  auto arena = kernels.device().arena(Purpose::workspace, measuring.used_bytes());
  const Operands operands(arena, dtype, shape);
  kernels.fill(operands.dw, 0);
  set_rows(kernels, operands.w, 1);
  std::vector<ProductTime> results;
  for (const auto product : all_products) {
    std::vector<double> seconds;
    // The first call prepares and is not counted.
    for (int repeat = -1; repeat < repeats; ++repeat) {
      set_rows(kernels, operands.x, 2);
      if (product != Product::forward) set_rows(kernels, operands.y, 3);
      kernels.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      multiply(kernels, product, operands);
      kernels.synchronize();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (repeat >= 0) seconds.push_back(took.count());
    }
    std::sort(seconds.begin(), seconds.end());
    results.push_back({product, dtype, shape, seconds[seconds.size() / 2], seconds.front()});
  }
  return results;
}

}  // namespace trireme::device
