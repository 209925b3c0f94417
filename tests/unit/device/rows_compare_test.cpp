// SPDX-License-Identifier: Apache-2.0
#include "unit/device/compare.hpp"

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Widths of a warp and of a block, whole packs and none, wider than a block's packs, narrow.
std::vector<Shape> shapes() {
  return shapes_of({{1, 1}, {37, 7}, {19, 33}, {70, 64}, {5, 1000}, {3, 1032}, {2, 2309}},
                   {149, 333});
}

}  // namespace

TEST_CASE("norms equal the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto kind = GENERATE(NormKind::rms, NormKind::layer);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape : shapes()) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare(dtype, [&](Kernels& kernels) {
      const auto like = [&] { return TestTensor(dtype, {shape.rows, shape.width}, spread); };
      auto x = like();
      auto residual = like();
      auto sum = like();
      auto y = like();
      auto dy = like();
      auto dx = like();
      TestTensor weight(dtype, {shape.width});
      TestTensor bias(dtype, {shape.width});
      TestTensor mean(DType::f32, {shape.rows});
      TestTensor rstd(DType::f32, {shape.rows});
      TestTensor d_weight(DType::f32, {shape.width});
      TestTensor d_bias(DType::f32, {shape.width});
      x.randomise(1);
      residual.randomise(2);
      dy.randomise(3);
      weight.randomise(4);
      bias.randomise(5);
      d_weight.randomise(6);
      d_bias.randomise(7);
      kernels.issue(Fill{mean, 0.0F});
      const bool layer = kind == NormKind::layer;
      const Tensor none;
      kernels.issue(NormForward{kind, x, residual, sum, weight, layer ? bias.view() : none, y,
                                layer ? mean.view() : none, rstd, 1e-5F});
      kernels.issue(NormBackward{kind, dy, sum, weight, layer ? mean.view() : none, rstd, residual,
                                 dx, d_weight, layer ? d_bias.view() : none});
      return all({sum, y, dx, mean, rstd, d_weight, d_bias});
    });
  }
}

TEST_CASE("bias gradients equal the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape :
       {Shape{1, 1}, Shape{37, 7}, Shape{300, 40}, Shape{5, 1032}, Shape{33, 515}}) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare(dtype, [&](Kernels& kernels) {
      TestTensor dy(dtype, {shape.rows, shape.width}, spread);
      TestTensor x(dtype, {shape.rows, 2});
      TestTensor dw(DType::f32, {shape.width, 2});
      TestTensor d_bias(DType::f32, {shape.width});
      dy.randomise(1);
      x.randomise(2);
      dw.randomise(3);
      d_bias.randomise(4);
      kernels.issue(LinearBackwardWeight{dy, x, dw, d_bias});
      return all({d_bias});
    });
  }
}

TEST_CASE("biases are added to results of their own and of another type") {
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  const auto types =
      GENERATE(std::pair{DType::bf16, DType::f32}, std::pair{DType::bf16, DType::bf16},
               std::pair{DType::f32, DType::f32});
  const auto in = types.first;
  const auto out = types.second;
  for (const auto& shape :
       {Shape{1, 1}, Shape{37, 7}, Shape{30, 40}, Shape{5, 1032}, Shape{33, 515}}) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare(out, [&](Kernels& kernels) {
      TestTensor x(in, {shape.rows, 3});
      TestTensor w(in, {shape.width, 3});
      TestTensor bias(in, {shape.width});
      TestTensor y(out, {shape.rows, shape.width}, spread);
      x.randomise(1);
      w.randomise(2);
      // Larger than any product: one that cancels it leaves its rounding alone, and nothing to
      // compare.
      std::vector<float> biases;
      for (std::int64_t column = 0; column < shape.width; ++column) {
        biases.push_back(static_cast<float>(8 + column % 7));
      }
      bias.set(biases);
      kernels.issue(LinearForward{x, w, bias, y});
      return all({y});
    });
  }
}

TEST_CASE("embeddings equal the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape :
       shapes_of({{1, 1}, {149, 33}, {300, 8}, {20, 264}, {70, 301}}, {149, 333})) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare(dtype, [&](Kernels& kernels) {
      TestTensor tokens(DType::i32, {shape.rows});
      TestTensor table(dtype, {41, shape.width}, spread);
      TestTensor positions(dtype, {60, shape.width}, spread);
      TestTensor x(dtype, {shape.rows, shape.width}, spread);
      TestTensor d_table(DType::f32, {41, shape.width}, spread);
      TestTensor d_positions(DType::f32, {60, shape.width}, spread);
      tokens.set_integers(some_tokens(shape.rows, 50));
      table.randomise(1);
      positions.randomise(2);
      d_table.randomise(3);
      d_positions.randomise(4);
      kernels.issue(EmbeddingForward{tokens, table, 5, x});
      kernels.issue(AddPositions{x, positions, 50, 3});
      kernels.issue(EmbeddingBackward{tokens, x, 5, d_table});
      kernels.issue(AddPositionsBackward{x, 50, d_positions});
      return all({x, d_table, d_positions});
    });
  }
}

TEST_CASE("cross-entropy equals the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const std::int64_t columns : {1, 5, 333, 2048, 5007}) {
    INFO("columns " << columns);
    compare(dtype, [&](Kernels& kernels) {
      TestTensor logits(dtype, {7, columns}, spread);
      TestTensor targets(DType::i32, {7});
      TestTensor stats(DType::f32, {3, 7});
      TestTensor parts(DType::f32, {2, 3, 7});
      TestTensor lse(DType::f32, {7});
      TestTensor losses(DType::f32, {7});
      logits.randomise(1, 4.0F);
      auto ids = some_tokens(7, columns + 9);
      ids[3] = -100;
      targets.set_integers(ids);
      kernels.issue(CrossEntropyStats{logits, targets, 7, stats});
      // This rank's part and another's, which knows none of the targets.
      auto numbers = stats.values();
      for (std::size_t i = 0; i < 21; ++i) {
        numbers.push_back(i < 7 ? 0.5F : (i < 14 ? 3.25F : 0.0F));
      }
      parts.set(numbers);
      kernels.issue(CrossEntropyCombine{parts, targets, lse, losses});
      kernels.issue(CrossEntropyGradient{logits, targets, 7, lse, 0.01F});
      return all({stats, lse, losses, logits});
    });
  }
}
