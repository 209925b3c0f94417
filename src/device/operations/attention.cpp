// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/attention.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {
namespace {

bool has_heads(const Attention& attention) {
  const auto& q = attention.q;
  const auto& k = attention.k;
  return q.rank() == 4 && k.rank() == 4 && q.dim(0) == k.dim(0) && q.dim(3) == k.dim(3) &&
         k.dim(2) > 0 && q.dim(2) % k.dim(2) == 0 && same_shape(q, attention.out) &&
         same_shape(k, attention.v) &&
         are_runs_if_any(q.dim(0) * q.dim(1) * q.dim(2), attention.lse) &&
         attention.dropout.has_valid_rate();
}

bool has_first_keys(const Attention& attention) {
  const auto& first = attention.first_keys;
  if (!first) return true;
  return attention.causal && first.dtype() == DType::i32 &&
         has_shape(first, {attention.q.dim(0), attention.q.dim(1)}) && first.stride(1) == 1;
}

}  // namespace

void Attention::check() const {
  TRIREME_EXPECT(has_heads(*this) && has_first_keys(*this), text_of(*this));
}

void AttentionBackward::check() const {
  TRIREME_EXPECT(has_heads(forward) && has_first_keys(forward) && forward.lse, text_of(*this));
  TRIREME_EXPECT(same_shape(forward.q, d_out, dq) && same_shape(forward.k, dk, dv), text_of(*this));
}

}  // namespace trireme::device
