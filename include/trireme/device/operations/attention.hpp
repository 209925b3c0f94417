// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/dropout.hpp"
#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

/// Causal or full attention of grouped heads; fp32 softmax, never a whole score matrix.
/// Query row i of a sequence sees key rows j <= i + (key length - query length) when causal.
struct Attention {
  static constexpr const char* name = "attention_forward";
  Tensor q;      // [batch, query_seq, heads, head_dim]
  Tensor k;      // [batch, key_seq, kv_heads, head_dim]
  Tensor v;      // [batch, key_seq, kv_heads, head_dim]
  Tensor out;    // [batch, query_seq, heads, head_dim]
  Tensor lse{};  // f32 [batch, heads, query_seq]: log of the sum of exponentials; empty: not kept
  float scale = 1.0F;
  bool causal = true;
  /// Rows are (sequence * total heads + head) * whole_length() + the query's position, columns key
  /// positions: first_row counts sequences, first_column the rank's first head, width all heads.
  Dropout dropout{};
  /// Tokens of a sequence of which these are not all queries or keys; 0: as many as keys.
  std::int64_t sequence_length = 0;
  /// i32 [batch, query_seq], in memory row by row: the first key that each query sees, with those
  /// behind it up to the query's own; no less than that of the query before it. Documents that lie
  /// in one sequence do not see each other so. Causal attention alone; empty: 0 for all.
  Tensor first_keys{};

  std::int64_t whole_length() const { return sequence_length > 0 ? sequence_length : k.dim(1); }

  void check() const;
  void operands(auto visit) { operands(visit, Role::output); }
  /// `results`: role of out and lse, which the backward reads.
  void operands(auto& visit, Role results) {
    visit("q", q, Role::input);
    visit("k", k, Role::input);
    visit("v", v, Role::input);
    visit("row_base", dropout.row_base, Role::input);
    visit("first_keys", first_keys, Role::input);
    visit("out", out, results);
    visit("lse", lse, results);
  }
};

struct AttentionBackward {
  static constexpr const char* name = "attention_backward";
  Attention forward;
  Tensor d_out;  // like out
  Tensor dq;     // like q
  Tensor dk;     // like k
  Tensor dv;     // like v

  void check() const;
  void operands(auto visit) {
    forward.operands(visit, Role::input);
    visit("d_out", d_out, Role::input);
    visit("dq", dq, Role::output);
    visit("dk", dk, Role::output);
    visit("dv", dv, Role::output);
  }
};

using AttentionOperations = OperationList<Attention, AttentionBackward>;

}  // namespace trireme::device
