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

}  // namespace

void Attention::check() const {
  TRIREME_EXPECT(has_heads(*this), text_of(*this));
}

void AttentionBackward::check() const {
  TRIREME_EXPECT(has_heads(forward) && forward.lse, text_of(*this));
  TRIREME_EXPECT(same_shape(forward.q, d_out, dq) && same_shape(forward.k, dk, dv), text_of(*this));
}

}  // namespace trireme::device
