// SPDX-License-Identifier: Apache-2.0
// Whole runs whose state is at home in host memory: saved, ended and begun again, there and in the
// device's memory, with steps that are skipped.
#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;

namespace {

/// Losses by step.
using Losses = std::map<std::int64_t, double>;

/// Stages with a tied table, or replicas, whose copies are compared at each save and step.
Losses run(RunFolder& folder, const std::string& name, const std::string& home,
           const std::vector<std::string>& more = {},
           std::unique_ptr<device::Kernels> kernels = std::make_unique<CpuKernels>()) {
  std::vector<std::string> settings{"numerics.precision=bf16",  "numerics.stochastic_rounding=true",
                                    "train.replica_check=1",    "optimizer.curve=constant",
                                    "offload.chunk_bytes=4096", "offload.optimizer=" + home};
  settings.insert(settings.end(), more.begin(), more.end());
  Losses losses;
  train::StartOptions options;
  options.on_step = [&](const train::StepRecord& record) {
    if (record.updated) losses[record.step] = record.loss;
  };
  const auto end = run_to_end(small_config(folder, folder.path() / name, settings),
                              std::move(kernels), std::move(options));
  INFO(end.text);
  CHECK(end.code == ExitCode::done);
  folder.wait();
  return losses;
}

/// The cpu backend, of which a gradient of the head is not a number in the third step.
class BrokenOnce final : public CpuKernels {
 public:
  void compute(const device::Operation& operation) override {
    CpuKernels::compute(operation);
    const auto* const gradient = operation.get_if<device::CrossEntropyGradient>();
    if (gradient == nullptr) return;
    const int step = 1 + seen_++ / small_micro_batches;
    if (step == 3) std::memset(gradient->logits.raw(), 0xff, sizeof(float));
  }

 private:
  int seen_ = 0;
};

}  // namespace

TEST_CASE("a run goes on from checkpoints of state at home in host memory, and the reverse") {
  RunFolder folder;
  const auto expected = run(folder, "resident", "none");
  REQUIRE(expected.size() == 6);
  CHECK(run(folder, "offloaded", "host") == expected);
  const std::vector<std::string> beside{"checkpoint.asynchronous=true", "checkpoint.every_steps=1"};
  for (const auto& [first, second] :
       {std::pair{"host", "host"}, {"host", "none"}, {"none", "host"}}) {
    for (const auto& saves : {std::vector<std::string>{}, beside}) {
      CAPTURE(first, second, saves.size());
      const auto name =
          std::string(first) + " to " + second + (saves.empty() ? "" : ", saved beside training");
      auto few = saves;
      few.emplace_back("train.steps=3");
      auto losses = run(folder, name, first, few);
      CHECK(losses.size() == 3);
      losses.merge(run(folder, name, second, saves));
      CHECK(losses == expected);
    }
  }
}

TEST_CASE("a run at ZeRO level 1 goes on from state at home in host memory of level 0") {
  RunFolder folder;
  std::vector<std::string> replicas{"parallel.pipeline=1",
                                    "parallel.data=" + std::to_string(mpi().world_size())};
  const auto expected = run(folder, "resident", "none", replicas);
  auto few = replicas;
  few.emplace_back("train.steps=3");
  auto losses = run(folder, "resharded", "host", few);
  replicas.emplace_back("parallel.zero_level=1");
  losses.merge(run(folder, "resharded", "host", replicas));
  CHECK(losses == expected);
}

TEST_CASE("a skipped step leaves state at home as it was") {
  RunFolder folder;
  const std::vector<std::string> skips{"optimizer.skip_nonfinite=1"};
  const auto expected = run(folder, "resident", "none", skips, std::make_unique<BrokenOnce>());
  CHECK(expected.size() == 5);
  CHECK(run(folder, "offloaded", "host", skips, std::make_unique<BrokenOnce>()) == expected);
}
