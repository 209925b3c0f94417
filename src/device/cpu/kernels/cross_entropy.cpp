// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/reference/reference.hpp"

#include <cmath>

namespace trireme::device::cpu {
namespace {

/// The column of a row's target, or -1 when it lives elsewhere or is to be ignored.
std::int64_t local_target(std::int32_t target, std::int64_t first_token, std::int64_t columns) {
  const auto local = target - first_token;
  return target < 0 || local < 0 || local >= columns ? -1 : local;
}

}  // namespace

template <>
void run(Context& context, const CrossEntropyStats& operation) {
  const auto& [logits, targets, first_token, stats] = operation;
  const Rows rows(logits);
  const auto* ids = targets.i32();
  auto* largest = stats.f32();
  auto* sum = largest + stats.stride(0);
  auto* target_logit = sum + stats.stride(0);
  with_type(logits.dtype(), [&](auto element) {
    const auto* data = data_of<decltype(element)>(logits);
    const auto& functions = tables_of(context.isa).cross_entropy.of(element);
    parallel_for(*context.team, rows.count(), row_grain(rows.width()), [&](Range range) {
      for (auto row = range.begin; row < range.end; ++row) {
        const auto* logit = data + rows.offset(row);
        const auto statistics = functions.stats(logit, rows.width());
        const auto target = local_target(ids[row], first_token, rows.width());
        largest[row] = statistics.largest;
        sum[row] = statistics.sum;
        target_logit[row] = target < 0 ? 0.0F : to_float(logit[target]);
      }
    });
  });
}

template <>
void run(Context& context, const CrossEntropyGradient& operation) {
  const auto& [logits, targets, first_token, lse, own_scale, factor] = operation;
  const float scale = factor ? own_scale * factor.f32()[0] : own_scale;
  const Rows rows(logits);
  const auto* ids = targets.i32();
  const auto* sums = lse.f32();
  with_type(logits.dtype(), [&](auto element) {
    using T = decltype(element);
    auto* data = data_of<T>(logits);
    const auto& functions = tables_of(context.isa).cross_entropy.of(element);
    parallel_for(*context.team, rows.count(), row_grain(rows.width()), [&](Range range) {
      for (auto row = range.begin; row < range.end; ++row) {
        auto* logit = data + rows.offset(row);
        if (ids[row] < 0) {
          std::fill_n(logit, rows.width(), T{});
          continue;
        }
        const auto target = local_target(ids[row], first_token, rows.width());
        const float at_target = target < 0 ? 0.0F : to_float(logit[target]);
        functions.probabilities(logit, rows.width(), sums[row], scale);
        if (target < 0) continue;
        // The logit is read again: in bf16 the stored probability is already rounded.
        assign(logit[target], (std::exp(at_target - sums[row]) - 1.0F) * scale);
      }
    });
  });
}

// One number a row: nothing to gain over plain loops.
template <>
void run(Context&, const CrossEntropyCombine& operation) {
  reference::run(operation);
}

}  // namespace trireme::device::cpu
