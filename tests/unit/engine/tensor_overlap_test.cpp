// SPDX-License-Identifier: Apache-2.0
// Counts how much of tensor parallelism's collectives a layer hides: an engine's own operations on
// a timeline of two streams. The eight layers of the chunk are those of one of four stages of
// Llama-3 8B.
#include "tensor_timeline.hpp"

#include <catch2/catch.hpp>

#include <cstdio>

using namespace trireme;
using namespace trireme::tests;
using layers::TensorOverlap;
using model::SequenceParallel;

namespace {

void print(const char* what, const Collectives& all) {
  if (all.count == 0) return;
  std::printf("| %-28s | %2d | %.2f | %.2f | %.0f %% |\n", what, all.count / layer_count,
              1e3 * all.seconds / layer_count, 1e3 * all.exposed_seconds / layer_count,
              100 * all.hidden());
}

/// Collectives of a layer, their time and what is exposed of it, in ms, and what is hidden.
Collectives print_all(const char* what, Timeline& timeline) {
  std::printf("8B, tp8, %s; %.0f TFLOP/s, %.1f TB/s, links %.0f GB/s\n", what, rates.flops / 1e12,
              rates.memory_bytes / 1e12, bus_bytes_per_second / 1e9);
  auto all = timeline.of(Pass::forward);
  all += timeline.of(Pass::backward);
  print("forward, gathers", timeline.gathers(Pass::forward));
  print("forward, sums", timeline.sums(Pass::forward));
  print("backward, gathers", timeline.gathers(Pass::backward));
  print("backward, sums", timeline.sums(Pass::backward));
  print("both", all);
  return all;
}

}  // namespace

TEST_CASE("backward computes weights' gradients beside collectives: of 8B on 8 ranks, counted") {
  Timeline cut;
  run_on(cut, eight_billion_in_eight(SequenceParallel::on, TensorOverlap::plain));
  print_all("sequence parallel, 2 x 4096 rows at once", cut);
  auto backward = cut.of(Pass::backward);
  CHECK(backward.count == 6 * layer_count);
  // The gradient of the layer's output alone, which its first product reads.
  CHECK(backward.joined_at_start == layer_count);
  CHECK(backward.hidden() > 0.65);
  auto forward = cut.of(Pass::forward);
  CHECK(forward.count == 4 * layer_count);
  CHECK(forward.joined_at_start == forward.count);

  Timeline whole;
  run_on(whole, eight_billion_in_eight(SequenceParallel::off, TensorOverlap::plain));
  print_all("2 x 4096 rows at once", whole);
  backward = whole.of(Pass::backward);
  CHECK(backward.count == 2 * layer_count);
  CHECK(backward.joined_at_start == 0);
  CHECK(backward.hidden() > 0.65);
}

TEST_CASE("halves leave a fifth of collectives at most that nothing hides: of 8B on 8, counted") {
  Timeline cut;
  run_on(cut, eight_billion_in_eight(SequenceParallel::on, TensorOverlap::halves));
  const auto all_cut = print_all("sequence parallel, halves of 2 x 4096 rows", cut);
  auto forward = cut.of(Pass::forward);
  CHECK(forward.count == 8 * layer_count);
  // The first half's gather at the begin of the chunk, the second one's sum at its end.
  CHECK(forward.joined_at_start == 2);
  CHECK(forward.hidden() > 0.7);
  CHECK(cut.of(Pass::backward).count == 6 * layer_count);
  CHECK(cut.of(Pass::backward).hidden() > 0.9);
  CHECK(all_cut.hidden() > 0.8);

  Timeline whole;
  run_on(whole, eight_billion_in_eight(SequenceParallel::off, TensorOverlap::halves));
  const auto all_whole = print_all("halves of 2 x 4096 rows", whole);
  forward = whole.of(Pass::forward);
  CHECK(forward.count == 4 * layer_count);
  CHECK(forward.hidden() > 0.7);
  CHECK(all_whole.hidden() > 0.8);

  Timeline longer;
  run_on(longer, eight_billion_in_eight(SequenceParallel::on, TensorOverlap::halves, 8192));
  print_all("sequence parallel, halves of 2 x 8192 rows", longer);
}

TEST_CASE("halves are for GPUs, where their collectives take longer than starting more") {
  auto options = eight_billion_in_eight(SequenceParallel::on, TensorOverlap::plain);
  CHECK(engine::tensor_overlap_of(options) == TensorOverlap::plain);
  options.numerics.gpu_attention.emplace();
  CHECK(engine::tensor_overlap_of(options) == TensorOverlap::halves);
  auto other = options;
  other.sharding.mesh = layout::Mesh::of(1, 1, 1);
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::plain);
  // 35 us of a link of 370 GB/s: 1,581 rows of 4,096 numbers in bf16.
  other = options;
  other.schedule.sequence_length = 1580;
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::plain);
  other.schedule.sequence_length = 1581;
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::halves);
  // Rows of a rank, where two divide each sequence.
  other.sharding.mesh = layout::Mesh::of(1, 1, 8, 2);
  other.schedule.sequence_length = 2 * 1580;
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::plain);
  other.schedule.sequence_length = 2 * 1581;
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::halves);
}
