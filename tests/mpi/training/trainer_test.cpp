// SPDX-License-Identifier: Apache-2.0
// The work of a run beside training: steps that go and stay, the time that a stop needs, what Slurm
// is told, a lock that is gone, a peak that was beaten.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/device/passing_device.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"
#include "support/pretended_slurm.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

using namespace trireme;
using namespace trireme::testing;
using namespace std::chrono_literals;
using base::ExitCode;
using tests::PretendedSlurm;
namespace fs = std::filesystem;

namespace {

using Steps = std::vector<std::int64_t>;

/// Calls back in the middle of steps, and in evaluations.
class Interrupted final : public CpuKernels {
 public:
  struct Calls {
    /// In each step, from 1.
    std::function<void(int step)> step = [](int) {};
    /// In the first micro-batch of the first evaluation.
    std::function<void()> evaluation = [] {};
  };
  explicit Interrupted(Calls calls) : calls_(std::move(calls)) {}

  void compute(const device::Operation& operation) override {
    const bool forward = operation.get_if<device::CrossEntropyStats>() != nullptr;
    // Training follows each of them with a gradient.
    if (forward && ++forwards_ > gradients_ + 1 && !has_evaluated_) {
      has_evaluated_ = true;
      calls_.evaluation();
    }
    CpuKernels::compute(operation);
    if (operation.get_if<device::CrossEntropyGradient>() == nullptr) return;
    if (gradients_++ % small_micro_batches == 0) calls_.step(gradients_ / small_micro_batches + 1);
  }

 private:
  Calls calls_;
  int forwards_ = 0;
  int gradients_ = 0;
  bool has_evaluated_ = false;
};

RunEnd start(const config::Config& config, Interrupted::Calls calls = {},
             train::StartOptions options = {}, const base::Environment& environment = {}) {
  return run_to_end(config, std::make_unique<Interrupted>(std::move(calls)), std::move(options),
                    environment);
}

/// On disk, ascending.
Steps saved_steps(const fs::path& run) {
  Steps steps;
  for (const auto& each : checkpoint::list(checkpoint::checkpoints_of_run(run))) {
    steps.insert(steps.begin(), each.step);
  }
  return steps;
}

/// A byte goes wrong that only a look at all bytes finds.
void damage(const fs::path& run, std::int64_t step) {
  const auto folder = checkpoint::checkpoints_of_run(run) / checkpoint::step_folder_name(step);
  std::fstream file(folder / "shard-00000.h5", std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-1, std::ios::end);
  const auto last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(~last));
}

/// On held-out data, of each evaluation.
std::vector<double> losses_of(const fs::path& run) {
  std::vector<double> losses;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") == "eval") losses.push_back(json.at("loss").get<double>());
  }
  return losses;
}

/// Waits until it holds, for some seconds.
template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int turn = 0; turn < 2000 && !condition(); ++turn) std::this_thread::sleep_for(10ms);
  return condition();
}

}  // namespace

TEST_CASE("the newest steps of a run stay, as many as are asked for") {
  const RunFolder folder;
  const auto run = folder.path() / "keeps";
  const auto config =
      small_config(folder, run, {"checkpoint.every_steps=1", "checkpoint.keep_last=2"});
  CHECK(start(config).code == ExitCode::done);
  CHECK(saved_steps(run) == Steps{5, 6});
}

TEST_CASE("the first rank chooses the interval between saves, and all save by its clock") {
  const RunFolder folder;
  const auto run = folder.path() / "chosen";
  const auto config = small_config(folder, run,
                                   {"checkpoint.every_minutes=auto", "plan.machine=somewhere",
                                    "checkpoint.asynchronous=false", "checkpoint.keep_last=0"});
  train::StartOptions options;
  int asked = 0;
  // At once until a save is measured, and never again.
  options.choose_interval = [&asked](const model::ModelConfig&, const train::SaveCost& save) {
    ++asked;
    const double minutes = save.measured == 0 ? 1e-9 : 1e6;
    return train::SaveInterval{.minutes = minutes, .save = save, .sentence = "chosen"};
  };
  CHECK(start(config, {}, options).code == ExitCode::done);
  CHECK(saved_steps(run) == Steps{1, 6});
  CHECK(steps_of(run, "save interval") == Steps{0, 1});
  // At the start, and by each save.
  CHECK(asked == (mpi().world_rank().value() == 0 ? 3 : 0));
}

