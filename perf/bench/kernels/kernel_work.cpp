// SPDX-License-Identifier: Apache-2.0
#include "kernel_work.hpp"

#include "trireme/base/philox.hpp"

#include <algorithm>
#include <initializer_list>

namespace trireme::bench {
namespace {

using device::DType;
using device::Kernels;
using device::NormKind;
using device::Tensor;

/// Copies of one activation-sized tensor, taken in turn.
class Ring {
 public:
  Ring(Kernels& kernels, Memory& memory, DType dtype, std::int64_t rows, std::int64_t width)
      : rows_(rows) {
    const auto one = rows * width * static_cast<std::int64_t>(device::size_of(dtype));
    count_ = std::max<std::int64_t>(2, memory.footprint_bytes / one);
    all_ = memory.arena.allocate(dtype, {count_ * rows, width});
    if (!kernels.device().is_host()) {
      fill_gpu(kernels);
      return;
    }
    // Different numbers in each row, cheaply: results must not be all alike.
    for (std::int64_t row = 0; row < count_ * rows; ++row) {
      kernels.issue(device::Fill{all_.slice(0, row, 1),
                                 base::philox_normal(1, 2, static_cast<std::uint64_t>(row))});
    }
  }
  /// Tensor `index` counted round the ring.
  Tensor at(std::int64_t index) const { return all_.slice(0, index % count_ * rows_, rows_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(at(0).byte_count()); }

 private:
  /// A launch for each row would take seconds.
  void fill_gpu(Kernels& kernels) const {
    set_random(kernels, at(0), 1);
    for (std::int64_t index = 1; index < count_; ++index)
      kernels.issue(device::Copy{at(0), at(index)});
  }

  std::int64_t rows_;
  std::int64_t count_ = 0;
  Tensor all_;
};

Tensor filled(Kernels& kernels, Memory& memory, DType dtype,
              std::initializer_list<std::int64_t> shape, float value) {
  auto tensor = memory.arena.allocate(dtype, shape);
  kernels.issue(device::Fill{tensor, value});
  return tensor;
}

Tensor tokens_of(Kernels& kernels, Memory& memory, std::int64_t rows, std::int64_t vocabulary) {
  const auto tokens = memory.arena.allocate(DType::i32, {rows});
  std::vector<std::int32_t> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto bits = base::philox(3, 4, static_cast<std::uint64_t>(row))[0];
    values.push_back(static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(vocabulary)));
  }
  kernels.device().copy_in(values.data(), tokens);
  kernels.device().synchronize();
  return tokens;
}

void add_norms(std::vector<KernelWork>& list, Kernels& kernels, Memory& memory, DType dtype,
               const Shapes& shapes, const Ring& ring) {
  const auto weight = filled(kernels, memory, dtype, {shapes.hidden}, 1.0F);
  const auto bias = filled(kernels, memory, dtype, {shapes.hidden}, 0.0F);
  const auto mean = filled(kernels, memory, DType::f32, {shapes.rows}, 0.0F);
  const auto rstd = filled(kernels, memory, DType::f32, {shapes.rows}, 1.0F);
  const auto d_weight = filled(kernels, memory, DType::f32, {shapes.hidden}, 0.0F);
  const auto d_bias = filled(kernels, memory, DType::f32, {shapes.hidden}, 0.0F);
  const auto one = ring.bytes();
  list.push_back({"layer norm forward, residual", dtype, 4 * one, [=, &kernels](auto call) {
                    kernels.issue(device::NormForward{NormKind::layer, ring.at(4 * call),
                                                      ring.at(4 * call + 1), ring.at(4 * call + 2),
                                                      weight, bias, ring.at(4 * call + 3), mean,
                                                      rstd, 1e-5F});
                  }});
  list.push_back({"layer norm backward, residual", dtype, 4 * one, [=, &kernels](auto call) {
                    kernels.issue(device::NormBackward{
                        NormKind::layer, ring.at(4 * call), ring.at(4 * call + 1), weight, mean,
                        rstd, ring.at(4 * call + 2), ring.at(4 * call + 3), d_weight, d_bias});
                  }});
  list.push_back({"rms norm forward", dtype, 2 * one, [=, &kernels](auto call) {
                    kernels.issue(device::NormForward{NormKind::rms,
                                                      ring.at(2 * call),
                                                      {},
                                                      {},
                                                      weight,
                                                      {},
                                                      ring.at(2 * call + 1),
                                                      {},
                                                      rstd,
                                                      1e-5F});
                  }});
  list.push_back({"rms norm backward", dtype, 3 * one, [=, &kernels](auto call) {
                    kernels.issue(device::NormBackward{NormKind::rms,
                                                       ring.at(3 * call),
                                                       ring.at(3 * call + 1),
                                                       weight,
                                                       {},
                                                       rstd,
                                                       {},
                                                       ring.at(3 * call + 2),
                                                       d_weight,
                                                       {}});
                  }});
}

void add_gates(std::vector<KernelWork>& list, Kernels& kernels, DType dtype, const Ring& ring) {
  const auto one = ring.bytes();
  list.push_back({"gelu forward", dtype, 2 * one, [=, &kernels](auto call) {
                    kernels.issue(device::GeluForward{ring.at(2 * call), ring.at(2 * call + 1)});
                  }});
  list.push_back({"gelu backward", dtype, 3 * one, [=, &kernels](auto call) {
                    kernels.issue(device::GeluBackward{ring.at(3 * call), ring.at(3 * call + 1),
                                                       ring.at(3 * call + 2)});
                  }});
  list.push_back({"swiglu forward", dtype, 3 * one, [=, &kernels](auto call) {
                    kernels.issue(device::SwigluForward{ring.at(3 * call), ring.at(3 * call + 1),
                                                        ring.at(3 * call + 2)});
                  }});
  list.push_back({"swiglu backward", dtype, 5 * one, [=, &kernels](auto call) {
                    kernels.issue(device::SwigluBackward{
                        ring.at(5 * call), ring.at(5 * call + 1), ring.at(5 * call + 2),
                        ring.at(5 * call + 3), ring.at(5 * call + 4)});
                  }});
}

void add_elementwise(std::vector<KernelWork>& list, Kernels& kernels, DType dtype, const Ring& ring,
                     const Ring& other) {
  const auto one = ring.bytes();
  list.push_back({"add", dtype, 3 * one, [=, &kernels](auto call) {
                    kernels.issue(device::Add{ring.at(3 * call), ring.at(3 * call + 1),
                                              ring.at(3 * call + 2)});
                  }});
  list.push_back({"fill", dtype, one, [=, &kernels](auto call) {
                    kernels.issue(device::Fill{ring.at(call), 1.0F});
                  }});
  list.push_back({"copy to the other type", dtype, one + other.bytes(), [=, &kernels](auto call) {
                    kernels.issue(device::Copy{ring.at(call), other.at(call)});
                  }});
  list.push_back({"dropout", dtype, 2 * one, [=, &kernels](auto call) {
                    const auto x = ring.at(2 * call);
                    kernels.issue(device::ApplyDropout{
                        x, {0.1F, 1, 2, 0, 0, x.dim(1)}, ring.at(2 * call + 1)});
                  }});
}

void add_positional(std::vector<KernelWork>& list, Kernels& kernels, Memory& memory, DType dtype,
                    const Shapes& shapes, const Ring& ring) {
  const auto head_dim = shapes.hidden / shapes.heads;
  const auto cosine = filled(kernels, memory, DType::f32, {shapes.rows, head_dim / 2}, 0.6F);
  const auto sine = filled(kernels, memory, DType::f32, {shapes.rows, head_dim / 2}, 0.8F);
  const auto positions = filled(kernels, memory, dtype, {shapes.rows, shapes.hidden}, 1.0F);
  const auto d_positions = filled(kernels, memory, DType::f32, {shapes.rows, shapes.hidden}, 0.0F);
  const auto table = filled(kernels, memory, dtype, {shapes.vocabulary, shapes.hidden}, 1.0F);
  const auto d_table = filled(kernels, memory, DType::f32, {shapes.vocabulary, shapes.hidden}, 0);
  const auto tokens = tokens_of(kernels, memory, shapes.rows, shapes.vocabulary);
  const auto one = ring.bytes();
  const auto in_f32 = shapes.rows * shapes.hidden * 4;
  const auto heads = shapes.heads;
  list.push_back({"rotary", dtype, 2 * one, [=, &kernels](auto call) {
                    const auto x = ring.at(call);
                    kernels.issue(device::Rotary{x.reshape({1, x.dim(0), heads, x.dim(1) / heads}),
                                                 cosine, sine, 0, false});
                  }});
  list.push_back({"embedding forward", dtype, 2 * one, [=, &kernels](auto call) {
                    kernels.issue(device::EmbeddingForward{tokens, table, 0, ring.at(call)});
                  }});
  list.push_back({"embedding backward", dtype, one + 2 * in_f32, [=, &kernels](auto call) {
                    kernels.issue(device::EmbeddingBackward{tokens, ring.at(call), 0, d_table});
                  }});
  list.push_back(
      {"add positions", dtype, 3 * one, [=, &kernels](auto call) {
         kernels.issue(device::AddPositions{ring.at(call), positions, positions.dim(0), 0});
       }});
  list.push_back(
      {"add positions backward", dtype, one + 2 * in_f32, [=, &kernels](auto call) {
         kernels.issue(device::AddPositionsBackward{ring.at(call), positions.dim(0), d_positions});
       }});
}

}  // namespace

