// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"
#include "trireme/base/text.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/telemetry/run_record.hpp"

#include "support/mpi/world.hpp"
#include "support/temporary_folder.hpp"
#include "train/rank_times_recorder.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <optional>

using namespace trireme;

namespace {

/// "0-3": the cores of this process.
std::string own_cores() {
  const auto status = base::value_or_throw(base::read_text_file("/proc/self/status"));
  constexpr std::string_view mark = "Cpus_allowed_list:";
  for (const auto line : base::split(status, '\n')) {
    if (line.starts_with(mark)) return std::string(base::trimmed(line.substr(mark.size())));
  }
  return {};
}

/// Keeps a core busy for long enough to count.
void compute() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
  while (std::chrono::steady_clock::now() < end) {
  }
}

bool kernel_counts_cores() {
  const auto stat = base::read_text_file("/proc/stat");
  for (const auto& [core, ticks] : telemetry::core_ticks_in(stat.ok() ? *stat : std::string{})) {
    if (ticks.busy > 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the first rank records the times of all, and the use of their cores") {
  auto& mpi = testing::mpi();
  runtime::Cluster cluster{
      {}, layout::Mesh::of(1, mpi.world_size(), 1), mpi.world_rank(), 0, {}, mpi.make_world(), {},
      {}};
  cluster.mpi = &mpi;
  cluster.binding.cpus = own_cores();
  const bool is_first = cluster.rank.value() == 0;
  std::optional<tests::TemporaryFolder> folder;
  if (is_first) folder.emplace();
  const std::filesystem::path path =
      comm::broadcast_bytes(*cluster.world, is_first ? folder->path().string() : "");

  train::Report::Settings settings;
  settings.directory = path;
  settings.speaks = is_first;
  train::Report report(settings);
  train::RankTimesRecorder recorder(cluster, path);
  train::StepRecord step;
  step.step_ms = 250.0 * (1 + cluster.rank.value());
  for (step.step = 1; step.step <= 3; ++step.step) {
    recorder.add(step);
    if (step.step == 1) compute();
  }
  recorder.record(report);
  // No step since, and less than a second.
  recorder.record(report);
  step.step = 4;
  recorder.add(step);
  recorder.record(report);
  if (!is_first) return;

  const auto times = base::value_or_throw(telemetry::read_rank_times(path));
  CHECK(times.step == 4);
  REQUIRE(times.ranks.size() == static_cast<std::size_t>(mpi.world_size()));
  for (const auto& rank : times.ranks) {
    CHECK(rank.computing_ms == Approx(250 * (1 + rank.rank)));
    CHECK_FALSE(rank.node.empty());
  }
  const auto record = base::value_or_throw(telemetry::read_record(path));
  REQUIRE(record.processors.empty() != kernel_counts_cores());
  for (const auto& [at_step, restart, use] : record.processors) {
    // Beside other programs a second may pass between the last two.
    CHECK(at_step >= 3);
    CHECK(use.node == times.ranks[0].node);
    CHECK(use.rank_count >= 1);
    CHECK(use.core_count >= 1);
    CHECK(use.own + use.others + use.stolen + use.interrupts + use.idle == Approx(1).margin(0.05));
  }
}
