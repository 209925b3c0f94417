// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

#include <cstdint>

namespace trireme::device {

// Cross-entropy over a vocabulary of which this rank has columns
// [first_token, first_token + columns).

/// Per row: stats[0] = max, stats[1] = sum of exp(logit - max), stats[2] = the target's logit
/// (0 when it lives elsewhere or the target is negative, which means "ignore").
struct CrossEntropyStats {
  static constexpr const char* name = "cross_entropy_stats";
  Tensor logits;   // [rows, columns]
  Tensor targets;  // i32 [rows]
  std::int64_t first_token = 0;
  Tensor stats;  // f32 [3, rows]

  void check() const;
  void operands(auto visit) {
    visit("logits", logits, Role::input);
    visit("targets", targets, Role::input);
    visit("stats", stats, Role::output);
  }
};

/// In place: logits become (softmax - one_hot(target)) * scale * factor; 0 where the target is
/// ignored.
struct CrossEntropyGradient {
  static constexpr const char* name = "cross_entropy_gradient";
  Tensor logits;   // [rows, columns]
  Tensor targets;  // i32 [rows]
  std::int64_t first_token = 0;
  Tensor lse;  // f32 [rows]
  float scale = 1.0F;
  /// f32 [1], or empty for 1: read when the operation runs.
  Tensor factor{};

  void check() const;
  void operands(auto visit) {
    visit("logits", logits, Role::in_out);
    visit("targets", targets, Role::input);
    visit("lse", lse, Role::input);
    visit("factor", factor, Role::input);
  }
};

/// Joins the stats of all parts of a vocabulary: lse = log of the sum of exp(logit), loss = lse -
/// target's logit (0 where the target is negative).
struct CrossEntropyCombine {
  static constexpr const char* name = "cross_entropy_combine";
  Tensor stats;    // f32 [parts, 3, rows]
  Tensor targets;  // i32 [rows]
  Tensor lse;      // f32 [rows]
  Tensor losses;   // f32 [rows]

  void check() const;
  void operands(auto visit) {
    visit("stats", stats, Role::input);
    visit("targets", targets, Role::input);
    visit("lse", lse, Role::output);
    visit("losses", losses, Role::output);
  }
};

using CrossEntropyOperations =
    OperationList<CrossEntropyStats, CrossEntropyGradient, CrossEntropyCombine>;

}  // namespace trireme::device
