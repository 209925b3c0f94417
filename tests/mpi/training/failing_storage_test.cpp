// SPDX-License-Identifier: Apache-2.0
// Storage that refuses one kind of call from some step on, as a disk does that has become
// read-only, is full, or dies: the nodes' own, and the run directory.
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;
namespace fs = std::filesystem;

namespace {

/// Calls of a save, in the order in which it makes the first of each.
const std::vector<std::string> calls{"make_folder", "open",   "allocate",
                                     "write",       "sync",   "close",
                                     "sync_folder", "rename", "remove_folder"};
const std::vector<int> error_numbers{EROFS, ENOSPC, EIO, EDQUOT};

/// Refuses every call of one name below a folder, once it has failed.
class FailingStorage final : public checkpoint::FileSystem {
 public:
  FailingStorage(fs::path below, std::string call, int error_number)
      : below_(std::move(below)), call_(std::move(call)), error_(error_number) {}

  void fail() { failed_ = true; }
  bool was_struck() const { return struck_; }

  int make_folder(const fs::path& path) override {
    return strikes("make_folder", path) ? -1 : FileSystem::make_folder(path);
  }
  int open(const fs::path& path, int flags, unsigned mode) override {
    return strikes("open", path) ? -1 : FileSystem::open(path, flags, mode);
  }
  int allocate(int descriptor, std::uint64_t bytes) override {
    return strikes("allocate", path_of(descriptor)) ? -1 : FileSystem::allocate(descriptor, bytes);
  }
  ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) override {
    if (strikes("write", path_of(descriptor))) return -1;
    return FileSystem::write(descriptor, bytes, offset);
  }
  int sync(int descriptor) override {
    const auto path = path_of(descriptor);
    const bool is_folder = fs::is_directory(path);
    return strikes(is_folder ? "sync_folder" : "sync", path) ? -1 : FileSystem::sync(descriptor);
  }
  int close(int descriptor) override {
    const auto path = path_of(descriptor);
    // Like the system's, a close that fails has closed all the same.
    const int result = FileSystem::close(descriptor);
    return strikes("close", path) ? -1 : result;
  }
  int rename(const fs::path& from, const fs::path& to) override {
    return strikes("rename", from) ? -1 : FileSystem::rename(from, to);
  }
  int remove_folder(const fs::path& path) override {
    return strikes("remove_folder", path) ? -1 : FileSystem::remove_folder(path);
  }

 private:
  static fs::path path_of(int descriptor) {
    return fs::read_symlink(base::format("/proc/self/fd/{}", descriptor));
  }
  bool strikes(const char* call, const fs::path& path) {
    if (!failed_ || call != call_ || !path.string().starts_with(below_.string())) return false;
    struck_ = true;
    errno = error_;
    return true;
  }

  fs::path below_;
  std::string call_;
  int error_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> struck_{false};
};

using Steps = std::vector<std::int64_t>;

/// Steps of a run, ascending, each of which a load could use.
Steps good_steps(const fs::path& run) {
  Steps steps;
  for (const auto& each : checkpoint::list(checkpoint::checkpoints_of_run(run))) {
    CHECK(checkpoint::verify(each.path, checkpoint::VerifyLevel::full).good());
    steps.insert(steps.begin(), each.step);
  }
  return steps;
}

/// Reasons of a run's saves that failed.
std::string reasons_of(const fs::path& run) {
  std::string reasons;
  std::ifstream metrics(run / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    if (line.find("\"event\":\"not saved\"") != std::string::npos) reasons += line + "\n";
  }
  return reasons;
}

/// A run whose storage fails after its third step, before whose save that of the first has ended.
RunEnd run_on(FailingStorage& storage, const config::Config& config) {
  train::StartOptions start{.start = train::Start::resume,
                            .limit = {},
                            .tool_version = {},
                            .on_step = {},
                            .files = storage};
  start.on_step = [&storage](const train::StepRecord& record) {
    if (record.step == 3) storage.fail();
  };
  return run_to_end(config, std::make_unique<CpuKernels>(), std::move(start));
}

/// Collective over the world: the first rank that is struck stops the save of the others.
bool struck_on_a_rank(const FailingStorage& storage) {
  std::int32_t struck = storage.was_struck() ? 1 : 0;
  const auto world = mpi().make_world();
  world->all_reduce(device::Tensor(&struck, device::DType::i32, {1}), comm::ReduceOp::max);
  return struck != 0;
}

}  // namespace

