// SPDX-License-Identifier: Apache-2.0
// cuDNN's attention on a GPU beside own kernels and the reference, where cuDNN is installed.
#include "trireme/base/error.hpp"

#include "gpu/mirrored_kernels.hpp"
#include "unit/device/compare.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Heads {
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};
constexpr std::array<Heads, 8> shapes{{{1, 1, 1, 1, 64},
                                       {2, 37, 3, 3, 64},
                                       {1, 150, 4, 2, 40},
                                       {2, 90, 2, 2, 96},
                                       {3, 129, 4, 2, 128},
                                       {1, 200, 6, 1, 64},
                                       {2, 512, 12, 12, 64},
                                       {1, 1024, 8, 2, 128}}};

/// out, lse, dq, dk, dv.
using Results = std::vector<std::vector<float>>;

/// q, k, v and their gradients are columns of one matrix each, as the model's are.
Results run(Kernels& kernels, const Heads& s, bool causal) {
  const auto width = (s.heads + 2 * s.kv_heads) * s.head_dim;
  TestTensor qkv(DType::bf16, {s.batch, s.seq, width});
  TestTensor d_qkv(DType::bf16, {s.batch, s.seq, width});
  TestTensor out(DType::bf16, {s.batch, s.seq, s.heads, s.head_dim});
  TestTensor d_out(DType::bf16, {s.batch, s.seq, s.heads, s.head_dim});
  TestTensor lse(DType::f32, {s.batch, s.heads, s.seq});
  qkv.randomise(1);
  d_out.randomise(2);
  const auto part = [&](const Tensor& whole, std::int64_t first, std::int64_t count) {
    return whole.slice(2, first * s.head_dim, count * s.head_dim).split(2, s.head_dim);
  };
  AttentionBackward call;
  call.forward = {part(qkv, 0, s.heads),
                  part(qkv, s.heads, s.kv_heads),
                  part(qkv, s.heads + s.kv_heads, s.kv_heads),
                  out,
                  lse,
                  0.11F,
                  causal,
                  {}};
  call.d_out = d_out;
  call.dq = part(d_qkv, 0, s.heads);
  call.dk = part(d_qkv, s.heads, s.kv_heads);
  call.dv = part(d_qkv, s.heads + s.kv_heads, s.kv_heads);
  kernels.issue(call.forward);
  kernels.issue(call);
  CHECK(out.written_exactly());
  CHECK(d_qkv.written_exactly());
  return {out.values(), lse.values(), d_qkv.values()};
}

/// Null where there is no cuDNN: own kernels, which the other suites look at, are all then.
std::unique_ptr<Kernels> with_cudnn(AttentionBits bits) {
  auto made = make_cuda_kernels(0, {AttentionBy::cudnn, bits});
  if (made.ok()) return std::move(made).value();
  std::cout << "without cuDNN: " << made.failure().text << '\n';
  return nullptr;
}

void require_close(const Results& found, const Results& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t index = 0; index < found.size(); ++index) {
    CAPTURE(index);
    CHECK(relative_error(found[index], wanted[index]) < 1e-2);
  }
}

}  // namespace

TEST_CASE("attention by cuDNN equals own kernels and the reference, and repeats if it shall") {
  MirroredKernels own(base::value_or_throw(make_cuda_kernels(0, {.by = AttentionBy::own})));
  const auto reference = make_reference_kernels();
  for (const auto bits : {AttentionBits::fastest, AttentionBits::repeatable}) {
    auto made = with_cudnn(bits);
    if (!made) return;
    MirroredKernels fused(std::move(made));
    for (auto shape : shapes) {
      if (!take_large_shapes()) shape.seq = std::min<std::int64_t>(shape.seq, 24);
      for (const bool causal : {true, false}) {
        INFO("batch " << shape.batch << ", seq " << shape.seq << ", heads " << shape.heads << "/"
                      << shape.kv_heads << " of " << shape.head_dim << ", causal " << causal
                      << (bits == AttentionBits::fastest ? ", fastest" : ", repeatable"));
        const auto found = run(fused, shape, causal);
        require_close(found, run(own, shape, causal));
        require_close(found, run(*reference, shape, causal));
        const auto again = run(fused, shape, causal);
        require_close(again, found);
        if (bits == AttentionBits::repeatable) CHECK(again == found);
      }
    }
  }
}

TEST_CASE("attention by cuDNN of long sequences is the same in blocks of queries, which repeat") {
  if (!take_large_shapes()) return;
  // The gradient of its scores, 2 GiB, is more than a workspace may be.
  const Heads longer{1, 32768, 2, 1, 64};
  auto whole = with_cudnn(AttentionBits::fastest);
  auto blocks = with_cudnn(AttentionBits::repeatable);
  if (!whole || !blocks) return;
  MirroredKernels at_once(std::move(whole));
  MirroredKernels cut(std::move(blocks));
  const auto found = run(cut, longer, true);
  require_close(found, run(at_once, longer, true));
  CHECK(run(cut, longer, true) == found);
}
