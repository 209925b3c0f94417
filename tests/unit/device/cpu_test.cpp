#include "unit/device/backends.hpp"
#include "unit/device/cpu_compare.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Large enough for several threads, of a size that no vector divides.
constexpr std::int64_t rows = 149;
constexpr std::int64_t width = 333;

std::vector<std::int32_t> some_tokens(std::int64_t count, std::int32_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * 7919 % vocabulary));
  }
  return tokens;
}

}  // namespace

TEST_CASE("cpu norms equal the reference and no number of threads changes a bit") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto kind = GENERATE(NormKind::rms, NormKind::layer);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  compare(dtype, [&](Kernels& kernels) {
    const auto like = [&] { return TestTensor(dtype, {rows, width}, spread); };
    auto x = like();
    auto residual = like();
    auto sum = like();
    auto y = like();
    auto dy = like();
    auto dx = like();
    TestTensor weight(dtype, {width});
    TestTensor bias(dtype, {width});
    TestTensor mean(DType::f32, {rows});
    TestTensor rstd(DType::f32, {rows});
    TestTensor d_weight(DType::f32, {width});
    TestTensor d_bias(DType::f32, {width});
    x.randomise(1);
    residual.randomise(2);
    dy.randomise(3);
    weight.randomise(4);
    bias.randomise(5);
    d_weight.randomise(6);
    d_bias.randomise(7);
    kernels.fill(mean, 0.0F);
    const bool layer = kind == NormKind::layer;
    const Tensor none;
    kernels.norm_forward({kind, x, residual, sum, weight, layer ? bias.view() : none, y,
                          layer ? mean.view() : none, rstd, 1e-5F});
    kernels.norm_backward({kind, dy, sum, weight, layer ? mean.view() : none, rstd, residual, dx,
                           d_weight, layer ? d_bias.view() : none});
    return all({sum, y, dx, mean, rstd, d_weight, d_bias});
  });
}

TEST_CASE("cpu activations equal the reference") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  compare(dtype, [&](Kernels& kernels) {
    const auto like = [&] { return TestTensor(dtype, {rows, width}, spread); };
    auto x = like();
    auto up = like();
    auto dy = like();
    auto gelu = like();
    auto gelu_dx = like();
    auto swiglu = like();
    auto d_gate = like();
    auto d_up = like();
    x.randomise(1, 3.0F);
    up.randomise(2);
    dy.randomise(3);
    kernels.gelu_forward(x, gelu);
    kernels.gelu_backward(dy, x, gelu_dx);
    kernels.swiglu_forward(x, up, swiglu);
    kernels.swiglu_backward(dy, x, up, d_gate, d_up);
    return all({gelu, gelu_dx, swiglu, d_gate, d_up});
  });
}

TEST_CASE("cpu rotary embeddings equal the reference") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto inverse = GENERATE(false, true);
  for (const std::int64_t head_dim : {2, 24, 64, 66}) {
    compare(dtype, [&](Kernels& kernels) {
      TestTensor x(dtype, {3, 67, 5, head_dim}, Spread::strided);
      TestTensor cosine(DType::f32, {80, head_dim / 2});
      TestTensor sine(DType::f32, {80, head_dim / 2});
      x.randomise(1);
      cosine.randomise(2);
      sine.randomise(3);
      kernels.rotary(x, cosine, sine, 9, inverse);
      return all({x});
    });
  }
}

TEST_CASE("cpu embeddings equal the reference and no number of threads changes a bit") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  compare(dtype, [&](Kernels& kernels) {
    TestTensor tokens(DType::i32, {rows});
    TestTensor table(dtype, {41, width}, spread);
    TestTensor positions(dtype, {60, width}, spread);
    TestTensor x(dtype, {rows, width}, spread);
    TestTensor d_table(DType::f32, {41, width}, spread);
    TestTensor d_positions(DType::f32, {60, width}, spread);
    tokens.set_integers(some_tokens(rows, 50));
    table.randomise(1);
    positions.randomise(2);
    d_table.randomise(3);
    d_positions.randomise(4);
    kernels.embedding_forward(tokens, table, 5, x);
    kernels.add_positions(x, positions, 50, 3);
    kernels.embedding_backward(tokens, x, 5, d_table);
    kernels.add_positions_backward(x, 50, d_positions);
    return all({x, d_table, d_positions});
  });
}