std::vector<KernelWork> activation_work(Kernels& kernels, Memory& memory, DType dtype,
                                        const Shapes& shapes) {
  std::vector<KernelWork> list;
  const Ring narrow(kernels, memory, dtype, shapes.rows, shapes.hidden);
  const Ring wide(kernels, memory, dtype, shapes.rows, shapes.intermediate);
  const Ring other(kernels, memory, dtype == DType::f32 ? DType::bf16 : DType::f32, shapes.rows,
                   shapes.hidden);
  add_norms(list, kernels, memory, dtype, shapes, narrow);
  add_gates(list, kernels, dtype, wide);
  add_elementwise(list, kernels, dtype, narrow, other);
  add_positional(list, kernels, memory, dtype, shapes, narrow);
  return list;
}

std::vector<KernelWork> logit_work(Kernels& kernels, Memory& memory, DType dtype,
                                   const Shapes& shapes) {
  const Ring logits(kernels, memory, dtype, shapes.logit_rows, shapes.vocabulary);
  const auto targets = tokens_of(kernels, memory, shapes.logit_rows, shapes.vocabulary);
  const auto stats = filled(kernels, memory, DType::f32, {3, shapes.logit_rows}, 0.0F);
  const auto lse = filled(kernels, memory, DType::f32, {shapes.logit_rows}, 12.0F);
  const auto one = logits.bytes();
  return {{"cross-entropy statistics", dtype, one,
           [=, &kernels](auto call) {
             kernels.issue(device::CrossEntropyStats{logits.at(call), targets, 0, stats});
           }},
          {"cross-entropy gradient", dtype, 2 * one, [=, &kernels](auto call) {
             kernels.issue(device::CrossEntropyGradient{logits.at(call), targets, 0, lse, 1.0F});
           }}};
}

