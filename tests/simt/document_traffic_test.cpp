// SPDX-License-Identifier: Apache-2.0
// Tiles that own attention kernels load where documents do not see each other, counted by the
// executor.
#include "support/simt/kernels.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme::device;
using trireme::device::simt::ExecutedKernels;
using trireme::device::test::run_seed;
using trireme::device::test::TestTensor;

namespace {

constexpr std::int64_t tokens = 256;
constexpr std::int64_t row_bytes = 64 * 4;

/// One head of one sequence.
struct OneHead {
  OneHead() {
    for (auto* tensor : {&q, &k, &v, &d_out}) tensor->randomise(1);
    std::vector<std::int32_t> firsts;
    for (std::int32_t token = 0; token < tokens; ++token) firsts.push_back(token / 64 * 64);
    first_keys.set_integers(firsts);
  }
  AttentionBackward call(bool with_documents) const {
    Attention forward{.q = q, .k = k, .v = v, .out = out, .lse = lse};
    if (with_documents) forward.first_keys = first_keys;
    return {forward, d_out, dq, dk, dv};
  }
  static TestTensor rows() { return {DType::f32, {1, tokens, 1, 64}}; }

  TestTensor q = rows();
  TestTensor k = rows();
  TestTensor v = rows();
  TestTensor out = rows();
  TestTensor d_out = rows();
  TestTensor dq = rows();
  TestTensor dk = rows();
  TestTensor dv = rows();
  TestTensor lse{DType::f32, {1, 1, tokens}};
  TestTensor first_keys{DType::i32, {1, tokens}};
};

}  // namespace

TEST_CASE("attention of documents loads no tile of another document") {
  ExecutedKernels kernels(run_seed());
  const OneHead head;
  const auto rows_read = [&](const char* operand) {
    return kernels.traffic().at(operand).read_bytes / row_bytes;
  };
  // Blocks of 16 queries load tiles of 32 keys up to their own: of 16 blocks two load each of 1 to
  // 8 tiles; of the four of a document two load one and two load two.
  kernels.issue(head.call(false).forward);
  CHECK(rows_read("k") == 2 * 36 * 32);
  kernels.issue(head.call(true).forward);
  CHECK(rows_read("k") == 4 * 6 * 32);
  CHECK(rows_read("v") == 4 * 6 * 32);
  // Blocks of 8 queries do so for dq; blocks of 8 keys, which are kept, load tiles of queries for
  // dk and dv.
  kernels.issue(head.call(false));
  CHECK(rows_read("k") == 4 * 36 * 32 + tokens);
  CHECK(rows_read("q") == 4 * 36 * 32 + tokens);
  kernels.issue(head.call(true));
  CHECK(rows_read("k") == 4 * 12 * 32 + tokens);
  CHECK(rows_read("q") == 4 * 12 * 32 + tokens);
}
