// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::device::reference {

template <>
void run(const CrossEntropyStats& operation) {
  const auto& [logits, targets, first_token, stats] = operation;
  const Rows rows(logits);
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const auto* logit = data_of<T>(logits) + rows.offset(row);
      auto largest = -std::numeric_limits<float>::infinity();
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        largest = std::max(largest, to_float(logit[c]));
      }
      double sum = 0;
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        sum += static_cast<double>(std::exp(to_float(logit[c]) - largest));
      }
      const auto target = targets.i32()[row];
      const auto local = target - first_token;
      const bool here = target >= 0 && local >= 0 && local < rows.width();
      stats.f32()[row] = largest;
      stats.f32()[stats.stride(0) + row] = static_cast<float>(sum);
      stats.f32()[2 * stats.stride(0) + row] = here ? to_float(logit[local]) : 0.0F;
    }
  });
}

template <>
void run(const CrossEntropyGradient& operation) {
  const auto& [logits, targets, first_token, lse, own_scale, factor] = operation;
  const float scale = factor ? own_scale * factor.f32()[0] : own_scale;
  const Rows rows(logits);
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      auto* logit = data_of<T>(logits) + rows.offset(row);
      const auto target = targets.i32()[row];
      for (std::int64_t c = 0; c < rows.width(); ++c) {
        const float p = std::exp(to_float(logit[c]) - lse.f32()[row]);
        const float hit = target == first_token + c ? 1.0F : 0.0F;
        assign(logit[c], target < 0 ? 0.0F : (p - hit) * scale);
      }
    }
  });
}

template <>
void run(const CrossEntropyCombine& operation) {
  const auto& [stats, targets, lse, losses] = operation;
  const auto parts = stats.dim(0);
  const auto rows = stats.dim(2);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto stat = [&](std::int64_t part, std::int64_t which) {
      return stats.f32()[(part * 3 + which) * rows + row];
    };
    float largest = stat(0, 0);
    for (std::int64_t part = 1; part < parts; ++part) largest = std::max(largest, stat(part, 0));
    double sum = 0;
    float target = 0.0F;
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += static_cast<double>(stat(part, 1)) *
             std::exp(static_cast<double>(stat(part, 0)) - static_cast<double>(largest));
      target += stat(part, 2);
    }
    lse.f32()[row] = static_cast<float>(static_cast<double>(largest) + std::log(sum));
    losses.f32()[row] = targets.i32()[row] < 0 ? 0.0F : lse.f32()[row] - target;
  }
}

}  // namespace trireme::device::reference