std::vector<KernelWork> parameter_work(Kernels& kernels, Memory& memory, DType dtype,
                                       const Shapes& shapes) {
  const auto ring = [&](DType type) { return Ring(kernels, memory, type, 1, shapes.parameters); };
  const auto gradient = ring(DType::f32);
  const auto master = ring(DType::f32);
  const auto first = ring(DType::f32);
  const auto second = ring(DType::f32);
  const auto narrow = ring(DType::bf16);
  const auto one = gradient.bytes();
  const bool rounded = dtype == DType::bf16;
  const auto parameter = [=](auto call) { return rounded ? narrow.at(call) : master.at(call); };
  const auto copied = rounded ? narrow.bytes() : std::int64_t{0};
  const auto adamw = [=, &kernels](auto call, const device::StochasticRounding& rounding) {
    kernels.issue(device::AdamWUpdate{{1e-4F, 0.9F, 0.95F, 1e-8F, 0.1F, 1.0F, call + 1, rounding},
                                      gradient.at(call),
                                      master.at(call),
                                      first.at(call),
                                      second.at(call),
                                      parameter(call)});
  };
  // Rows as long as a rank's part of a matrix.
  const device::StochasticRounding rounding{.seed = 1, .stream = 2, .width = 768, .stride = 1536};
  std::vector<KernelWork> list{
      {"adamw", dtype, 7 * one + copied, [=](auto call) { adamw(call, {}); }},
      {"momentum sgd", dtype, 5 * one + copied,
       [=, &kernels](auto call) {
         kernels.issue(device::SgdUpdate{{1e-4F, 0.9F, 0.1F, 1.0F},
                                         gradient.at(call),
                                         master.at(call),
                                         first.at(call),
                                         parameter(call)});
       }},
      {"sum of squares", dtype, one,
       [=, &kernels](auto call) { kernels.sum_of_squares(gradient.at(call)); }},
      {"zero gradients", dtype, one,
       [=, &kernels](auto call) {
         kernels.issue(device::Fill{gradient.at(call), 0.0F});
       }},
      {"accumulate gradients", dtype, 2 * one + (rounded ? narrow.bytes() : one),
       [=, &kernels](auto call) {
         kernels.issue(device::Accumulate{parameter(call), gradient.at(call)});
       }}};
  if (rounded) {
    list.push_back({"adamw rounding at random", dtype, 7 * one + copied,
                    [=](auto call) { adamw(call, rounding); }});
  }
  return list;
}

}  // namespace trireme::bench
