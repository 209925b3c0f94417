// SPDX-License-Identifier: Apache-2.0
#include "simt.hpp"
#include "support/simt/launcher.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <functional>

using namespace trireme::device;
using namespace trireme::device::simt;
using Catch::Matchers::Contains;
using trireme::device::test::TestTensor;

namespace {

/// Runs one launch over an input and an output of this many floats each.
void launch(std::int64_t count, std::int64_t blocks, int threads,
            void (*kernel)(Global<const float>, Global<float>)) {
  TestTensor in(DType::f32, {count});
  TestTensor out(DType::f32, {count});
  in.randomise(1);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Executor executor(seed);
    Memory memory;
    memory.declare("in", in, Role::input);
    memory.declare("out", out, Role::output);
    HostLauncher launcher(executor, memory);
    launcher.launch("kernel_under_test", kernel, {blocks, threads},
                    Global<const float>(in.view().f32()), Global<float>(out.view().f32()));
    memory.expect_written("kernel_under_test");
  }
}

std::string fault_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "no fault";
}

std::int64_t global_index() {
  return block() * threads() + thread();
}

/// Reverses each block's part through shared memory; `right` has the barrier that it needs.
template <bool right>
void reverse(Global<const float> in, Global<float> out) {
  __shared__ Shared<float, 64> kept;
  kept.store(thread(), in.load(global_index()));
  if (right) simt::sync();
  out.store(block() * threads() + threads() - 1 - thread(), kept.load(thread()));
  if (right) return;
  kept.store(63 - thread(), 0.0F);
}

/// Sums a warp in shared memory; without sync_warp, lanes read what others may not have written.
template <bool right>
void neighbours(Global<const float> in, Global<float> out) {
  __shared__ Shared<float, 64> kept;
  kept.store(thread(), in.load(thread()));
  if (right) sync_warp();
  out.store(thread(), kept.load(thread() / 32 * 32 + (lane() + 1) % 32));
}

template <int mistake>
void off_by(Global<const float> in, Global<float> out) {
  __shared__ Shared<float, 64> kept;
  if (mistake == 0) kept.store(thread() + 1, 0.0F);
  if (mistake == 1) kept.store(thread(), in.load(thread() + 1));
  if (mistake == 2) out.store(thread() + 1, 0.0F);
  out.store(thread(), 0.0F);
}

void two_warps_write_one_word(Global<const float>, Global<float> out) {
  out.store(lane(), static_cast<float>(warp()));
}
void blocks_share_a_word(Global<const float>, Global<float> out) {
  out.store(thread(), static_cast<float>(block()));
}
void block_reads_anothers_output(Global<const float>, Global<float> out) {
  out.store(global_index(), 1.0F);
  if (block() == 0) static_cast<void>(out.load(32));
  if (block() == 1) static_cast<void>(out.load(0));
}

void barrier_in_a_branch(Global<const float>, Global<float> out) {
  out.store(thread(), 0.0F);
  if (thread() < 40) simt::sync();
}
void two_barriers(Global<const float>, Global<float>) {
  // NOLINTNEXTLINE(bugprone-branch-clone): the same call at two places is what is wrong
  if (thread() < 32) {
    simt::sync();
  } else {
    simt::sync();
  }
}
void shuffle_in_a_branch(Global<const float> in, Global<float> out) {
  float value = in.load(thread());
  if (lane() < 16) value = shuffle_xor(value, 1);
  out.store(thread(), value);
}

void one_unwritten(Global<const float>, Global<float> out) {
  if (thread() != 17) out.store(thread(), 0.0F);
}
void reads_its_output(Global<const float>, Global<float> out) {
  out.store(thread(), out.load(thread()) + 1.0F);
}
void reads_shared_unwritten(Global<const float>, Global<float> out) {
  __shared__ Shared<float, 64> kept;
  if (thread() > 0) kept.store(thread(), 1.0F);
  simt::sync();
  out.store(thread(), kept.load(thread()));
}
void writes_an_input(Global<const float> in, Global<float> out) {
  out.store(thread(), 0.0F);
  Global<float>(const_cast<float*>(in.host())).store(thread(), 0.0F);
}

template <int offset>
void moves_packs(Global<const float> in, Global<float> out) {
  if (thread() >= 15) return;
  out.store_pack<4>(4 * thread() + offset, in.load_pack<4>(4 * thread() + offset));
}
void moves_shared_packs(Global<const float>, Global<float>) {
  __shared__ Shared<float, 256> kept;
  kept.store_pack<4>(4 * thread() + 2, Pack<float, 4>{});
}