TEST_CASE(
    "an interval that the first rank cannot choose is refused on all, before the run is there") {
  const RunFolder folder;
  const auto run = folder.path() / "refused";
  const auto config =
      small_config(folder, run, {"checkpoint.every_minutes=auto", "plan.machine=somewhere"});
  train::StartOptions options;
  options.choose_interval = [](const model::ModelConfig&, const train::SaveCost&) {
    return base::Result<train::SaveInterval>(base::usage_failure("nobody knows"));
  };
  const auto end = start(config, {}, options);
  CHECK(end.code == ExitCode::usage);
  CHECK(end.text.find("nobody knows") != std::string::npos);
  CHECK_FALSE(fs::exists(run));
}

TEST_CASE("no run removes the step that it has just loaded or saved") {
  const RunFolder folder;
  const auto run = folder.path() / "goes back";
  const auto config = [&](int steps, int keep) {
    return small_config(folder, run,
                        {"checkpoint.every_steps=1", base::format("train.steps={}", steps),
                         base::format("checkpoint.keep_last={}", keep)});
  };
  CHECK(start(config(6, 0)).code == ExitCode::done);
  REQUIRE(saved_steps(run) == Steps{1, 2, 3, 4, 5, 6});
  damage(run, 5);
  damage(run, 6);
  // It loads the fourth, and is stopped before it does anything else.
  std::ofstream(run / "STOP");
  CHECK(start(config(6, 1)).code == ExitCode::done);
  CHECK(steps_of(run, "load") == Steps{4});
  CHECK(saved_steps(run) == Steps{4, 5, 6});
  fs::remove(run / "STOP");
  // A newer one is there, of the right size, and damaged.
  CHECK(start(config(5, 1)).code == ExitCode::done);
  // The one that it has loaded stays, too: nobody has read the fifth.
  CHECK(saved_steps(run) == Steps{4, 5, 6});
  std::ofstream(run / "STOP");
  CHECK(start(config(6, 1)).code == ExitCode::done);
  CHECK(steps_of(run, "load") == Steps{4, 4, 5});
}

TEST_CASE("multiples of a number of steps are saved and stay") {
  const RunFolder folder;
  const auto run = folder.path() / "multiples";
  const auto config = small_config(folder, run,
                                   {"checkpoint.keep_every=2", "checkpoint.keep_last=1",
                                    "checkpoint.every_steps=5", "checkpoint.asynchronous=false"});
  CHECK(start(config).code == ExitCode::done);
  CHECK(steps_of(run, "save") == Steps{2, 4, 5, 6});
  CHECK(saved_steps(run) == Steps{2, 4, 6});
}

TEST_CASE("the step of the lowest validation loss is saved when it is found, and stays") {
  const RunFolder folder;
  const auto run = folder.path() / "best";
  // Steps so long that they lead away.
  const auto config = small_config(
      folder, run,
      {"data.validation=" + (folder.path() / "tokens").string(), "train.eval_every=1",
       "train.eval_batches=2", "optimizer.learning_rate=0.3", "train.steps=8",
       "checkpoint.keep_best=1", "checkpoint.keep_last=1", "checkpoint.asynchronous=false"});
  CHECK(start(config).code == ExitCode::done);
  const auto losses = losses_of(run);
  REQUIRE(losses.size() == 8);
  Steps best_so_far;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t at = 0; at < losses.size(); ++at) {
    if (losses[at] >= lowest) continue;
    lowest = losses[at];
    best_so_far.push_back(static_cast<std::int64_t>(at) + 1);
  }
  const auto best = best_so_far.back();
  // Otherwise the test says nothing.
  REQUIRE(best < 8);
  CHECK(saved_steps(run) == Steps{best, 8});
  best_so_far.push_back(8);
  CHECK(steps_of(run, "save") == best_so_far);
  const auto manifest = checkpoint::read_manifest(checkpoint::checkpoints_of_run(run) /
                                                  checkpoint::step_folder_name(best));
  REQUIRE(manifest.ok());
  CHECK(checkpoint::validation_loss(*manifest) == lowest);
}

