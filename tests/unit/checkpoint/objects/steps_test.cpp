// SPDX-License-Identifier: Apache-2.0
// Steps in an object store: saved again, killed while that is done, and beside what saves have
// left.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/checkpoint/retention.hpp"

#include "checkpoint/objects/objects.hpp"
#include "unit/checkpoint/small_steps.hpp"
#include "unit/store/memory_bucket.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace trireme;
using namespace trireme::tests;
using namespace std::chrono_literals;
using checkpoint::VerifyLevel;
namespace fs = std::filesystem;

namespace {

constexpr const char* step_5 = "ck/step-000000005";

fs::path place_in(const MemoryBucket& bucket) {
  return fs::path(bucket.url()) / "ck";
}
fs::path step_in(const MemoryBucket& bucket) {
  return fs::path(bucket.url()) / step_5;
}

/// The one value of all elements of a step whose every byte is as it was written.
float value_of(const fs::path& step) {
  const auto report = checkpoint::verify(step, VerifyLevel::full);
  INFO((report.good() ? "" : report.damages.front().text));
  REQUIRE(report.good());
  const Held all("w", {10}, device::DType::f32, layout::whole({10}));
  checkpoint::load_alone(step, base::value_or_throw(checkpoint::read_manifest(step)),
                         std::array{all.wanted()});
  return all.data.f32()[3];
}

/// Failure of a save of step 5.
std::string save_failure(const fs::path& checkpoints, float value,
                         const std::function<void()>& before_commit = nullptr) {
  std::string text;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held small("w", {10}, device::DType::f32, layout::whole({10}));
    std::fill_n(small.data.f32(), 10, value);
    try {
      checkpoint::save(request_of(checkpoints, 5, {&small}), world,
                       {.before_commit = before_commit});
    } catch (const base::Error& failed) {
      text = failed.what();
    }
  });
  return text;
}

void kill_save() {
  throw base::Error(base::ExitCode::checkpoint, "killed here");
}

MemoryBucket::Hook refuse(std::string beginning, int status) {
  return [beginning = std::move(beginning), status](const std::string& line, const auto& perform) {
    return line.starts_with(beginning) ? ScriptedServer::answer(status, "") : perform();
  };
}

std::size_t count_below(const MemoryBucket& bucket, const std::string& prefix) {
  std::size_t count = 0;
  for (const auto& name : bucket.names()) count += name.starts_with(prefix) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a step that is saved again stays what it was until the new manifest is there") {
  const MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  save_small(checkpoints, 5, 1.0F);
  CHECK(value_of(step_in(bucket)) == 1.0F);
  const auto before = bucket.names();
  // Looked at when all files of the second save are written and its manifest is not.
  CHECK_THAT(save_failure(checkpoints, 2.0F,
                          [&] {
                            CHECK(value_of(step_in(bucket)) == 1.0F);
                            CHECK(bucket.names().size() == 2 * before.size() - 1);
                            kill_save();
                          }),
             Catch::Contains("killed here"));
  CHECK(bucket.names() == before);
  save_small(checkpoints, 5, 3.0F);
  CHECK(value_of(step_in(bucket)) == 3.0F);
  CHECK(steps_in(checkpoints) == std::vector<std::int64_t>{5});
  checkpoint::prune(checkpoints, {});
  CHECK(value_of(step_in(bucket)) == 3.0F);
}

TEST_CASE("what a killed save has left in a good step goes after an hour, and the step stays") {
  MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  save_small(checkpoints, 5, 1.0F);
  const auto whole = bucket.names();
  // Its process could not even remove what it had written.
  bucket.set_hook(refuse("POST", 403));
  save_failure(checkpoints, 2.0F, kill_save);
  bucket.set_hook(nullptr);
  CHECK(bucket.names().size() > whole.size());
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).empty());
  CHECK(value_of(step_in(bucket)) == 1.0F);
  bucket.age(step_5, 2h);
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).size() == 1);
  CHECK(bucket.names() == whole);
  CHECK(value_of(step_in(bucket)) == 1.0F);
}

TEST_CASE("a step that was never committed goes once it is an hour old") {
  MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  bucket.set_hook(refuse("POST", 403));
  save_failure(checkpoints, 1.0F, kill_save);
  bucket.set_hook(nullptr);
  CHECK(steps_in(checkpoints).empty());
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).empty());
  CHECK(checkpoint::list_uncommitted(checkpoints).size() == 1);
  bucket.age(step_5, 2h);
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).size() == 1);
  CHECK(bucket.names().empty());
}

