// Every layout is a rearrangement of one computation: the table of docs/numerics.md.
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"
#include "trireme/base/format.hpp"

using namespace trireme;
using namespace trireme::testing;
using model::Architecture;

namespace {

constexpr int steps = 20;
constexpr double tolerance = 1e-5;

struct Variant {
  const char* name;
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  model::SequenceParallel sequence = model::SequenceParallel::off;
  int zero_level = 0;
  model::Recompute recompute = model::Recompute::none;
};

/// The whole batch is 12 sequences of 16 tokens, whatever the mesh.
engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh,
                                  const Variant& variant) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.mesh = mesh;
  options.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule = variant.schedule;
  if (variant.schedule == layout::ScheduleKind::interleaved) options.virtual_stages = 2;
  options.micro_batch = 1;
  options.micro_batches = 24 / mesh.degree(layout::Axis::data);
  options.sequence_length = 16;
  options.sequence_parallel = variant.sequence;
  options.zero_level = variant.zero_level;
  options.recompute = variant.recompute;
  options.bucket_bytes = 64 << 10;
  options.clip_norm = 1.0;
  options.seed = 7;
  return options;
}

std::vector<layout::Mesh> meshes_of(int world_size) {
  std::vector<layout::Mesh> meshes;
  for (int pipeline = 1; pipeline <= world_size; ++pipeline) {
    for (int tensor = 1; tensor * pipeline <= world_size; ++tensor) {
      if (world_size % (pipeline * tensor) != 0) continue;
      // Six layers and twelve heads fit these.
      if (6 % pipeline != 0 && pipeline > 6) continue;
      if (12 % tensor != 0) continue;
      meshes.push_back(layout::Mesh::of(pipeline, world_size / (pipeline * tensor), tensor));
    }
  }
  return meshes;
}

void print_row(Architecture architecture, const layout::Mesh& mesh, const char* variant,
               double away, const char* demanded) {
  if (mpi().world_rank().value() != 0) return;
  std::printf("%-6s %-18s %-24s %10.2e  %s\n", model::name(architecture), mesh.text().c_str(),
              variant, away, demanded);
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("every layout trains as one rank does") {
  const auto kernels = device::make_reference_kernels();
  const int world = mpi().world_size();
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    const auto serial = train(options_for(architecture, layout::Mesh::of(1, 1, 1), {"serial"}),
                              local_groups().views(), *kernels, steps);
    REQUIRE(serial.back().loss < serial.front().loss - 0.2);
    for (const auto& mesh : meshes_of(world)) {
      CAPTURE(model::name(architecture), mesh.text());
      if (!model::check_on(tiny(architecture), mesh).ok()) continue;
      const auto groups = mpi_groups(mesh);
      const auto plain =
          train(options_for(architecture, mesh, {"1f1b"}), groups.views(), *kernels, steps);
      print_row(architecture, mesh, "1f1b", distance(plain, serial), "<= 1e-5");
      CHECK(distance(plain, serial) <= tolerance);
    }
  }
}