TEST_CASE("a node's storage that fails costs no step that is due in the run directory") {
  RunFolder folder;
  const bool is_first = mpi().world_rank() == base::Rank(0);
  for (const auto& call : calls) {
    // Files that are left there when a save has failed are the nodes' own affair.
    if (call == "remove_folder") continue;
    for (const auto error_number : error_numbers) {
      INFO(call << " fails: " << std::strerror(error_number));
      const auto run = folder.path() / base::format("node-{}-{}", call, error_number);
      const auto node = folder.path() / "nvme";
      FailingStorage storage(node, call, error_number);
      const auto end =
          run_on(storage, small_config(folder, run,
                                       {"checkpoint.every_steps=1", "checkpoint.keep_last=0",
                                        // Not one: these are no failures of the run directory.
                                        "checkpoint.failures_allowed=0",
                                        "checkpoint.local_directory=" + node.string()}));
      CHECK(end.code == ExitCode::done);
      CHECK(end.text == "");
      folder.wait();
      CHECK(struck_on_a_rank(storage));
      if (is_first) {
        CHECK(good_steps(run) == Steps{1, 2, 3, 4, 5, 6});
        CHECK_THAT(reasons_of(run), Catch::Contains(std::strerror(error_number)));
      }
      folder.wait();
    }
  }
}

TEST_CASE("steps on nodes ask checkpoint.directory for nothing") {
  RunFolder folder;
  const auto run = folder.path() / "run";
  const auto place = folder.path() / "elsewhere";
  const auto claim = place / "run";
  train::StartOptions start{.start = train::Start::resume,
                            .limit = {},
                            .tool_version = {},
                            .on_step = {},
                            .files = checkpoint::FileSystem::system()};
  // The file that says whose the checkpoints are is wrong while the saves of steps 2 and 3, at
  // least, begin and end: they must not look at it, for a store that is down would fail them
  // likewise.
  start.on_step = [&](const train::StepRecord& record) {
    if (mpi().world_rank() != base::Rank(0)) return;
    if (record.step == 2) {
      fs::rename(claim, folder.path() / "claim");
      std::ofstream(claim) << "another's\n";
    }
    if (record.step == 5) fs::rename(folder.path() / "claim", claim);
  };
  const auto end =
      run_to_end(small_config(folder, run,
                              {"checkpoint.every_steps=6", "checkpoint.directory=" + place.string(),
                               "checkpoint.local_directory=" + (folder.path() / "nvme").string(),
                               "checkpoint.local_every_steps=1"}),
                 std::make_unique<CpuKernels>(), std::move(start));
  CHECK(end.code == ExitCode::done);
  CHECK(end.text == "");
  folder.wait();
  if (mpi().world_rank() != base::Rank(0)) return;
  CHECK(reasons_of(run) == "");
  const auto saved = steps_of(run, "save");
  for (const std::int64_t step : {2, 3, 4}) {
    CHECK(std::find(saved.begin(), saved.end(), step) != saved.end());
  }
}

TEST_CASE("a run directory that fails ends the run after the saves that may, and keeps its steps") {
  RunFolder folder;
  const bool is_first = mpi().world_rank() == base::Rank(0);
  const std::string beside = GENERATE("true", "false");
  for (const auto& call : calls) {
    for (const auto error_number : error_numbers) {
      INFO(call << " fails: " << std::strerror(error_number) << ", asynchronous: " << beside);
      const auto run = folder.path() / base::format("run-{}-{}-{}", beside, call, error_number);
      FailingStorage storage(checkpoint::checkpoints_of_run(run), call, error_number);
      const auto end = run_on(
          storage, small_config(folder, run,
                                {"checkpoint.every_steps=1", "checkpoint.failures_allowed=1",
                                 "checkpoint.keep_last=0", "checkpoint.asynchronous=" + beside}));
      // Nothing is removed where no save has failed.
      const bool fails = call != "remove_folder";
      CHECK(end.code == (fails ? ExitCode::checkpoint : ExitCode::done));
      folder.wait();
      CHECK(struck_on_a_rank(storage) == fails);
      if (is_first) {
        const auto steps = good_steps(run);
        REQUIRE_FALSE(steps.empty());
        CHECK(steps.front() == 1);
        if (fails) {
          CHECK_THAT(end.text, Catch::Contains("2 saves in a row have failed") &&
                                   Catch::Contains(std::strerror(error_number)) &&
                                   Catch::Contains("older ones are untouched"));
        } else {
          CHECK(steps == Steps{1, 2, 3, 4, 5, 6});
        }
      }
      folder.wait();
    }
  }
}
