// SPDX-License-Identifier: Apache-2.0
// Steps whose numbers are not finite: they change nothing, and a run ends with what was before
// them.
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include "mpi/training/small_run.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <set>

using namespace trireme;
using namespace trireme::testing;
namespace fs = std::filesystem;

namespace {

/// The cpu backend, of which gradients of heads go wrong in some steps: as by a GPU's bit flip.
class BrokenKernels final : public CpuKernels {
 public:
  /// bad: steps from 1.
  explicit BrokenKernels(std::set<int> bad) : bad_(std::move(bad)) {}

  void compute(const device::Operation& operation) override {
    CpuKernels::compute(operation);
    const auto* const gradient = operation.get_if<device::CrossEntropyGradient>();
    if (gradient == nullptr) return;
    const int step = 1 + seen_++ / small_micro_batches;
    // All bits of a number: not a number in fp32 as in bf16.
    if (bad_.contains(step)) std::memset(gradient->logits.raw(), 0xff, sizeof(float));
  }

 private:
  std::set<int> bad_;
  int seen_ = 0;
};

RunEnd run_of(const RunFolder& folder, const fs::path& run, int skips, std::set<int> bad) {
  return run_to_end(small_config(folder, run, {base::format("optimizer.skip_nonfinite={}", skips)}),
                    std::make_unique<BrokenKernels>(std::move(bad)));
}

using Steps = std::vector<std::int64_t>;

/// Losses and gradient norms of steps from `first` on, as metrics.jsonl has them.
std::vector<std::string> numbers_from(const fs::path& run, std::int64_t first) {
  std::vector<std::string> numbers;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") != "train" || json.at("step") < first) continue;
    numbers.push_back(json.at("loss").dump() + " " + json.at("grad_norm").dump());
  }
  return numbers;
}

/// Updates that the newest checkpoint counts.
std::int64_t updates_of(const fs::path& run) {
  const auto steps = checkpoint::list(checkpoint::checkpoints_of_run(run));
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(steps.front().path));
  return manifest.state.value("updates", manifest.step);
}

}  // namespace

TEST_CASE("a step that is not finite changes nothing, and the run ends with what was before it") {
  RunFolder folder;
  const auto run = folder.path() / "run";
  const auto end = run_of(folder, run, 0, {3});
  folder.wait();
  CHECK(end.code == base::ExitCode::checkpoint);
  CAPTURE(end.text);
  CHECK(end.text.find("at step 3") != std::string::npos);
  CHECK(end.text.find("step 2 is saved") != std::string::npos);
  CHECK(steps_of(run, "save") == Steps{2});
  // The save is good: the run goes on from it to its end.
  CHECK(run_of(folder, run, 0, {}).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(run, "train") == Steps{1, 2, 3, 4, 5, 6});
}

TEST_CASE("as many steps in a row as are allowed are skipped, and one more ends the run") {
  RunFolder folder;
  const auto run = folder.path() / "skips";
  CHECK(run_of(folder, run, 2, {2, 3, 5}).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(run, "skipped") == Steps{2, 3, 5});
  CHECK(steps_of(run, "train") == Steps{1, 4, 6});
  const auto too_many = folder.path() / "too many";
  const auto end = run_of(folder, too_many, 2, {2, 3, 4});
  folder.wait();
  CHECK(end.code == base::ExitCode::checkpoint);
  CHECK(end.text.find("at step 4") != std::string::npos);
  CHECK(steps_of(too_many, "skipped") == Steps{2, 3});
  CHECK(steps_of(too_many, "save") == Steps{3});
}

TEST_CASE("a first step that is not finite leaves no checkpoint") {
  RunFolder folder;
  const auto run = folder.path() / "first";
  const auto end = run_of(folder, run, 0, {1});
  folder.wait();
  CHECK(end.code == base::ExitCode::checkpoint);
  CHECK(end.text.find("no step is saved") != std::string::npos);
  CHECK(steps_of(run, "save").empty());
}

TEST_CASE("a run that goes on after a skipped step has the bits of one that was not stopped") {
  RunFolder folder;
  const auto start = [&](const fs::path& run, int steps, std::set<int> bad) {
    const auto config = small_config(
        folder, run,
        {"optimizer.skip_nonfinite=2", "optimizer.curve=constant", "numerics.precision=bf16",
         "numerics.stochastic_rounding=true", base::format("train.steps={}", steps)});
    const auto end = run_to_end(config, std::make_unique<BrokenKernels>(std::move(bad)));
    CHECK(end.code == base::ExitCode::done);
    folder.wait();
  };
  const auto whole = folder.path() / "whole";
  const auto stopped = folder.path() / "stopped";
  start(whole, 6, {1, 4});
  start(stopped, 4, {1, 4});
  start(stopped, 6, {});
  const auto numbers = numbers_from(whole, 5);
  CHECK(numbers.size() == 2);
  CHECK(numbers_from(stopped, 5) == numbers);
  // Bias corrections count what the moments have had.
  CHECK(updates_of(whole) == 4);
  CHECK(updates_of(stopped) == 4);
}

TEST_CASE("moments that begin anew in the middle of a run are corrected from their first update") {
  RunFolder folder;
  const auto run = folder.path() / "run";
  const auto start = [&](const char* optimizer, int steps) {
    const auto config = small_config(
        folder, run,
        {base::format("optimizer.name={}", optimizer), base::format("train.steps={}", steps)});
    CHECK(run_to_end(config, std::make_unique<BrokenKernels>(std::set<int>{})).code ==
          base::ExitCode::done);
    folder.wait();
  };
  start("sgd", 4);
  CHECK(updates_of(run) == 4);
  start("adamw", 6);
  CHECK(updates_of(run) == 2);
  start("adamw", 7);
  CHECK(updates_of(run) == 3);
}