TEST_CASE("a start whose lock is gone saves and removes nothing any more") {
  const RunFolder folder;
  const auto run = folder.path() / "lost";
  const auto config =
      small_config(folder, run,
                   {"checkpoint.every_steps=1", "checkpoint.keep_last=1",
                    // Asynchronous ones: unit.checkpoint, a refusal before the commit.
                    "checkpoint.asynchronous=false"});
  const auto end = start(config, {.step = [&](int step) {
                           if (step == 4) fs::remove(run / "lock");
                         }});
  CAPTURE(end.text);
  CHECK(end.code == ExitCode::launch);
  CHECK(end.text.find("was removed or taken over by another start") != std::string::npos);
  // The third stays, of which another start may be reading, and no fourth comes beside it.
  CHECK(saved_steps(run) == Steps{3});
}

TEST_CASE("the longest batch of an evaluation counts for the time that a stop needs") {
  const RunFolder folder;
  const PretendedSlurm slurm;
  slurm.says("INVALID");
  const auto run = folder.path() / "limit";
  const auto config = small_config(folder, run,
                                   {"data.validation=" + (folder.path() / "tokens").string(),
                                    "train.eval_every=2", "train.eval_batches=3"});
  // A minute and three times 1.1 s are more than the 63 s that are left then; without that batch
  // nothing would be near, and the other steps take milliseconds.
  const base::Environment job(
      {{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 64)}});
  const auto end = start(config, {.evaluation = [] { std::this_thread::sleep_for(1100ms); }},
                         {.limit = runtime::TimeLimit(job), .tool_version = "test"});
  CAPTURE(end.text);
  CHECK(end.code == ExitCode::requeue);
  CHECK(steps_of(run, "train") == Steps{1, 2});
  CHECK(steps_of(run, "stop") == Steps{2});
  CHECK(saved_steps(run) == Steps{2});
  // An evaluation that was interrupted is not told.
  CHECK(steps_of(run, "eval").empty());
}

TEST_CASE("Slurm is told a step once in the interval that is asked for, ten minutes by itself") {
  const RunFolder folder;
  const base::Environment job({{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}});
  const auto told_by = [&](const std::string& name, const std::vector<std::string>& more,
                           const std::function<void(const PretendedSlurm&, int step)>& wait) {
    const PretendedSlurm slurm;
    slurm.says("");
    const auto config = small_config(folder, folder.path() / name, more);
    if (more.empty()) CHECK(config.options().run.job_comment == 600);
    CHECK(start(config, {.step = [&](int step) { wait(slurm, step); }}, {}, job).code ==
          ExitCode::done);
    return slurm.changes();
  };
  const auto seldom = told_by("seldom", {}, [](const PretendedSlurm& slurm, int step) {
    // The first is told at once; whoever told the second too would do it as soon.
    if (step == 2) CHECK(comes_true([&] { return !slurm.changes().empty(); }));
    if (step == 4) std::this_thread::sleep_for(300ms);
  });
  REQUIRE(seldom.size() == 1);
  CHECK(seldom.front().find("update JobId=12 Comment=trireme: step 1/6, loss ") == 0);
  const auto often =
      told_by("often", {"run.job_comment=0.001s"}, [](const PretendedSlurm& slurm, int step) {
        const auto wanted = static_cast<std::size_t>(step - 1);
        CHECK(comes_true([&] { return slurm.changes().size() >= wanted; }));
      });
  CHECK(often.size() >= 5);
  CHECK(told_by("never", {"run.job_comment=0"}, [](const PretendedSlurm&, int) {}).empty());
}

namespace {

/// Says that everything took a quarter of an hour.
class SlowStopwatch final : public device::Stopwatch {
 public:
  void start() override {}
  void stop() override {}
  double take() override { return 900; }
};

class SlowDevice final : public device::PassingDevice {
 public:
  using PassingDevice::PassingDevice;
  std::unique_ptr<device::Stopwatch> stopwatch() override {
    return std::make_unique<SlowStopwatch>();
  }
};

class SlowProducts final : public CpuKernels {
 public:
  device::Device& device() override { return slow_; }

 private:
  SlowDevice slow_{CpuKernels::device()};
};

}  // namespace

TEST_CASE("a peak that a step has beaten is measured again, although an evaluation comes first") {
  const RunFolder folder;
  const auto run = folder.path() / "peak";
  const auto config =
      small_config(folder, run,
                   {"data.validation=" + (folder.path() / "tokens").string(), "train.eval_every=1",
                    "train.eval_batches=3", "train.steps=2", "numerics.peak_flops=auto"});
  CHECK(run_to_end(config, std::make_unique<SlowProducts>()).code == ExitCode::done);
  CHECK(steps_of(run, "eval") == Steps{1, 2});
  CHECK(steps_of(run, "peak") == Steps{1});
}