TEST_CASE("cpu cross-entropy equals the reference over long rows") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  const std::int64_t columns = GENERATE(5, 2048, 6007);
  compare(dtype, [&](Kernels& kernels) {
    TestTensor logits(dtype, {13, columns}, spread);
    TestTensor targets(DType::i32, {13});
    TestTensor stats(DType::f32, {3, 13});
    TestTensor lse(DType::f32, {13});
    logits.randomise(1, 4.0F);
    auto ids = some_tokens(13, static_cast<std::int32_t>(columns + 9));
    ids[3] = -100;
    targets.set_integers(ids);
    kernels.cross_entropy_stats(logits, targets, 7, stats);
    const auto numbers = stats.values();
    std::vector<float> sums;
    for (std::size_t row = 0; row < 13; ++row) {
      sums.push_back(numbers[row] + std::log(numbers[13 + row]));
    }
    lse.set(sums);
    kernels.cross_entropy_gradient(logits, targets, 7, lse, 0.01F);
    return all({stats, lse, logits});
  });
}

TEST_CASE("cross-entropy takes rows that begin with minus infinity") {
  for_each_backend([](Kernels& kernels) {
    TestTensor logits(DType::f32, {1, 5000});
    TestTensor targets(DType::i32, {1});
    TestTensor stats(DType::f32, {3, 1});
    std::vector<float> values(5000, -INFINITY);
    values[4000] = -7.0F;
    values[4999] = -7.0F;
    logits.set(values);
    targets.set_integers({4000});
    kernels.cross_entropy_stats(logits, targets, 0, stats);
    CHECK(stats.values() == std::vector<float>{-7, 2, -7});
  });
}

TEST_CASE("cpu arithmetic equals the reference") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  compare(dtype, [&](Kernels& kernels) {
    TestTensor x(dtype, {rows, 3, 57}, spread);
    TestTensor y(dtype, {rows, 3, 57}, spread);
    TestTensor z(dtype, {rows, 3, 57}, spread);
    TestTensor sum(DType::f32, {rows, 3, 57}, spread);
    TestTensor filled(dtype, {rows, 3, 57}, spread);
    TestTensor other(dtype == DType::f32 ? DType::bf16 : DType::f32, {rows, 3, 57}, spread);
    x.randomise(1);
    y.randomise(2);
    sum.randomise(3);
    kernels.add(x, y, z);
    kernels.accumulate(x, sum);
    kernels.scale(y, 0.37F);
    kernels.fill(filled, 0.0F);
    kernels.fill(filled.view().slice(1, 1, 2), 1.25F);
    kernels.copy(x, other);
    return all({z, sum, y, filled, other});
  });
}

TEST_CASE("no number of threads changes a bit of a sum of squares") {
  for (const auto isa : cpu::all_isas) {
    if (!cpu::runs(isa)) continue;
    for (const auto spread : {Spread::contiguous, Spread::strided}) {
      TestTensor x(DType::f32, {5, 50'021}, spread);
      x.randomise(1);
      const double one = cpu::make_kernels(1, isa)->sum_of_squares(x);
      CHECK(one == Approx(make_reference_kernels()->sum_of_squares(x)).epsilon(1e-12));
      for (const int threads : {2, 3, 7}) {
        CHECK(std::bit_cast<std::uint64_t>(cpu::make_kernels(threads, isa)->sum_of_squares(x)) ==
              std::bit_cast<std::uint64_t>(one));
      }
    }
  }
}

TEST_CASE("cpu optimizers equal the reference over several steps") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  constexpr std::int64_t count = 40'003;
  compare(DType::f32, [&](Kernels& kernels) {
    TestTensor gradient(DType::f32, {count});
    TestTensor master(DType::f32, {count});
    TestTensor first(DType::f32, {count});
    TestTensor second(DType::f32, {count});
    TestTensor parameter(dtype, {count});
    TestTensor sgd_parameter(dtype, {count});
    master.randomise(1);
    kernels.fill(first, 0.0F);
    kernels.fill(second, 0.0F);
    for (std::int64_t step = 1; step <= 3; ++step) {
      gradient.randomise(static_cast<std::uint64_t>(10 + step));
      kernels.adamw({1e-2F, 0.9F, 0.95F, 1e-8F, 0.1F, 0.7F, step}, gradient, master, first, second,
                    parameter);
    }
    auto results = all({master, first, second});
    // The rounded copy follows its own master exactly, whichever backend made it.
    const auto masters = master.values();
    const auto copies = parameter.values();
    for (std::size_t i = 0; i < masters.size(); ++i) {
      const float rounded = dtype == DType::f32 ? masters[i] : to_float(to_bf16(masters[i]));
      if (copies[i] != rounded) FAIL("parameter " << i << " is not its master");
    }
    for (int step = 0; step < 3; ++step) {
      kernels.sgd({1e-2F, 0.9F, 0.1F, 0.7F}, gradient, master, first, sgd_parameter);
    }
    for (auto& result : all({master, first})) results.push_back(result);
    return results;
  });
}
