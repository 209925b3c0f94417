// SPDX-License-Identifier: Apache-2.0
#include "unit/device/compare.hpp"

#include <bit>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

std::vector<Shape> shapes() {
  return shapes_of({{1, 1}, {3, 7}, {29, 64}, {61, 40}, {13, 333}}, {149, 333});
}

}  // namespace

TEST_CASE("activations equal the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape : shapes()) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare(dtype, [&](Kernels& kernels) {
      const auto like = [&] { return TestTensor(dtype, {shape.rows, shape.width}, spread); };
      auto x = like();
      auto up = like();
      auto dy = like();
      auto gelu = like();
      auto x_sum = like();
      auto gelu_dx = like();
      auto gelu_sum = like();
      auto swiglu = like();
      auto d_gate = like();
      auto gate_sum = like();
      auto d_up = like();
      x.randomise(1, 3.0F);
      up.randomise(2);
      dy.randomise(3);
      kernels.issue(GeluForward{x, gelu});
      kernels.issue(GeluBackward{dy, x, gelu_dx});
      kernels.issue(SwigluForward{x, up, swiglu});
      kernels.issue(SwigluBackward{dy, x, up, d_gate, d_up});
      // gelu is all rounding far below 0, where 1 + tanh is nothing; a share of x is what counts.
      CHECK(gelu.written_exactly());
      kernels.issue(Add{gelu, x, x_sum});
      // Both slopes are 0 somewhere, and a share of nothing says nothing: a share of dy does.
      kernels.issue(Add{gelu_dx, dy, gelu_sum});
      kernels.issue(Add{d_gate, dy, gate_sum});
      return all({x_sum, gelu_sum, swiglu, gate_sum, d_up});
    });
  }
}

TEST_CASE("dropout takes the reference's masks") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape : shapes()) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    const Dropout mask{0.3F, run_seed(), 11, 5, 2, 400};
    compare_exactly([&](Kernels& kernels) {
      TestTensor x(dtype, {shape.rows, shape.width}, spread);
      TestTensor y(dtype, {shape.rows, shape.width}, spread);
      x.randomise(1);
      kernels.issue(ApplyDropout{x, mask, y});
      return all({y});
    });
  }
}

TEST_CASE("rotary embeddings equal the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto inverse = GENERATE(false, true);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const std::int64_t head_dim : {2, 24, 64, 66, 128}) {
    INFO("head_dim " << head_dim);
    compare(dtype, [&](Kernels& kernels) {
      TestTensor x(dtype, {2, 13, 3, head_dim}, spread);
      TestTensor cosine(DType::f32, {30, head_dim / 2});
      TestTensor sine(DType::f32, {30, head_dim / 2});
      x.randomise(1);
      cosine.randomise(2);
      sine.randomise(3);
      kernels.issue(Rotary{x, cosine, sine, 9, inverse});
      return all({x});
    });
  }
}

TEST_CASE("arithmetic equals the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape : shapes()) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare(dtype, [&](Kernels& kernels) {
      const auto like = [&](DType type) {
        return TestTensor(type, {shape.rows, 3, shape.width}, spread);
      };
      auto x = like(dtype);
      auto y = like(dtype);
      auto z = like(dtype);
      auto sum = like(DType::f32);
      auto filled = like(dtype);
      auto other = like(dtype == DType::f32 ? DType::bf16 : DType::f32);
      auto same = like(dtype);
      TestTensor integers(DType::i32, {shape.rows, shape.width}, spread);
      TestTensor copies(DType::i32, {shape.rows, shape.width}, spread);
      x.randomise(1);
      y.randomise(2);
      sum.randomise(3);
      const auto tokens = some_tokens(shape.rows * shape.width, 1 << 30);
      integers.set_integers(tokens);
      kernels.issue(Add{x, y, z});
      kernels.issue(Accumulate{x, sum});
      kernels.issue(Fill{filled, 0.0F});
      kernels.issue(Fill{filled.view().slice(1, 1, 2), 1.25F});
      kernels.issue(Copy{x, other});
      kernels.issue(Copy{x, same});
      kernels.issue(Copy{integers, copies});
      CHECK(copies.written_exactly());
      return all({z, sum, filled, other, same});
    });
  }
}

TEST_CASE("sums in double equal the reference") {
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape :
       shapes_of({{1, 1}, {3, 77}, {1, 16'384}, {1, 16'385}, {7, 6'001}}, {5, 50'021})) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    TestTensor x(DType::f32, {shape.rows, shape.width}, spread);
    x.randomise(1);
    const auto reference = make_reference_kernels();
    for (const auto& variants : variants_under_test()) {
      INFO(variants.name << ", --rng-seed " << run_seed());
      const double squares = variants.kernels.front()->sum_of_squares(x);
      const double sum = variants.kernels.front()->sum(x);
      CHECK(squares == Approx(reference->sum_of_squares(x)).epsilon(1e-12));
      CHECK(sum == Approx(reference->sum(x)).epsilon(1e-10));
      for (const auto& kernels : variants.kernels) {
        CHECK(std::bit_cast<std::uint64_t>(kernels->sum_of_squares(x)) ==
              std::bit_cast<std::uint64_t>(squares));
        CHECK(std::bit_cast<std::uint64_t>(kernels->sum(x)) == std::bit_cast<std::uint64_t>(sum));
      }
    }
  }
}

TEST_CASE("optimizers equal the reference over several steps") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for (const auto& shape :
       shapes_of({{1, 1}, {1, 3}, {1, 64}, {1, 1'023}, {1, 10'007}}, {1, 40'003})) {
    const auto count = shape.width;
    INFO("count " << count);
    compare(DType::f32, [&](Kernels& kernels) {
      TestTensor gradient(DType::f32, {count});
      TestTensor master(DType::f32, {count});
      TestTensor first(DType::f32, {count});
      TestTensor second(DType::f32, {count});
      TestTensor parameter(dtype, {count});
      master.randomise(1);
      kernels.issue(Fill{first, 0.0F});
      kernels.issue(Fill{second, 0.0F});
      for (std::int64_t step = 1; step <= 3; ++step) {
        gradient.randomise(static_cast<std::uint64_t>(10 + step));
        kernels.issue(AdamWUpdate{{1e-2F, 0.9F, 0.95F, 1e-8F, 0.1F, 0.7F, step},
                                  gradient,
                                  master,
                                  first,
                                  second,
                                  parameter});
      }
      auto results = all({master, first, second});
      // The rounded copy follows its own master exactly.
      const auto masters = master.values();
      const auto copies = parameter.values();
      for (std::size_t i = 0; i < masters.size(); ++i) {
        const float rounded = dtype == DType::f32 ? masters[i] : to_float(to_bf16(masters[i]));
        if (copies[i] != rounded) FAIL("parameter " << i << " is not its master");
      }
      for (int step = 0; step < 3; ++step) {
        kernels.issue(SgdUpdate{{1e-2F, 0.9F, 0.1F, 0.7F}, gradient, master, first, master});
      }
      for (auto& result : all({master, first})) results.push_back(result);
      return results;
    });
  }
}
