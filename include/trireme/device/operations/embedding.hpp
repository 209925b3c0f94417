// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

#include <cstdint>

namespace trireme::device {

// Embedding. Rows of tokens outside [first_token, first_token + rows of table) become zero: they
// live on another tensor-parallel rank.

/// out[r] = table[tokens[r] - first_token].
struct EmbeddingForward {
  static constexpr const char* name = "embedding_forward";
  Tensor tokens;  // i32 [rows]
  Tensor table;   // [local vocabulary, width]
  std::int64_t first_token = 0;
  Tensor out;  // [rows, width]

  void check() const;
  void operands(auto visit) {
    visit("tokens", tokens, Role::input);
    visit("table", table, Role::input);
    visit("out", out, Role::output);
  }
};

/// d_table[tokens[r] - first_token] += d_out[r].
struct EmbeddingBackward {
  static constexpr const char* name = "embedding_backward";
  Tensor tokens;  // i32 [rows]
  Tensor d_out;   // [rows, width]
  std::int64_t first_token = 0;
  Tensor d_table;  // f32 [local vocabulary, width]

  void check() const;
  void operands(auto visit) {
    visit("tokens", tokens, Role::input);
    visit("d_out", d_out, Role::input);
    visit("d_table", d_table, Role::in_out);
  }
};

/// x[r] += table[first_position + r % seq].
struct AddPositions {
  static constexpr const char* name = "add_positions";
  Tensor x;      // [rows, width]
  Tensor table;  // [positions, width]
  std::int64_t seq = 0;
  std::int64_t first_position = 0;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::in_out);
    visit("table", table, Role::input);
  }
};

/// d_table[r % seq] += dx[r].
struct AddPositionsBackward {
  static constexpr const char* name = "add_positions_backward";
  Tensor dx;  // [rows, width]
  std::int64_t seq = 0;
  Tensor d_table;  // f32 [positions, width]

  void check() const;
  void operands(auto visit) {
    visit("dx", dx, Role::input);
    visit("d_table", d_table, Role::in_out);
  }
};

using EmbeddingOperations =
    OperationList<EmbeddingForward, EmbeddingBackward, AddPositions, AddPositionsBackward>;

}  // namespace trireme::device
