// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/node_tier.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/record/run_lock.hpp"

#include "unit/apps/checkpoint_runs.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <future>
#include <sstream>

using namespace trireme::tests;
namespace base = trireme::base;
namespace checkpoint = trireme::checkpoint;
namespace layout = trireme::layout;

namespace {

/// The block of the first payload, in which all the tensors lie.
void flip_payload(const std::filesystem::path& file) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(1 << 20);
  stream.put('\x7F');
}

void flip_last_byte(const std::filesystem::path& file) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(-1, std::ios::end);
  stream.put('\x7F');
}

}  // namespace

TEST_CASE("checkpoint inspect shows tensors and state of a run's newest step") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 2).string();
  const auto text = run_trireme({"checkpoint", "inspect", run});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "step 2, 1000 tokens, written by trireme test"));
  CHECK(contains(text.out, "model/w f32    [10, 100]"));
  const auto end = run_trireme({"checkpoint", "inspect", run, "--json"});
  const auto json = base::parse_json(end.out, "stdout");
  REQUIRE(json.ok());
  CHECK((*json)["step"] == 2);
  CHECK((*json)["state"]["seed"] == 7);
  CHECK((*json)["tensors"][0]["bytes"] == 4000);
}

TEST_CASE("checkpoint verify names file, bytes and tensor of what is bad, and ends with 6") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 2);
  const auto good = run_trireme({"checkpoint", "verify", run.string()});
  CHECK(good.exit_code == 0);
  CHECK(contains(good.out, "step-000000002: good"));
  CHECK(contains(good.out, "step-000000001: good"));
  const auto step = run / "checkpoints" / "step-000000002";
  flip_last_byte(step / "shard-00000.h5");
  const auto bad = run_trireme({"checkpoint", "verify", step.string(), "--json"});
  CHECK(bad.exit_code == 6);
  const auto json = base::parse_json(bad.out, "stdout");
  REQUIRE(json.ok());
  CHECK((*json)["good"] == false);
  CHECK((*json)["damages"][0]["file"] == "shard-00000.h5");
  const auto list = run_trireme({"checkpoint", "list", run.string()});
  CHECK(list.exit_code == 0);
  CHECK(contains(list.out, "step-000000002"));
}

TEST_CASE("a step that a run removes while its steps are verified is passed over") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 3, 100);
  const auto steps = run / "checkpoints";
  // The newest is told first, in more words than the pipe holds: that waits for a reader when all
  // steps are listed and none of the others was opened.
  flip_payload(steps / "step-000000003" / "shard-00000.h5");
  const auto path = folder.path() / "said";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const auto said = base::value_or_throw(base::open_file(path, O_RDONLY | O_NONBLOCK));
  constexpr int pipe_bytes = 4096;
  REQUIRE(::fcntl(said.get(), F_SETPIPE_SZ, pipe_bytes) == pipe_bytes);
  auto start = trireme_start({"checkpoint", "verify", "--json", run.string()});
  start.out_to = path.string();
  auto end = std::async(std::launch::async, [&] { return run_program(start); });
  pollfd words{said.get(), POLLIN, 0};
  REQUIRE(::poll(&words, 1, 30'000) == 1);
  std::filesystem::rename(steps / "step-000000002", steps / "step-000000002.tmp-0123");
  ::fcntl(said.get(), F_SETFL, 0);
  std::string text;
  std::array<char, pipe_bytes> part{};
  for (;;) {
    const auto count = ::read(said.get(), part.data(), part.size());
    if (count <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  CHECK(end.get().exit_code == 6);
  REQUIRE(text.size() > 2 * pipe_bytes);
  CHECK(contains(text, "step-000000003"));
  CHECK_FALSE(contains(text, "step-000000002"));
  CHECK(contains(text, "step-000000001"));
}

TEST_CASE("checkpoint prune keeps the newest good steps") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 4);
  const auto checkpoints = run / "checkpoints";
  std::filesystem::resize_file(checkpoints / "step-000000004" / "shard-00000.h5", 10);
  const auto end = run_trireme({"checkpoint", "prune", run.string(), "--keep-last", "2"});
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "removed " + (checkpoints / "step-000000001").string()));
  CHECK_FALSE(std::filesystem::exists(checkpoints / "step-000000001"));
  // The damaged one does not count, and is left for whoever may want to save it.
  for (const char* kept : {"step-000000002", "step-000000003", "step-000000004"}) {
    CHECK(std::filesystem::exists(checkpoints / kept));
  }
}

