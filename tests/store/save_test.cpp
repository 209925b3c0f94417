// SPDX-License-Identifier: Apache-2.0
// Saves of steps to an object store: on the server of swift_server.py, or of hdfs_server.py.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/checkpoint/background_save.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/objects/objects.hpp"
#include "checkpoint/save/step_files.hpp"
#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <thread>

extern char** environ;

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

/// A place for the steps of one test, on the server that the tests run with.
fs::path new_place() {
  static const auto root = [] {
    const auto environment = base::Environment::capture(environ);
    store::use_environment(environment);
    const auto hdfs = environment.get("TRIREME_HDFS");
    return hdfs ? base::format("webhdfs://{}/saves", *hdfs) : std::string("s3://steps/saves");
  }();
  return fs::path(root) / base::random_id();
}

/// Several parts of an upload, and the rest of one.
constexpr std::int64_t large_elements = (std::int64_t{5} * (16 << 20) + (3 << 20)) / 4;

/// A value of one rank that takes several parts.
struct Large {
  Large() : held("w", {large_elements}, device::DType::f32, layout::whole({large_elements})) {}
  checkpoint::SaveRequest request(const fs::path& checkpoints, std::int64_t step) const {
    return request_of(checkpoints, step, {&held});
  }
  Held held;
};

std::string failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const base::Error& failed) {
    return failed.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a copy whose source is damaged ends with its name, whatever other parts wait") {
  const ScratchFolder scratch;
  const auto checkpoints = new_place();
  const Large large;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    checkpoint::save(large.request(scratch.path(), 1), world);
  });
  const auto step = scratch.path() / checkpoint::step_folder_name(1);
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(step));
  {
    // In the third part, so that others are read and wait for it.
    std::fstream file(step / manifest.files[0].name, std::ios::in | std::ios::out);
    file.seekp(2 * store::part_bytes + 12345);
    file.put('x');
  }
  const auto copy = checkpoints / "step-000000001";
  CHECK_THAT(failure_of([&] { checkpoint::copy_file({.threads = 4}, copy, step, manifest, 0); }),
             Catch::Contains("is damaged in bytes"));
  CHECK_FALSE(checkpoint::objects::size(copy / manifest.files[0].name));
}

TEST_CASE("a save that is given up at any moment ends, and leaves no step") {
  const auto checkpoints = new_place();
  const Large large;
  for (int delay = 0; delay < 6; ++delay) {
    run_ranks(1, [&](comm::ProcessGroup& world) {
      const checkpoint::BackgroundSave save(large.request(checkpoints, 1), nullptr, world,
                                            {.threads = 4});
      std::this_thread::sleep_for(std::chrono::milliseconds(30 * delay));
    });
  }
  CHECK(checkpoint::list(checkpoints).empty());
}

namespace {

/// Elements of the step that is saved twice.
const layout::Shape small_shape{10};

/// Saves step 5 of two ranks' or one rank's files, each element of this value.
void save_step_5(const fs::path& checkpoints, int ranks, float value,
                 const std::function<void()>& before_commit = nullptr) {
  run_ranks(ranks, [&](comm::ProcessGroup& world) {
    const auto box = [&](int rank) { return layout::Box{{rank * 10 / ranks}, {10 / ranks}}; };
    std::vector<OwnedBox> boxes;
    for (int rank = 0; rank < ranks; ++rank) {
      boxes.push_back(
          {"w", small_shape, device::DType::f32, box(rank), static_cast<std::size_t>(rank)});
    }
    const Held mine("w", small_shape, device::DType::f32, box(world.rank()));
    std::fill_n(mine.data.f32(), 10 / ranks, value);
    checkpoint::save({checkpoints, 5, 0, "test", {}, contents_of(boxes), {mine.data}}, world,
                     {.before_commit = before_commit});
  });
}

float value_of_step_5(const fs::path& checkpoints) {
  const auto step = checkpoints / "step-000000005";
  const auto report = checkpoint::verify(step, checkpoint::VerifyLevel::full);
  INFO((report.good() ? "" : report.damages.front().text));
  REQUIRE(report.good());
  const Held all("w", small_shape, device::DType::f32, layout::whole(small_shape));
  checkpoint::load_alone(step, base::value_or_throw(checkpoint::read_manifest(step)),
                         std::array{all.wanted()});
  return all.data.f32()[9];
}

}  // namespace

TEST_CASE("the process that is killed in the next one", "[.killed]") {
  new_place();
  save_step_5(std::getenv("TRIREME_TEST_PLACE"), 1, 2.0F, [] { ::_exit(9); });
}

TEST_CASE("a step whose second save is killed before its manifest is what it was") {
  const auto checkpoints = new_place();
  save_step_5(checkpoints, 2, 1.0F);
  const auto command =
      base::format("TRIREME_TEST_PLACE='{}' '{}' '[.killed]'", checkpoints.string(),
                   fs::read_symlink("/proc/self/exe").string());
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 9);
  CHECK(checkpoint::objects::folders_in(checkpoints / "step-000000005").size() == 2);
  CHECK(value_of_step_5(checkpoints) == 1.0F);
  // Files that the killed one has left are young.
  CHECK(checkpoint::collect_garbage(checkpoints, std::chrono::seconds{0}).empty());
  save_step_5(checkpoints, 1, 3.0F);
  CHECK(value_of_step_5(checkpoints) == 3.0F);
  CHECK(checkpoint::list(checkpoints).size() == 1);
  checkpoint::objects::remove_step(checkpoints / "step-000000005");
  CHECK(checkpoint::list(checkpoints).empty());
  CHECK(checkpoint::list_uncommitted(checkpoints).empty());
}
