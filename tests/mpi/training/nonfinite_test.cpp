// SPDX-License-Identifier: Apache-2.0
// Steps whose numbers are not finite: they change nothing, and a run ends with what was before
// them.
#include "trireme/base/format.hpp"

#include "mpi/training/small_run.hpp"

#include <catch2/catch.hpp>

#include <limits>
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

  void issue(const device::Operation& operation) override {
    CpuKernels::issue(operation);
    const auto* const gradient = operation.get_if<device::CrossEntropyGradient>();
    if (gradient == nullptr) return;
    const int step = 1 + seen_++ / small_micro_batches;
    if (bad_.contains(step)) gradient->logits.f32()[0] = std::numeric_limits<float>::quiet_NaN();
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
  // What was saved is good: the run goes on from it to its end.
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
