// SPDX-License-Identifier: Apache-2.0
#include "comm/core/exact_data.hpp"

namespace trireme::comm {
namespace {

using device::Bf16;
using device::DType;
using device::Tensor;

float rounded(float value, DType dtype) {
  return dtype == DType::bf16 ? device::to_float(device::to_bf16(value)) : value;
}

}  // namespace

ExactData ExactData::of_rank(int rank) {
  ExactData data;
  for (std::int64_t i = 0; i < period; ++i) {
    data.values_[static_cast<std::size_t>(i)] = static_cast<float>((i + 31 * rank) % period);
  }
  return data;
}

ExactData ExactData::sum_of(int ranks) {
  ExactData data;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto one = of_rank(rank);
    for (std::size_t i = 0; i < data.values_.size(); ++i) data.values_[i] += one.values_[i];
  }
  return data;
}

ExactData ExactData::poison() {
  ExactData data;
  data.values_.fill(-1.0F);
  return data;
}

void ExactData::fill(const Tensor& x, std::int64_t first) const {
  const auto count = x.element_count();
  if (x.dtype() == DType::bf16) {
    for (std::int64_t i = 0; i < count; ++i) x.bf16()[i] = device::to_bf16(at(first + i));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) x.f32()[i] = at(first + i);
}

std::optional<ExactData::Difference> ExactData::compare(const Tensor& x, std::int64_t first) const {
  const auto count = x.element_count();
  const bool halves = x.dtype() == DType::bf16;
  for (std::int64_t i = 0; i < count; ++i) {
    const float found = halves ? device::to_float(x.bf16()[i]) : x.f32()[i];
    const float due = rounded(at(first + i), x.dtype());
    if (found != due) return Difference{i, found, due};
  }
  return std::nullopt;
}

}  // namespace trireme::comm
