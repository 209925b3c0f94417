// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/attention.hpp"
#include "support/fake_cudnn/fake_cudnn.hpp"
#include "unit/device/test_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

/// Calls of attention over the stand-in of cuDNN.
namespace trireme::device::test {

struct Heads {
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};
/// Multi-head, grouped, multi-query; one token, sequences that fill no tile; odd and wide heads.
inline constexpr std::array<Heads, 7> shapes{{{1, 1, 1, 1, 64},
                                              {2, 13, 3, 3, 64},
                                              {2, 9, 4, 2, 128},
                                              {1, 17, 6, 1, 64},
                                              {3, 5, 2, 2, 128},
                                              {1, 7, 2, 1, 40},
                                              {1, 6, 2, 2, 256}}};
inline constexpr std::array both_bits{AttentionBits::fastest, AttentionBits::repeatable};
inline constexpr int hopper = 90;

/// q, k and v are columns of one matrix, as the model's are, and so are their gradients.
struct AttentionCall {
  TestTensor qkv;
  TestTensor out;
  TestTensor lse;
  TestTensor d_out;
  TestTensor d_qkv;
  AttentionBackward call;

  AttentionCall(const Heads& s, bool causal)
      : qkv(DType::bf16, {s.batch, s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}),
        out(DType::bf16, {s.batch, s.seq, s.heads, s.head_dim}),
        lse(DType::f32, {s.batch, s.heads, s.seq}),
        d_out(DType::bf16, {s.batch, s.seq, s.heads, s.head_dim}),
        d_qkv(DType::bf16, {s.batch, s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}) {
    qkv.randomise(1);
    d_out.randomise(2);
    const auto part = [&](const Tensor& whole, std::int64_t first, std::int64_t count) {
      return whole.slice(2, first * s.head_dim, count * s.head_dim).split(2, s.head_dim);
    };
    auto& forward = call.forward;
    forward.q = part(qkv, 0, s.heads);
    forward.k = part(qkv, s.heads, s.kv_heads);
    forward.v = part(qkv, s.heads + s.kv_heads, s.kv_heads);
    forward.out = out;
    forward.lse = lse;
    // Not the usual one over a root: it must come from the call.
    forward.scale = 0.07F;
    forward.causal = causal;
    call.d_out = d_out;
    call.dq = part(d_qkv, 0, s.heads);
    call.dk = part(d_qkv, s.heads, s.kv_heads);
    call.dv = part(d_qkv, s.heads + s.kv_heads, s.kv_heads);
  }
};

/// Host memory that grows, not numbers where it is asked for, poisoned behind that.
class AttentionScratch {
 public:
  void* operator()(std::size_t bytes) {
    largest_ = std::max(largest_, bytes);
    if (memory_.size() < bytes + guard) memory_.resize(bytes + guard);
    const auto end = memory_.begin() + static_cast<std::ptrdiff_t>(bytes);
    std::fill(memory_.begin(), end, std::byte{0xFF});
    std::fill(end, memory_.end(), poison);
    end_ = bytes;
    return memory_.data();
  }
  bool untouched_behind() const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(end_), memory_.end(),
                       [](std::byte byte) { return byte == poison; });
  }
  std::size_t take_largest() { return std::exchange(largest_, 0); }

 private:
  static constexpr std::size_t guard = 1024;
  static constexpr std::byte poison{0x5A};
  std::vector<std::byte> memory_;
  std::size_t end_ = 0;
  std::size_t largest_ = 0;
};

inline constexpr std::size_t no_bound = std::size_t{1} << 40;

inline cudnn::FusedAttention fused_over(const trireme::testing::FakeCudnn& fake,
                                        AttentionScratch& scratch,
                                        AttentionBits bits = AttentionBits::repeatable,
                                        std::size_t most_workspace_bytes = no_bound) {
  static int stream = 0;
  static const auto kernels = make_reference_kernels();
  return {fake.api(), {&stream, std::ref(scratch), *kernels}, {bits, hopper, most_workspace_bytes}};
}

}  // namespace trireme::device::test