TEST_CASE("a manifest that the store does not show, or does not tell of, costs no step") {
  MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  save_small(checkpoints, 5, 1.0F);
  bucket.age(step_5, 2h);
  const auto whole = bucket.names();
  bucket.set_hook(refuse("HEAD", 404));
  CHECK(steps_in(checkpoints) == std::vector<std::int64_t>{5});
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).empty());
  CHECK_THAT(save_failure(checkpoints, 2.0F, kill_save), Catch::Contains("killed here"));
  CHECK(bucket.names() == whole);
  bucket.set_hook(refuse("HEAD", 403));
  CHECK_THROWS_AS(checkpoint::list(checkpoints), store::StoreError);
  CHECK_THROWS_AS(checkpoint::collect_garbage(checkpoints, 0s), store::StoreError);
  CHECK_THAT(save_failure(checkpoints, 2.0F), Catch::Contains("cannot examine"));
  CHECK(bucket.names() == whole);
  bucket.set_hook(nullptr);
  CHECK(value_of(step_in(bucket)) == 1.0F);
}

TEST_CASE("a manifest whose answer was an error counts if it is there") {
  MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  save_small(checkpoints, 5, 1.0F);
  bool is_done = false;
  bucket.set_hook([&](const std::string& line, const MemoryBucket::Perform& perform) {
    if (!line.starts_with("PUT") || line.find("manifest.json") == std::string::npos) {
      return perform();
    }
    if (is_done) perform();
    return ScriptedServer::answer(403, "");
  });
  CHECK_THAT(save_failure(checkpoints, 2.0F), Catch::Contains("cannot write"));
  CHECK(value_of(step_in(bucket)) == 1.0F);
  CHECK(count_below(bucket, step_5) == 3);
  is_done = true;
  CHECK(save_failure(checkpoints, 2.0F).empty());
  CHECK(value_of(step_in(bucket)) == 2.0F);
}

TEST_CASE("steps whose objects lie beside their manifest are read, replaced and removed") {
  const ScratchFolder scratch;
  const auto written = save_small(scratch.path(), 5, 1.0F);
  MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  for (const auto& file : fs::directory_iterator(written.path)) {
    std::ifstream stream(file.path(), std::ios::binary);
    bucket.put(base::format("{}/{}", step_5, file.path().filename().string()),
               {std::istreambuf_iterator<char>(stream), {}});
  }
  CHECK(steps_in(checkpoints) == std::vector<std::int64_t>{5});
  CHECK(value_of(step_in(bucket)) == 1.0F);
  CHECK(checkpoint::verify(step_in(bucket), VerifyLevel::quick).good());
  bucket.age(step_5, 2h);
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).empty());
  save_small(checkpoints, 5, 2.0F);
  CHECK(value_of(step_in(bucket)) == 2.0F);
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).empty());
  CHECK(count_below(bucket, step_5) == 5);
  bucket.age(step_5, 2h);
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).size() == 1);
  CHECK(count_below(bucket, step_5) == 3);
  CHECK(value_of(step_in(bucket)) == 2.0F);
  save_small(checkpoints, 6, 3.0F);
  checkpoint::prune(checkpoints, {});
  CHECK(steps_in(checkpoints) == std::vector<std::int64_t>{6});
  CHECK(count_below(bucket, step_5) == 0);
}

TEST_CASE("a copy of a step's objects in a folder is a step, whose files lie in none but its own") {
  MemoryBucket bucket;
  save_small(place_in(bucket), 5, 4.0F);
  const ScratchFolder scratch;
  const auto copy = scratch.path() / "step-000000005";
  for (const auto& name : bucket.names()) {
    const auto path = copy / name.substr(std::string_view(step_5).size() + 1);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bucket.text_of(name);
  }
  CHECK(value_of(copy) == 4.0F);
  CHECK(checkpoint::verify(copy, VerifyLevel::deep).good());
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(copy));
  CHECK(manifest.version == 3);
  fs::rename(copy / manifest.folder, scratch.path() / "elsewhere");
  fs::create_directory_symlink(scratch.path() / "elsewhere", copy / manifest.folder);
  CHECK_THAT(checkpoint::verify(copy, VerifyLevel::full).damages.at(0).text,
             Catch::Contains("is a symbolic link"));
}

TEST_CASE("what others have put into a step's folder stays") {
  MemoryBucket bucket;
  const auto checkpoints = place_in(bucket);
  save_small(checkpoints, 5, 1.0F);
  const auto mine = std::string(step_5) + "/exported/model.safetensors";
  bucket.put(mine, "values");
  bucket.age(step_5, 2h);
  const auto whole = bucket.names();
  CHECK(checkpoint::collect_garbage(checkpoints, 0s).empty());
  CHECK(bucket.names() == whole);
}
