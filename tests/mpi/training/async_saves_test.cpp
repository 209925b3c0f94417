// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written while training goes on.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;
namespace fs = std::filesystem;

namespace {

using Settings = std::vector<std::string>;

RunEnd trained(const RunFolder& folder, const fs::path& run, const Settings& settings,
               std::unique_ptr<device::Kernels> kernels = std::make_unique<CpuKernels>()) {
  return run_to_end(small_config(folder, run, settings), std::move(kernels));
}

/// Puts a file where steps are saved, once the run has looked there: no folder can be made in it.
class BlocksSaves final : public CpuKernels {
 public:
  explicit BlocksSaves(fs::path checkpoints) : checkpoints_(std::move(checkpoints)) {}
  void compute(const device::Operation& operation) override {
    if (!blocked_ && mpi().world_rank() == base::Rank(0)) std::ofstream(checkpoints_) << "a file";
    blocked_ = true;
    CpuKernels::compute(operation);
  }

 private:
  fs::path checkpoints_;
  bool blocked_ = false;
};

/// All tensors of a step, by name.
std::map<std::string, std::vector<std::byte>> tensors_of(const fs::path& run, std::int64_t step) {
  const auto folder = checkpoint::checkpoints_of_run(run) / checkpoint::step_folder_name(step);
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(folder));
  std::map<std::string, std::vector<std::byte>> tensors;
  for (const auto& tensor : manifest.contents.tensors) {
    const auto count = layout::element_count(tensor.shape);
    auto& bytes = tensors[tensor.name];
    bytes.resize(static_cast<std::size_t>(count) * device::size_of(tensor.dtype));
    const checkpoint::LoadItem item{tensor.name,
                                    tensor.shape,
                                    layout::whole(tensor.shape),
                                    {bytes.data(), tensor.dtype, {count}}};
    checkpoint::load_alone(folder, manifest, {&item, 1});
  }
  return tensors;
}

/// Removes the run's lock in the second step, when the save of the first one has just begun.
class LosesLock final : public CpuKernels {
 public:
  explicit LosesLock(fs::path run) : run_(std::move(run)) {}
  void compute(const device::Operation& operation) override {
    const bool updates = operation.get_if<device::AdamWUpdate>() != nullptr;
    // The first stage is the first rank.
    const bool begins_step = operation.get_if<device::EmbeddingForward>() != nullptr;
    if (begins_step && updated_) fs::remove(run_ / "lock");
    updated_ = updated_ || updates;
    CpuKernels::compute(operation);
  }

 private:
  fs::path run_;
  bool updated_ = false;
};

/// Lines of metrics.jsonl about saves.
std::vector<base::Json> saves_of(const fs::path& run) {
  std::vector<base::Json> saves;
  std::ifstream metrics(run / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    auto json = base::Json::parse(line);
    if (json["kind"] == "save") saves.push_back(std::move(json));
  }
  return saves;
}

}  // namespace

TEST_CASE("what is written beside training has the bits of what training waits for") {
  RunFolder folder;
  const Settings common{"checkpoint.every_steps=2", "checkpoint.keep_last=0",
                        // A state that takes longer to copy than a step takes.
                        "model.vocab_size=300000"};
  for (const std::string way : {"true", "false"}) {
    auto settings = common;
    settings.push_back("checkpoint.asynchronous=" + way);
    CHECK(trained(folder, folder.path() / way, settings).code == ExitCode::done);
  }
  folder.wait();
  if (mpi().world_rank() != base::Rank(0)) return;
  for (const std::int64_t step : {2, 4, 6}) {
    INFO("step " << step);
    CHECK(tensors_of(folder.path() / "true", step) == tensors_of(folder.path() / "false", step));
  }
  for (const std::string way : {"true", "false"}) {
    const auto saves = saves_of(folder.path() / way);
    REQUIRE(saves.size() == 3);
    for (std::size_t index = 0; index < 3; ++index) {
      CHECK(saves[index]["step"] == 2 * (index + 1));
      // The last one of a start is waited for.
      CHECK(saves[index]["asynchronous"] == (way == "true" && index < 2));
      CHECK(saves[index]["write_ms"] > 0);
    }
  }
}

TEST_CASE("a save under way when the run's lock goes is not committed") {
  RunFolder folder;
  const auto run = folder.path() / "lost";
  const auto end =
      trained(folder, run, {"checkpoint.every_steps=1"}, std::make_unique<LosesLock>(run));
  CHECK(end.code == ExitCode::launch);
  CHECK_THAT(end.text, Catch::Contains("was removed or taken over by another start"));
  folder.wait();
  CHECK(checkpoint::list(checkpoint::checkpoints_of_run(run)).empty());
}

TEST_CASE("a run goes on after saves that fail, and ends after too many in a row") {
  RunFolder folder;
  const std::string way = GENERATE("true", "false");
  const Settings settings{"checkpoint.every_steps=1", "checkpoint.failures_allowed=2",
                          "checkpoint.asynchronous=" + way};
  const auto run = folder.path() / way;
  const bool is_first = mpi().world_rank() == base::Rank(0);
  const auto checkpoints = checkpoint::checkpoints_of_run(run);
  const auto end = trained(folder, run, settings, std::make_unique<BlocksSaves>(checkpoints));
  CHECK(end.code == ExitCode::checkpoint);
  CHECK_THAT(end.text, Catch::Contains("3 saves in a row have failed") &&
                           Catch::Contains("checkpoint.failures_allowed") &&
                           Catch::Contains("Not a directory"));
  if (is_first) CHECK(steps_of(run, "not saved") == std::vector<std::int64_t>{1, 2, 3});
  folder.wait();
  if (is_first) fs::remove(checkpoints);
  folder.wait();
  // Steps 1 to 3 are lost, and done again.
  CHECK(trained(folder, run, settings).code == ExitCode::done);
  if (is_first) CHECK(checkpoint::newest_verified(checkpoints)->step == 6);
}
