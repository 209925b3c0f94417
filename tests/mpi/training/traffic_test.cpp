// SPDX-License-Identifier: Apache-2.0
// Traffic of a step by engine::traffic_of is what the operations of a real step move.
#include "trireme/engine/measure.hpp"
#include "trireme/telemetry/spans.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

engine::EngineOptions options_for(const layout::Mesh& mesh, int zero_level) {
  engine::EngineOptions options;
  options.model = tiny(Architecture::gpt2);
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.schedule.micro_batch = 2;
  options.schedule.micro_batches = 3;
  options.schedule.sequence_length = 24;
  options.sharding.zero_level = zero_level;
  options.sharding.bucket_bytes = 4096;
  return options;
}

/// Bytes of recorded operations of a group: its collectives, and messages received.
std::size_t bytes_of(const telemetry::SpanRecorder& recorder, std::string_view group,
                     std::string_view but = "send") {
  std::size_t bytes = 0;
  for (const auto& span : recorder.spans()) {
    const bool counts = span.kind == telemetry::SpanKind::operation &&
                        span.operation.group == group && span.operation.name != but;
    if (counts) bytes += span.operation.bytes;
  }
  return bytes;
}

void check_step(const engine::EngineOptions& options) {
  const auto traffic = engine::traffic_of(options);
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
  engine.expect_tokens(engine.global_batch() * options.schedule.sequence_length);
  telemetry::SpanRecorder recorder;
  engine.run_schedule();
  const auto tensor = bytes_of(recorder, "tp");
  const auto messages = bytes_of(recorder, "pp");
  const auto reduced = engine.reduce_gradients();
  const bool divides = options.sharding.mesh.degree(Axis::context) > 1;
  const auto gradients = bytes_of(recorder, divides ? "replicas" : "dp", "all_gather");
  CHECK(traffic.context == bytes_of(recorder, "cp"));
  CHECK((traffic.context > 0) == divides);
  recorder.stop();
  CHECK(traffic.tensor == tensor);
  CHECK(traffic.messages == messages);
  CHECK(traffic.gradients == gradients);
  CHECK((tensor > 0) == (options.sharding.mesh.degree(Axis::tensor) > 1));
  CHECK((messages > 0) == (options.sharding.mesh.degree(Axis::pipeline) > 1));
  CHECK((gradients > 0) == (options.sharding.mesh.degree(layout::replica_axes) > 1));
  // The host sees how long reductions were under way: not at all where there are none.
  REQUIRE(reduced.busy_seconds.has_value());
  CHECK((*reduced.busy_seconds > 0) == (options.sharding.mesh.degree(layout::replica_axes) > 1));
  engine.update({1, 1e-3, reduced.gradient_norm});
}

}  // namespace

TEST_CASE("the traffic of a step is told before it is moved, in every layout") {
  auto meshes = meshes_of(mpi().world_size(), Architecture::gpt2);
  if (mpi().world_size() == 4) meshes.push_back(layout::Mesh::of(1, 2, 1, 2));
  for (const auto& mesh : meshes) {
    for (const int zero_level : {0, 1, 3}) {
      CAPTURE(mesh.text(), zero_level);
      check_step(options_for(mesh, zero_level));
    }
  }
}
