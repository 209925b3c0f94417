// SPDX-License-Identifier: Apache-2.0
#include "operation_costs.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::predict {
namespace {

constexpr double fp32_bytes = 4;
constexpr double square_tile = 128;
/// A square tile of 128 reuses its operands less than a wide one.
constexpr double square_tile_rate = 0.85;

double size_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 4;
    case Precision::bf16:
      return 2;
    case Precision::fp8:
      return 1;
  }
  return 4;
}

double square(double value) {
  return value * value;
}

/// Part of the tiles' area that is of the result, over whole waves of all processors.
double filled(const Product& product, double processors, double rows, double columns) {
  const double tiles = std::ceil(product.m / rows) * std::ceil(product.n / columns);
  const double waves = std::ceil(tiles / processors);
  return product.m * product.n / (waves * processors * rows * columns);
}

}  // namespace

OperationCosts::OperationCosts(const Machine& machine, Precision precision, double node_share)
    : machine_(machine),
      // Attention and what the rule of an optimizer multiplies stay in 16 bits.
      precision_(precision == Precision::fp8 ? Precision::bf16 : precision),
      node_share_(node_share),
      element_bytes_(precision == Precision::fp32 ? fp32_bytes : 2) {}

double OperationCosts::peak(Precision precision) const {
  const auto& node = machine_.node;
  if (precision == Precision::fp32) return node.peak_fp32 * node_share_;
  const bool has_fp8 = precision == Precision::fp8 && node.peak_fp8 > 0;
  return (has_fp8 ? node.peak_fp8 : node.peak_bf16) * node_share_;
}

double OperationCosts::tile_share(const Product& product) const {
  const auto& tiles = machine_.tiles;
  if (tiles.processors == 0) return 1;
  const auto processors = static_cast<double>(tiles.processors);
  const auto rows = static_cast<double>(tiles.rows);
  const auto columns = static_cast<double>(tiles.columns);
  // Libraries choose the tile, and which side of it is the longer.
  const double best = std::max(
      {filled(product, processors, rows, columns), filled(product, processors, columns, rows),
       square_tile_rate * filled(product, processors, square_tile, square_tile)});
  return best * product.k / (product.k + tiles.half_rate_terms);
}

double OperationCosts::formula_rate(const Product& product, Precision precision) const {
  return peak(precision) * tile_share(product);
}

double OperationCosts::measured_factor(const Product& product, Precision precision) const {
  const bool in_fp32 = precision == Precision::fp32 && !machine_.products_fp32.empty();
  const auto& table = in_fp32 ? machine_.products_fp32 : machine_.products;
  double weights = 0;
  double sum = 0;
  for (const auto& measured : table) {
    const Product other{measured.m, measured.n, measured.k};
    const double distance = square(std::log2(product.m / other.m)) +
                            square(std::log2(product.n / other.n)) +
                            square(std::log2(product.k / other.k));
    // Measured on the whole node: the rank's share is in the formula's rate alone.
    const double ratio = measured.rate * node_share_ /
                         formula_rate(other, in_fp32 ? Precision::fp32 : Precision::bf16);
    if (distance == 0) return ratio;
    // Shepard's interpolation: nearer ones count more, and many far ones not much.
    const double weight = 1 / square(distance);
    weights += weight;
    sum += std::log(ratio) * weight;
  }
  return weights == 0 ? 1 : std::exp(sum / weights);
}

double OperationCosts::rate(const Product& product, Precision precision) const {
  return machine_.share.product * formula_rate(product, precision) *
         measured_factor(product, precision);
}

Time OperationCosts::timed_product(const Product& product, Precision precision,
                                   double result_bytes) const {
  const double operands = product.m * product.k + product.k * product.n;
  // Rows in fp8 are rounded first: read in 16 bits, written in 8.
  const double rounding = precision == Precision::fp8 ? 3 * product.m * product.k : 0;
  const double bytes = size_of(precision) * operands + result_bytes * product.m * product.n;
  const double seconds = 2 * product.m * product.n * product.k / rate(product, precision);
  return std::max(time_of(seconds), pass(bytes)) + pass(rounding);
}

Time OperationCosts::product(const Product& product, Precision precision) const {
  return timed_product(product, precision, element_bytes_);
}

Time OperationCosts::accumulated_product(const Product& product, Precision precision) const {
  return timed_product(product, precision, 2 * fp32_bytes);
}

Time OperationCosts::pass(double bytes) const {
  return time_of(bytes / (machine_.node.memory_rate * machine_.share.memory * node_share_));
}

Time OperationCosts::flops(double count) const {
  return time_of(count / (peak(precision_) * machine_.share.product));
}

Time OperationCosts::decomposition(double count) const {
  return time_of(count / (peak(Precision::fp32) * machine_.share.product));
}

Time OperationCosts::attention_time(const Attention& attention, double products,
                                    double score_passes) const {
  const double flops = products * 2 * attention.rows * attention.keys * attention.query_width;
  const double tensors = 2 * attention.query_width + 2 * attention.kv_width;
  if (attention.fused) {
    // Blocks of scores that the mask hides are not computed.
    const auto compute = time_of(flops / 2 / (peak(precision_) * machine_.share.attention));
    return std::max(compute, pass(element_bytes_ * attention.rows * tensors));
  }
  constexpr double batched_product_rate = 0.6;
  const double scores = attention.rows * attention.keys * attention.heads;
  return time_of(flops / (peak(precision_) * machine_.share.product * batched_product_rate)) +
         pass(score_passes * element_bytes_ * scores);
}

Time OperationCosts::attention(const Attention& attention) const {
  constexpr double products = 2;
  constexpr double score_passes = 6;  // written, masked, softmax, dropout, read
  return attention_time(attention, products, score_passes);
}

Time OperationCosts::attention_backward(const Attention& attention) const {
  // Without the scores one product is repeated.
  constexpr double kept = 4;
  constexpr double repeated = 5;
  constexpr double score_passes = 8;
  return attention_time(attention, attention.fused ? repeated : kept, score_passes);
}

}  // namespace trireme::predict
