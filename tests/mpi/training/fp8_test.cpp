// SPDX-License-Identifier: Apache-2.0
// Training whose layers multiply FP8 copies in forward: as bf16 trains, and the same in every
// layout.
#include "trireme/base/format.hpp"

#include "layers/linear.hpp"
#include "layers/magnitudes.hpp"
#include "mpi/training/fp8_options.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layers::LinearForward;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;

namespace {

constexpr int steps = 20;
constexpr double learning_rate = 1e-3;
/// Layouts whose sums differ in the last bit round some activations to another bf16 number, and
/// some of those to another code. Seen: 7e-5 between layouts in bf16, 2e-4 in FP8, and 7e-4 between
/// the two in 60 steps.
constexpr double between_layouts = 2e-3;
constexpr double from_bf16 = 5e-3;

/// 16 sequences of 16 tokens a step.
engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh,
                                  LinearForward linear) {
  auto options = options_in_fp8(architecture, mesh);
  options.model.intermediate_size = 192;
  options.schedule.micro_batch = 2;
  options.schedule.sequence_length = 16;
  options.numerics.linear_forward = linear;
  options.numerics.clip_norm = 1.0;
  return options;
}

/// Computed once, however many layouts are compared with it.
const std::vector<Observed>& on_one_rank(Architecture architecture, LinearForward linear,
                                         int count) {
  static std::map<std::tuple<Architecture, LinearForward, int>, std::vector<Observed>> known;
  auto& run = known[{architecture, linear, count}];
  if (run.empty()) {
    const auto kernels = device::make_reference_kernels();
    run = train_serially(options_for(architecture, layout::Mesh::of(1, 1, 1), linear), *kernels,
                         count, learning_rate);
  }
  return run;
}

void print(const std::string& what, const std::string& against, double away) {
  if (mpi().world_rank().value() != 0) return;
  std::printf("%-44s %-18s %10.2e\n", what.c_str(), against.c_str(), away);
  std::fflush(stdout);
}

}  // namespace

TEST_CASE("training in FP8 falls as training in bf16 does") {
  if (mpi().world_size() != 1) return;
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    still_going(model::name(architecture));
    CAPTURE(model::name(architecture));
    constexpr int long_run = 60;
    const auto& fp8 = on_one_rank(architecture, LinearForward::e4m3, long_run);
    const auto& bf16 = on_one_rank(architecture, LinearForward::plain, long_run);
    print(base::format("{}, fp8", model::name(architecture)), "bf16", distance(fp8, bf16));
    CHECK(fp8.back().loss < fp8.front().loss - 0.5);
    CHECK(fp8.front() != bf16.front());
    CHECK(distance(fp8, bf16) <= from_bf16);
  }
}

TEST_CASE("the cpu backend trains in FP8 as the reference does") {
  if (mpi().world_size() != 1) return;
  const auto cpu = device::make_cpu_kernels(1);
  const auto groups = local_groups();
  const auto options =
      options_for(Architecture::llama, layout::Mesh::of(1, 1, 1), LinearForward::e4m3);
  const auto found = train(options, groups.views(), *cpu, steps, learning_rate);
  const auto& expected = on_one_rank(Architecture::llama, LinearForward::e4m3, steps);
  print("llama, fp8, cpu", "reference", distance(found, expected));
  CHECK(distance(found, expected) <= between_layouts);
}

TEST_CASE("every layout trains in FP8 as one rank does") {
  const auto kernels = device::make_reference_kernels();
  for (const auto& mesh : meshes_for_fp8()) {
    for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
      const auto what = base::format("{} {}", model::name(architecture), mesh.text());
      still_going(what);
      CAPTURE(what);
      const auto groups = mpi_groups(mesh);
      auto options = options_for(architecture, mesh, LinearForward::e4m3);
      const auto run = [&] {
        return train(options, groups.views(), *kernels, steps, learning_rate);
      };
      const auto plain = run();
      const auto& serial = on_one_rank(architecture, LinearForward::e4m3, steps);
      print(what + ", fp8", "one rank", distance(plain, serial));
      const bool same_sums =
          mesh.degree(Axis::pipeline) == mesh.world_size() && !options.model.tie_word_embeddings;
      if (same_sums) {
        CHECK(plain == serial);
      } else {
        CHECK(distance(plain, serial) <= between_layouts);
      }
      // Scales are those of tensors over whole sequences.
      if (mesh.degree(Axis::context) > 1) CHECK(plain.front().loss == serial.front().loss);
      options.memory.recompute = layers::Recompute{layers::Activation::layer};
      options.schedule.kind = ScheduleKind::gpipe;
      options.sharding.zero_level = 1;
      CHECK(run() == plain);
      if (mesh.degree(Axis::tensor) == 1) continue;
      options.sharding.sequence_parallel = model::SequenceParallel::on;
      const auto sequence = run();
      print(what + ", fp8, sequence parallel", "one rank", distance(sequence, serial));
      CHECK(distance(sequence, serial) <= between_layouts);
    }
  }
}

