// SPDX-License-Identifier: Apache-2.0
// Bytes that a rank sends for a step's gradients and parameters, at each ZeRO level, counted by
// hand: with n ranks an all-reduce of b bytes takes 2 b (n - 1) / n, the others half of that.
#include "trireme/engine/measure.hpp"
#include "trireme/telemetry/spans.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

engine::EngineOptions options_for(int zero_level, int micro_batches, int vocabulary = 97) {
  engine::EngineOptions options;
  options.model = tiny(Architecture::llama);
  options.model.vocab_size = vocabulary;
  options.sharding.mesh = layout::Mesh::of(1, mpi().world_size(), 1);
  options.sharding.rank = mpi().world_rank();
  options.schedule.micro_batch = 1;
  options.schedule.micro_batches = micro_batches;
  options.schedule.sequence_length = 12;
  options.sharding.zero_level = zero_level;
  options.sharding.bucket_bytes = 16 << 10;
  options.numerics.dtype = device::DType::bf16;
  return options;
}

/// Bytes of a step's collectives over data-parallel ranks, an all-reduce twice.
std::size_t bytes_of(const telemetry::SpanRecorder& recorder) {
  std::size_t bytes = 0;
  for (const auto& span : recorder.spans()) {
    if (span.kind != telemetry::SpanKind::operation || span.operation.group != "dp") continue;
    bytes += span.operation.bytes * (span.operation.name == "all_reduce" ? 2 : 1);
  }
  return bytes;
}

/// Elements of a rank's buckets, padding included.
struct Sizes {
  std::size_t all = 0;
  /// Those of layers but the one that forward leaves for backward in its place.
  std::size_t gathered_again = 0;
};

/// `left`: that layer.
Sizes sizes_of(const model::StageParameters& stage, int left) {
  Sizes sizes;
  std::set<std::int64_t> again;
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const auto& place = stage.fused_parameters()[index].place;
    if (place.kind != model::Place::Kind::layer || place.layer == left) continue;
    const auto own = stage.flat().buckets_of_tensor(index);
    for (auto bucket = own.begin; bucket < own.end; ++bucket) again.insert(bucket);
  }
  std::int64_t number = 0;
  for (const auto& bucket : stage.flat().buckets) {
    const auto size = static_cast<std::size_t>(bucket.size());
    sizes.all += size;
    if (again.contains(number++)) sizes.gathered_again += size;
  }
  return sizes;
}

struct Moved {
  std::size_t bytes = 0;
  Sizes sizes;
};

Moved moved_by(const engine::EngineOptions& options) {
  const auto groups = mpi_groups(options.sharding.mesh);
  // As a run has one: what hosts tell each other is nobody's gradients.
  const auto world = mpi().make_world({comm::Backend::automatic, 60});
  auto views = groups.views();
  views.set_all_ranks(*world);
  const auto kernels = device::make_reference_kernels();
  auto memory = engine::Memory::host(engine::measure(options));
  engine::Engine engine(options, views, *kernels, memory);
  engine.initialise();
  fill(engine, 0);
  const auto sequences = options.schedule.micro_batches * mpi().world_size();
  engine.expect_tokens(sequences * options.schedule.sequence_length);
  telemetry::SpanRecorder recorder;
  engine.run_schedule();
  const auto reduced = engine.reduce_gradients();
  engine.update({1, 1e-3, reduced.gradient_norm});
  const auto bytes = bytes_of(recorder);
  recorder.stop();
  // A short head takes the place of the last layer alone, a long one that of both.
  const int left = options.model.vocab_size > 100 ? -1 : options.model.num_hidden_layers - 2;
  return {bytes, sizes_of(engine.parameters(), left)};
}

}  // namespace

TEST_CASE("a step moves 8, 6, 4m + 2 and at most 8 bytes a parameter at ZeRO levels 0 to 3") {
  for (const int micro_batches : {1, 3}) {
    CAPTURE(micro_batches);
    // Gradients in fp32 by all-reduce.
    const auto none = moved_by(options_for(0, micro_batches));
    CHECK(none.bytes == 8 * none.sizes.all);
    // Gradients by reduce-scatter, parameters in bf16 by all-gather.
    const auto optimizer = moved_by(options_for(1, micro_batches));
    CHECK(optimizer.bytes == 6 * optimizer.sizes.all);
    // Gradients by reduce-scatter in each micro-batch.
    const auto gradients = moved_by(options_for(2, micro_batches));
    const auto times = static_cast<std::size_t>(micro_batches);
    CHECK(gradients.bytes == (4 * times + 2) * gradients.sizes.all);
    // Parameters in forward and in backward, but for those that are still there.
    for (const int vocabulary : {97, 1000}) {
      CAPTURE(vocabulary);
      const auto parameters = moved_by(options_for(3, micro_batches, vocabulary));
      const auto& [all, again] = parameters.sizes;
      CHECK(parameters.bytes == 6 * all + 2 * again);
      CHECK(again > all / 3);
    }
  }
}