TEST_CASE("a copy of a run removes neither steps nor tags of the original") {
  const TemporaryFolder folder;
  const auto original = folder.path() / "original";
  const auto copy = folder.path() / "copy";
  const auto shared = folder.path() / "shared";
  std::filesystem::create_directories(original);
  checkpoint::choose_checkpoints(original, shared.string());
  const TemporaryFolder made;
  std::filesystem::copy(run_with_steps(made, 3) / "checkpoints", shared,
                        std::filesystem::copy_options::recursive);
  std::filesystem::copy(original, copy, std::filesystem::copy_options::recursive);
  const auto tagged = run_trireme({"checkpoint", "tag", original.string(), "mine"});
  REQUIRE(tagged.exit_code == 0);
  const std::vector<std::vector<std::string>> removals{
      {"checkpoint", "prune", copy.string(), "--keep-last", "1"},
      {"checkpoint", "tag", copy.string(), "mine", "--remove"},
      {"checkpoint", "tag", copy.string(), "mine", "--move"}};
  for (const auto& words : removals) {
    const auto refused = run_trireme(words);
    INFO(refused.err);
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err, "has the checkpoints of run '" + original.string() + "'"));
    CHECK(contains(refused.err, "trireme train --resume " + copy.string()));
  }
  CHECK(checkpoint::list(shared).size() == 3);
  CHECK(checkpoint::tags(shared).size() == 1);
  // Copies on its nodes go by the run's path.
  const auto local = folder.path() / "nvme";
  const auto left = checkpoint::open_node_folder(local, original, "id", true);
  const auto forgotten =
      run_trireme({"checkpoint", "forget-nodes", copy.string(), "--local", local.string()});
  CHECK(forgotten.exit_code == 0);
  CHECK(std::filesystem::exists(left));
  // The run itself may, under each of its names, and so may its directory's.
  std::filesystem::create_directory_symlink(original, folder.path() / "link");
  CHECK(run_trireme({"checkpoint", "prune", (folder.path() / "link").string(), "--keep-last", "2"})
            .exit_code == 0);
  CHECK(run_trireme({"checkpoint", "prune", shared.string(), "--keep-last", "1"}).exit_code == 0);
  CHECK(checkpoint::list(shared).size() == 1);
}

TEST_CASE("a copied run prunes its own steps under its own lock") {
  const TemporaryFolder folder;
  const auto original = folder.path() / "original";
  const auto copy = folder.path() / "copy";
  std::filesystem::create_directories(original);
  // A claim in the run's own folder, which a copy has, too.
  checkpoint::choose_checkpoints(original, (original / "checkpoints").string());
  const TemporaryFolder made;
  std::filesystem::copy(run_with_steps(made, 3) / "checkpoints", original / "checkpoints",
                        std::filesystem::copy_options::recursive);
  std::filesystem::copy(original, copy, std::filesystem::copy_options::recursive);
  const auto checkpoints = (copy / "checkpoints").string();
  {
    const auto lock = base::value_or_throw(trireme::record::RunLock::take(copy, ""));
    const auto refused = run_trireme({"checkpoint", "prune", checkpoints, "--keep-last", "1"});
    CHECK(refused.exit_code == 3);
  }
  CHECK(run_trireme({"checkpoint", "prune", checkpoints, "--keep-last", "2"}).exit_code == 0);
  CHECK(run_trireme({"checkpoint", "prune", copy.string(), "--keep-last", "1"}).exit_code == 0);
  CHECK(checkpoint::list(copy / "checkpoints").size() == 1);
  CHECK(checkpoint::list(original / "checkpoints").size() == 3);
}

TEST_CASE(
    "checkpoint forget-nodes removes what a run has on this node, and of no run that trains") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 1);
  const auto local = folder.path() / "nvme";
  CHECK(run_trireme({"checkpoint", "forget-nodes", run.string()}).exit_code == 2);
  folder.write("config.resolved.conf",
               "[checkpoint]\nlocal_directory = \"" + local.string() + "\"  # run.conf:7\n");
  const auto nothing = run_trireme({"checkpoint", "forget-nodes", run.string()});
  CHECK(nothing.exit_code == 0);
  CHECK(nothing.out.empty());
  const auto left = checkpoint::open_node_folder(local, run, "id", true);
  folder.write(left.lexically_relative(folder.path()) / "step-000000005" / "shard", "x");
  {
    const auto lock = base::value_or_throw(trireme::record::RunLock::take(run, ""));
    const auto refused = run_trireme({"checkpoint", "forget-nodes", run.string()});
    CHECK(refused.exit_code == 3);
    CHECK(contains(refused.err, "is being trained by process"));
    CHECK(std::filesystem::exists(left));
  }
  const auto end = run_trireme({"checkpoint", "forget-nodes", run.string()});
  CHECK(end.exit_code == 0);
  CHECK(end.out == "removed " + left.string() + "\n");
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(run / "checkpoints" / "step-000000001"));
}

TEST_CASE("checkpoint verify looks at values, and at signatures, when asked to") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 1).string();
  CHECK(run_trireme({"checkpoint", "verify", run, "--deep"}).exit_code == 0);
  CHECK(run_trireme({"checkpoint", "verify", run, "--deep", "--quick"}).exit_code == 2);
  const auto key = folder.path() / "key";
  std::ofstream(key) << "sixteen bytes and more";
  ::chmod(key.c_str(), 0600);
  const auto end = run_trireme({"checkpoint", "verify", run, "--key-file", key.string()});
  CHECK(end.exit_code == 6);
  CHECK(contains(end.out, "not signed"));
}

TEST_CASE("checkpoint commands say what they need when there is nothing") {
  const TemporaryFolder folder;
  for (const std::string command : {"inspect", "verify", "list"}) {
    const auto end = run_trireme({"checkpoint", command, (folder.path() / "none").string()});
    CHECK(end.exit_code == 6);
    CHECK(contains(end.err, "needed"));
  }
  CHECK(run_trireme({"checkpoint", "verify", folder.path().string()}).exit_code == 6);
  const auto empty = run_trireme({"checkpoint", "list", folder.path().string()});
  CHECK(empty.exit_code == 0);
  CHECK(empty.out.empty());
  CHECK(contains(empty.err, "there is no step in '" + folder.path().string()));
  CHECK(run_trireme({"checkpoint", "prune", folder.path().string()}).exit_code == 2);
}
