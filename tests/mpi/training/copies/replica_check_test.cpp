// SPDX-License-Identifier: Apache-2.0
// Replicas whose parameters differ by a bit: found, named, and undone once.
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <set>

using namespace trireme;
using namespace trireme::testing;
namespace fs = std::filesystem;

namespace {

using Steps = std::vector<std::int64_t>;

/// Runs of parameters of which a bit is flipped: each step updates them in one order.
enum class Flipped { first, last };

/// The cpu backend, of which the last rank's flips one bit of a parameter after some updates.
class FlippingKernels final : public CpuKernels {
 public:
  /// updates: from 1, those that a run repeats counted again.
  FlippingKernels(std::set<int> updates, Flipped which)
      : updates_(std::move(updates)), which_(which) {}

  void compute(const device::Operation& operation) override {
    CpuKernels::compute(operation);
    const auto* const update = operation.get_if<device::AdamWUpdate>();
    if (update == nullptr) return;
    auto* const master = update->master.raw();
    if (first_ == nullptr) first_ = master;
    if (master == first_) {
      ++seen_;
      // The last run is the one before the first comes again.
      if (seen_ == 2) last_ = before_;
    }
    before_ = master;
    if (master != (which_ == Flipped::first ? first_ : last_)) return;
    if (mpi().world_rank().value() != mpi().world_size() - 1 || updates_.erase(seen_) == 0) return;
    static_cast<std::uint32_t*>(master)[0] ^= 1U;
  }

 private:
  std::set<int> updates_;
  Flipped which_;
  const void* first_ = nullptr;
  const void* last_ = nullptr;
  const void* before_ = nullptr;
  int seen_ = 0;
};

RunEnd run_of(const RunFolder& folder, const fs::path& run, std::set<int> updates,
              const std::vector<std::string>& more = {}, Flipped which = Flipped::first) {
  std::vector<std::string> settings{"parallel.pipeline=1", "train.global_batch=6",
                                    "train.micro_batch=1", "checkpoint.every_steps=2",
                                    "train.replica_check=1"};
  settings.insert(settings.end(), more.begin(), more.end());
  return run_to_end(small_config(folder, run, settings),
                    std::make_unique<FlippingKernels>(std::move(updates), which));
}

std::vector<double> losses_of(const fs::path& run) {
  std::map<std::int64_t, double> losses;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") == "train") losses[json.at("step").get<std::int64_t>()] = json.at("loss");
  }
  std::vector<double> found;
  for (const auto& [step, loss] : losses) found.push_back(loss);
  return found;
}

}  // namespace

TEST_CASE("a flipped bit of one replica is found, and the run goes on as if it had not been") {
  RunFolder folder;
  const auto clean = folder.path() / "clean";
  CHECK(run_of(folder, clean, {}).code == base::ExitCode::done);
  const auto flipped = folder.path() / "flipped";
  CHECK(run_of(folder, flipped, {4}).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(clean, "went back").empty());
  CHECK(steps_of(flipped, "went back") == Steps{4});
  CHECK(steps_of(flipped, "train") == Steps{1, 2, 3, 4, 3, 4, 5, 6});
  CHECK(losses_of(flipped) == losses_of(clean));
}

TEST_CASE(
    "replicas that differ again after going back end the run, and tensor and ranks are told") {
  RunFolder folder;
  const auto run = folder.path() / "again";
  const auto end = run_of(folder, run, {4, 6});
  folder.wait();
  CHECK(end.code == base::ExitCode::peer);
  CAPTURE(end.text);
  CHECK(end.text.find("'final_norm.weight'") != std::string::npos);
  const auto named = mpi().world_size() == 2 ? "differs between ranks 0, 1"
                                             : "on rank 2 is unlike that of the other 2 replicas";
  CHECK(end.text.find(named) != std::string::npos);
  CHECK(steps_of(run, "save") == Steps{2});
}

TEST_CASE("a flipped bit of a parameter that tensor-parallel ranks all hold is found") {
  if (mpi().world_size() != 2) return;
  RunFolder folder;
  const auto run = folder.path() / "tensor";
  const std::vector<std::string> tensor{"parallel.tensor=2", "parallel.sequence=true"};
  CHECK(run_of(folder, run, {4}, tensor, Flipped::last).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(run, "went back") == Steps{4});
  const auto end = run_of(folder, folder.path() / "again", {4, 6}, tensor, Flipped::last);
  CHECK(end.code == base::ExitCode::peer);
  CAPTURE(end.text);
  CHECK(end.text.find("tensor-parallel ranks do not hold the same parameters") !=
        std::string::npos);
  CHECK(end.text.find("differs between ranks 0, 1") != std::string::npos);
}

TEST_CASE("without a checkpoint replicas that differ end the run") {
  RunFolder folder;
  const auto run = folder.path() / "none";
  const auto end = run_of(folder, run, {1});
  folder.wait();
  CHECK(end.code == base::ExitCode::peer);
  CHECK(steps_of(run, "save").empty());
}

TEST_CASE("without the key nobody compares replicas") {
  RunFolder folder;
  const auto run = folder.path() / "unwatched";
  CHECK(run_of(folder, run, {4}, {"train.replica_check=0"}).code == base::ExitCode::done);
  folder.wait();
  CHECK(steps_of(run, "went back").empty());
}
