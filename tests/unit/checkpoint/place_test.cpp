// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/place.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/checkpoint/folders.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <barrier>
#include <fstream>
#include <thread>

using namespace trireme;
namespace fs = std::filesystem;

namespace {

fs::path make_run(const fs::path& path) {
  fs::create_directories(path);
  return path;
}
std::string refusal(const fs::path& run, const std::string& directory) {
  try {
    checkpoint::choose_checkpoints(run, directory);
  } catch (const base::Error& refused) {
    CHECK(refused.code() == base::ExitCode::usage);
    return refused.what();
  }
  FAIL("it was not refused");
  return {};
}

}  // namespace

TEST_CASE("a run keeps its checkpoints in itself, or where it has noted") {
  const tests::TemporaryFolder folder;
  const auto run = make_run(folder.path() / "run");
  CHECK(checkpoint::choose_checkpoints(run, "") == run / "checkpoints");
  CHECK(checkpoint::checkpoints_of_run(run) == run / "checkpoints");
  CHECK(fs::is_empty(run));

  const auto elsewhere = folder.path() / "some" / "where";
  CHECK(checkpoint::choose_checkpoints(run, elsewhere.string() + "/") == elsewhere);
  CHECK(checkpoint::checkpoints_of_run(run) == elsewhere);
  CHECK(checkpoint::find_checkpoints(run) == elsewhere);
  CHECK(checkpoint::run_of_checkpoints(elsewhere) == run);
  CHECK(checkpoint::choose_checkpoints(run, elsewhere.string()) == elsewhere);
  // Nothing is there yet: it may choose again.
  CHECK(checkpoint::choose_checkpoints(run, "") == run / "checkpoints");
  CHECK(checkpoint::checkpoints_of_run(run) == run / "checkpoints");
}

TEST_CASE("checkpoints of another run, and a move away from one's own, are refused") {
  const tests::TemporaryFolder folder;
  const auto first = make_run(folder.path() / "first");
  const auto second = make_run(folder.path() / "second");
  const auto shared = folder.path() / "shared";
  checkpoint::choose_checkpoints(first, shared.string());
  CHECK_THAT(refusal(second, shared.string()),
             Catch::Contains("has the checkpoints of another run, '" + first.string() + "'"));
  // A refused place leaves nothing behind.
  CHECK(checkpoint::checkpoints_of_run(second) == second / "checkpoints");
  CHECK(checkpoint::choose_checkpoints(second, "") == second / "checkpoints");
  fs::create_directories(shared / "step-000000001");
  CHECK_THAT(refusal(first, ""), Catch::Contains("this run's checkpoints are in '" +
                                                 shared.string() + "' (it would begin anew)"));
  CHECK(checkpoint::checkpoints_of_run(first) == shared);
  // A folder made anew under the same name is another run.
  fs::remove_all(first);
  make_run(first);
  CHECK_THAT(refusal(first, shared.string()), Catch::Contains("another run"));
  CHECK(checkpoint::run_id(first) != checkpoint::run_id(second));
  CHECK(checkpoint::run_id(first) == checkpoint::run_id(first));
}

TEST_CASE("the usual place is the usual place under each of its names") {
  const tests::TemporaryFolder folder;
  const auto run = make_run(folder.path() / "run");
  fs::create_directories(run / "checkpoints" / "step-000000001");
  const auto relative = fs::relative(run);
  const auto named = (run / "." / "checkpoints" / "").string();
  CHECK(checkpoint::choose_checkpoints(relative, named) == run / "checkpoints");
  CHECK(checkpoint::choose_checkpoints(relative, "") == relative / "checkpoints");
}

TEST_CASE("what looks like a URL and is none is no folder") {
  const tests::TemporaryFolder folder;
  const auto run = make_run(folder.path() / "run");
  for (const char* directory : {"gs://bucket/name", "S3://bucket/name", "s3:/bucket"}) {
    CHECK_THAT(refusal(run, directory), Catch::Contains("which is no URL that is known here"));
  }
  CHECK(fs::is_empty(run));
}