TEST_CASE("ranks that hold parts of a tensor quantise it with one scale") {
  if (mpi().world_size() != 2) return;
  const auto mesh = layout::Mesh::of(1, 1, 2);
  const auto groups = mpi_groups(mesh);
  const auto kernels = device::make_reference_kernels();
  auto arena = device::Arena::host(device::Purpose::workspace, 1 << 16);
  const auto config = tiny(Architecture::llama);
  layers::StageContext context{config, *kernels, groups.on(layout::Axis::tensor), arena,
                               device::DType::bf16};
  context.linear_forward = LinearForward::e4m3;
  const auto x = arena.allocate(device::DType::bf16, {1, 16});
  const auto w = arena.allocate(device::DType::bf16, {16, 16});
  const auto y = arena.allocate(device::DType::bf16, {1, 16});
  // Beside 256 the other rank's 2^-11 is less than half of the least code: it becomes zero, as it
  // would on one rank that holds both parts.
  const bool small = groups.on(layout::Axis::tensor).rank() == 0;
  const float part = small ? 0x1p-11F : 256.0F;
  const float expected = small ? 0.0F : 16 * 256.0F;
  for (const bool of_x : {true, false}) {
    kernels->issue(device::Fill{x, of_x ? part : 1.0F});
    kernels->issue(device::Fill{w, of_x ? 1.0F : part});
    const auto used = arena.used_bytes();
    layers::linear_forward(context, x, {w, {}, {}, {}}, {}, y);
    CHECK(arena.used_bytes() == used);
    for (int column = 0; column < 16; ++column) {
      CHECK(device::to_float(y.bf16()[column]) == expected);
    }
  }
}

TEST_CASE("a rank's NaN is the magnitude of all, over any library's maximum") {
  if (mpi().world_size() == 1) return;
  for (const auto backend : {comm::Backend::library, comm::Backend::mpi, comm::Backend::shared}) {
    const auto group = mpi().make_world({backend, 60});
    for (int rank = 0; rank < group->size(); ++rank) {
      CAPTURE(comm::name(backend), rank);
      const float mine[] = {std::numeric_limits<float>::quiet_NaN(),
                            1.0F + static_cast<float>(rank)};
      std::vector<float> magnitudes{2.0F, static_cast<float>(group->rank())};
      if (group->rank() == rank) magnitudes.assign(std::begin(mine), std::end(mine));
      layers::join_magnitudes(*group, {magnitudes.data(), device::DType::f32, {2}});
      CHECK(std::isnan(magnitudes[0]));
      CHECK(magnitudes[1] ==
            std::max(1.0F + static_cast<float>(rank), static_cast<float>(group->size() - 1)));
    }
  }
}

TEST_CASE("in bf16 the same layouts are as far from one rank as in FP8") {
  const auto kernels = device::make_reference_kernels();
  for (const auto& mesh : meshes_for_fp8()) {
    still_going(mesh.text());
    const auto groups = mpi_groups(mesh);
    const auto options = options_for(Architecture::llama, mesh, LinearForward::plain);
    const auto found = train(options, groups.views(), *kernels, steps, learning_rate);
    const auto& serial = on_one_rank(Architecture::llama, LinearForward::plain, steps);
    print("llama " + mesh.text() + ", bf16", "one rank", distance(found, serial));
    CHECK(distance(found, serial) <= between_layouts);
  }
}
