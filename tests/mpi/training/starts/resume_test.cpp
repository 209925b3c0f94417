// SPDX-License-Identifier: Apache-2.0
// A start after what earlier ones have left, and with data that are not what they were.
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <functional>
#include <set>
#include <string>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;
namespace fs = std::filesystem;

namespace {

using Steps = std::vector<std::int64_t>;

bool is_first() {
  return mpi().world_rank() == base::Rank(0);
}

RunEnd start(const config::Config& config, std::function<void(std::int64_t step)> after_step = {}) {
  train::StartOptions options;
  if (after_step) {
    options.on_step = [after_step](const train::StepRecord& record) { after_step(record.step); };
  }
  return run_to_end(config, std::make_unique<CpuKernels>(), std::move(options));
}

/// On disk, ascending.
Steps saved_steps(const fs::path& run) {
  Steps steps;
  for (const auto& each : checkpoint::list(checkpoint::checkpoints_of_run(run))) {
    steps.insert(steps.begin(), each.step);
  }
  return steps;
}

}  // namespace

TEST_CASE("a run whose checkpoints were removed does not begin anew over its record") {
  RunFolder folder;
  const auto run = folder.path() / "emptied";
  CHECK(start(small_config(folder, run)).code == ExitCode::done);
  folder.wait();
  if (is_first()) fs::remove_all(checkpoint::checkpoints_of_run(run));
  folder.wait();
  const auto refused = start(small_config(folder, run));
  CHECK(refused.code == ExitCode::checkpoint);
  CHECK_THAT(refused.text,
             Catch::Contains("has the record of 6 steps, of which step 6 was saved") &&
                 Catch::Contains("choose another run.directory") &&
                 Catch::Contains("checkpoint.load = none"));
  folder.wait();
  if (is_first()) CHECK(steps_of(run, "train") == Steps{1, 2, 3, 4, 5, 6});
  // One that begins anew and is killed before it has saved does not have to be told so again.
  struct Killed {};
  CHECK_THROWS_AS(start(small_config(folder, run, {"checkpoint.load=none"}),
                        [](std::int64_t step) {
                          if (step == 2) throw Killed();
                        }),
                  Killed);
  folder.wait();
  CHECK(start(small_config(folder, run)).code == ExitCode::done);
  folder.wait();
  if (is_first()) CHECK(saved_steps(run) == Steps{6});
}

TEST_CASE("a run that has ended before its first save begins anew") {
  RunFolder folder;
  const auto run = folder.path() / "young";
  struct Ended {};
  CHECK_THROWS_AS(start(small_config(folder, run),
                        [](std::int64_t step) {
                          if (step == 3) throw Ended();
                        }),
                  Ended);
  folder.wait();
  CHECK(start(small_config(folder, run)).code == ExitCode::done);
  folder.wait();
  if (is_first()) CHECK(saved_steps(run) == Steps{6});
}

TEST_CASE("what a run's data are is found out at its start, not at each save") {
  RunFolder folder;
  const auto run = folder.path() / "changes";
  // Another token, in place: a look at the data now would find others than the run began with.
  const auto change = [&](std::int64_t step) {
    if (step != 3 || !is_first()) return;
    std::fstream file(folder.path() / "tokens.bin",
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(std::streamoff{4} * 700);
    file.put('\x05');
  };
  const auto config =
      small_config(folder, run, {"checkpoint.every_steps=2", "checkpoint.keep_last=0"});
  CHECK(start(config, change).code == ExitCode::done);
  folder.wait();
  if (!is_first()) return;
  std::set<std::string> fingerprints;
  const auto steps = checkpoint::list(checkpoint::checkpoints_of_run(run));
  CHECK(steps.size() == 3);
  for (const auto& step : steps) {
    const auto manifest = base::value_or_throw(checkpoint::read_manifest(step.path));
    fingerprints.insert(manifest.state.at("data").at("fingerprint").get<std::string>());
  }
  CHECK(fingerprints.size() == 1);
}

TEST_CASE("ranks that see other token files are told so before they train") {
  RunFolder folder;
  if (mpi().world_size() == 1) return;
  auto tokens = folder.path() / "tokens";
  if (!is_first()) {
    tokens = folder.path() / base::format("others-{}", mpi().world_rank().value());
    auto writer =
        base::value_or_throw(data::IndexedTokensWriter::create(tokens, data::TokenType::int32));
    writer.append_document(std::vector<std::int32_t>(800, 7));
    writer.finish();
  }
  const auto end =
      start(small_config(folder, folder.path() / "others", {"data.train=" + tokens.string()}));
  CHECK(end.code == ExitCode::launch);
  CHECK_THAT(end.text, Catch::Contains("data.train of rank 1 is not that of rank 0") &&
                           Catch::Contains("give every node the same token files"));
}