TEST_CASE("a copy of a run does not share its checkpoints, and a run that was moved takes them") {
  const tests::TemporaryFolder folder;
  const auto first = make_run(folder.path() / "first");
  const auto copy = folder.path() / "copy";
  const auto shared = folder.path() / "shared";
  checkpoint::choose_checkpoints(first, shared.string());
  fs::copy(first, copy, fs::copy_options::recursive);
  const auto said = refusal(copy, shared.string());
  CHECK_THAT(said, Catch::Contains("'" + first.string() + "'") &&
                       Catch::Contains("'" + copy.string() + "' is a copy"));
  CHECK(checkpoint::run_of_checkpoints(shared) == first);
  // Another name of the same folder is no copy.
  fs::create_directory_symlink(first, folder.path() / "link");
  checkpoint::choose_checkpoints(folder.path() / "link", shared.string());
  checkpoint::choose_checkpoints(first, shared.string());
  // The copy alone is left: it goes on with the steps.
  fs::remove_all(first);
  CHECK(checkpoint::choose_checkpoints(copy, shared.string()) == shared);
  CHECK(checkpoint::run_of_checkpoints(shared) == copy);
  // A copy that does not see its original may take over; the original then saves no more.
  checkpoint::check_claim(shared, copy);
  fs::copy(copy, first, fs::copy_options::recursive);
  CHECK_THROWS_WITH(checkpoint::check_claim(shared, first),
                    Catch::Contains("has been taken over by run '" + copy.string() + "'"));
}

TEST_CASE("of several runs that take a directory at once one has it, and the others are refused") {
  const tests::TemporaryFolder folder;
  constexpr std::size_t runs = 4;
  for (int round = 0; round < 20; ++round) {
    const auto shared = folder.path() / ("shared-" + std::to_string(round));
    std::vector<std::string> refusals(runs);
    {
      std::barrier begin(runs);
      std::vector<std::jthread> starts;
      for (std::size_t each = 0; each < runs; ++each) {
        const auto run = make_run(folder.path() / std::to_string(each));
        checkpoint::run_id(run);
        starts.emplace_back([&, run, each] {
          begin.arrive_and_wait();
          try {
            checkpoint::choose_checkpoints(run, shared.string());
          } catch (const base::Error& refused) {
            refusals[each] = refused.what();
          }
        });
      }
    }
    for (std::size_t each = 0; each < runs; ++each) {
      const auto run = folder.path() / std::to_string(each);
      INFO("round " << round << ", run " << each << ": " << refusals[each]);
      CHECK(refusals[each].empty() == (checkpoint::run_of_checkpoints(shared) == run));
      // The next round begins anew.
      fs::remove(run / "checkpoints.location");
    }
    // Only the claim is left.
    CHECK(std::distance(fs::directory_iterator(shared), fs::directory_iterator()) == 1);
  }
}

TEST_CASE("a check refuses what the choice would refuse, and writes nothing") {
  const tests::TemporaryFolder folder;
  const auto run = make_run(folder.path() / "run");
  const auto shared = make_run(folder.path() / "shared");
  const auto check = [&](const std::string& directory) {
    const auto status = checkpoint::check_checkpoints(run, directory);
    return status.ok() ? std::string() : status.failure().text;
  };
  CHECK(check("").empty());
  CHECK(check(shared.string()).empty());
  CHECK(check((folder.path() / "not" / "yet").string()).empty());
  CHECK(fs::is_empty(run));
  // A claim that a full disk has left empty is nobody's.
  std::ofstream(shared / "run").close();
  checkpoint::run_id(run);
  CHECK(check(shared.string()).empty());
  checkpoint::choose_checkpoints(run, shared.string());
  CHECK(check(shared.string()).empty());
  std::ofstream(folder.path() / "file").close();
  CHECK_THAT(check((folder.path() / "file" / "below").string()),
             Catch::Contains("checkpoint.directory = ") && Catch::Contains("Not a directory"));
}