void meets_rightly(Global<const float> in, Global<float> out) {
  const float value = in.load(thread());
  const float next = shuffle(value, (lane() + 1) % 32);
  const float other = shuffle_xor(value, 1);
  const auto low = ballot(lane() < 5);
  const bool any = block_any(thread() == 63);
  const bool none = block_any(false);
  const bool right = next == in.load(warp() * 32 + (lane() + 1) % 32) &&
                     other == in.load(thread() ^ 1) && low == 31 && any && !none;
  out.store(thread(), right ? 1.0F : 0.0F);
}

}  // namespace

TEST_CASE("the executor runs right kernels in any order of threads and blocks") {
  launch(64 * 5, 5, 64, reverse<true>);
  launch(64, 1, 64, neighbours<true>);
  launch(64, 1, 64, meets_rightly);
  TestTensor in(DType::f32, {64});
  TestTensor out(DType::f32, {64});
  in.randomise(1);
  Executor executor(7);
  Memory memory;
  memory.declare("in", in, Role::input);
  memory.declare("out", out, Role::output);
  HostLauncher launcher(executor, memory);
  launcher.launch("meets_rightly", meets_rightly, {1, 64}, Global<const float>(in.view().f32()),
                  Global<float>(out.view().f32()));
  CHECK(out.values() == std::vector<float>(64, 1.0F));
}

TEST_CASE("a race in shared memory is found and named") {
  const auto text = fault_of([] { launch(64, 1, 64, reverse<false>); });
  CHECK_THAT(text, Contains("race") && Contains("kernel_under_test") && Contains("thread") &&
                       Contains("executor_test.cpp") && Contains("shared array of 64"));
}

TEST_CASE("a missing barrier of a warp is found") {
  // Depending on the order, the word is not yet written, or nothing orders the two.
  const auto text = fault_of([] { launch(64, 1, 64, neighbours<false>); });
  CHECK_THAT(text, Contains("race") || Contains("never written"));
}

TEST_CASE("an index beyond the end is found in shared and global memory") {
  CHECK_THAT(fault_of([] { launch(64, 1, 64, off_by<0>); }),
             Contains("out of bounds") && Contains("element 64") && Contains("thread 63"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, off_by<1>); }),
             Contains("reads out of bounds") && Contains("'in'") && Contains("offset 64"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, off_by<2>); }),
             Contains("race") || (Contains("writes out of bounds") && Contains("'out'")));
}

TEST_CASE("races in global memory are found within and between blocks") {
  CHECK_THAT(fault_of([] { launch(64, 1, 64, two_warps_write_one_word); }), Contains("race"));
  CHECK_THAT(fault_of([] { launch(32, 3, 32, blocks_share_a_word); }),
             Contains("race") && Contains("block"));
  CHECK_THAT(fault_of([] { launch(64, 2, 32, block_reads_anothers_output); }),
             Contains("race") || Contains("never written"));
}

TEST_CASE("threads that do not come to a meeting are named") {
  CHECK_THAT(fault_of([] { launch(64, 1, 64, barrier_in_a_branch); }),
             Contains("divergence") && Contains("has ended") && Contains("sync"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, two_barriers); }), Contains("divergence"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, shuffle_in_a_branch); }),
             Contains("divergence") && Contains("shuffle"));
}

TEST_CASE("what is never written is found") {
  CHECK_THAT(fault_of([] { launch(64, 1, 64, one_unwritten); }),
             Contains("never writes its output") && Contains("offset 17") && Contains("'out'"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, reads_its_output); }),
             Contains("reads what was never written"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, reads_shared_unwritten); }),
             Contains("reads what was never written") && Contains("element 0"));
}

TEST_CASE("inputs may not be written") {
  CHECK_THAT(fault_of([] { launch(64, 1, 64, writes_an_input); }), Contains("writes to an input"));
}

TEST_CASE("misaligned packs are found") {
  CHECK_THAT(fault_of([] { launch(64, 1, 64, moves_packs<1>); }), Contains("misaligned"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, moves_shared_packs); }), Contains("misaligned"));
  CHECK_THAT(fault_of([] { launch(64, 1, 64, moves_packs<0>); }), Contains("offset 60"));
}
