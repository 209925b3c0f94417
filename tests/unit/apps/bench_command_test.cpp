// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <sstream>

using namespace trireme::tests;
using trireme::base::Json;

namespace {

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

ProgramEnd run_on_two_ranks(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"2", TRIREME_EXECUTABLE});
  return run_program(
      {.program = TRIREME_SOURCE_DIR "/tests/support/mpirun", .arguments = std::move(arguments)});
}

void check_rate(const Json& line) {
  const double seconds = line["seconds"];
  CHECK(seconds > 0);
  CHECK(line["bytes_per_second"].get<double>() ==
        Approx(line["bytes"].get<double>() / seconds).epsilon(1e-9));
}

}  // namespace

TEST_CASE("bench comm prints one JSON object for each result of two ranks") {
  const auto end = run_on_two_ranks({"bench", "comm", "--collective", "all_reduce,reduce_scatter",
                                     "--bytes", "64KiB,1MB", "--backend", "shared,mpi,library",
                                     "--repeats", "2", "--json"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto lines = json_lines(end.out);
  REQUIRE(lines.size() == 12);
  std::set<std::string> seen;
  for (const auto& line : lines) {
    CHECK(keys_of(line) == std::set<std::string>{"collective", "backend", "ranks", "bytes",
                                                 "seconds", "bytes_per_second",
                                                 "bus_bytes_per_second", "group"});
    CHECK(line["ranks"] == 2);
    CHECK(line["group"] == "world");
    check_rate(line);
    // Factors of two ranks: 2 (n - 1) / n is 1, (n - 1) / n a half.
    const double factor = line["collective"] == "all_reduce" ? 1 : 0.5;
    CHECK(line["bus_bytes_per_second"].get<double>() ==
          Approx(factor * line["bytes_per_second"].get<double>()));
    seen.insert(line["collective"].get<std::string>() + " " + line["backend"].get<std::string>() +
                " " + std::to_string(line["bytes"].get<int>()));
  }
  CHECK(seen.size() == 12);
  CHECK(seen.contains("reduce_scatter library 1000000"));
  CHECK(seen.contains("all_reduce shared 65536"));
}

TEST_CASE("bench comm measures the groups of one axis") {
  const auto end = run_on_two_ranks({"bench", "comm", "--group", "tp", "--tensor-parallel", "2",
                                     "--bytes", "4KiB", "--repeats", "1", "--json"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto lines = json_lines(end.out);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["group"] == "tp");
  CHECK(lines[0]["ranks"] == 2);
  CHECK(run_on_two_ranks({"bench", "comm", "--group", "dp", "--tensor", "3"}).exit_code == 3);
}

TEST_CASE("bench comm chooses shared memory by itself on one node") {
  const auto end = run_on_two_ranks({"bench", "comm", "--collective", "send_receive", "--bytes",
                                     "4KiB", "--repeats", "1", "--json"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto lines = json_lines(end.out);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["backend"] == "shared");
}

TEST_CASE("bench comm has a table for people and says local for one rank") {
  const auto end = run_trireme({"bench", "comm", "--bytes", "4KiB", "--repeats", "1"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(contains(end.out, "algbw          busbw"));
  CHECK(contains(end.out, "all_reduce      local    world      1    4.00 KiB"));
}

TEST_CASE("bench comm refuses what it cannot measure before MPI starts") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--collective", "all_reduse"},
       "unknown collective 'all_reduse'; did you mean 'all_reduce'?"},
      {{"--backend", "shmem"}, "unknown backend 'shmem'"},
      {{"--backend", "shmem"}, "on GPUs nccl, staged"},
      {{"--group", "rows"}, "rows"},
      {{"--bytes", "16M"}, "write 16MB or 16MiB"},
      {{"--bytes", "0"}, "one number has 4 bytes"},
      {{"--bytes", "100TiB"}, "is too much"},
      {{"--precision", "fp8"}, "fp8"},
  };
  for (const auto& [arguments, text] : mistakes) {
    std::vector<std::string> all{"bench", "comm"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto end = run_trireme(all);
    INFO(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.out.empty());
    CHECK(contains(end.err, text));
  }
}

TEST_CASE("bench io writes and reads and leaves nothing behind") {
  const TemporaryFolder folder;
  for (const int ranks : {1, 2}) {
    const std::vector<std::string> arguments{"bench",   "io",   "--path",    folder.path().string(),
                                             "--bytes", "4MiB", "--repeats", "1",
                                             "--json"};
    const auto end = ranks == 1 ? run_trireme(arguments) : run_on_two_ranks(arguments);
    INFO(end.err);
    REQUIRE(end.exit_code == 0);
    const auto lines = json_lines(end.out);
    // Memory file systems take no direct access.
    CHECK((lines.size() == 4 || lines.size() == 2));
    for (const auto& line : lines) {
      CHECK(keys_of(line) == std::set<std::string>{"operation", "access", "ranks", "bytes",
                                                   "seconds", "bytes_per_second"});
      CHECK(line["ranks"] == ranks);
      CHECK(line["bytes"] == 4 << 20);
      check_rate(line);
    }
    REQUIRE_FALSE(lines.empty());
    CHECK(lines[0]["operation"] == "write");
    CHECK(lines[1]["operation"] == "read");
    CHECK(std::filesystem::is_empty(folder.path()));
  }
}

TEST_CASE("bench io refuses a folder that is not there and more than the disk holds") {
  const TemporaryFolder folder;
  const auto missing = run_trireme({"bench", "io", "--path", "/nonexistent/folder"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "is not a folder"));
  const auto large =
      run_trireme({"bench", "io", "--path", folder.path().string(), "--bytes", "8000PiB"});
  CHECK(large.exit_code == 2);
  CHECK(contains(large.err, "does not fit into"));
}

TEST_CASE("bench gemm on a GPU says so where there is none") {
  const auto end =
      run_trireme({"bench", "gemm", "--backend", "cuda", "--shape", "8x8x8", "--repeats", "1"});
  INFO(end.err);
  if (end.exit_code == 0) return;  // There is one.
  CHECK(end.exit_code == 4);
  CHECK(end.out.empty());
  CHECK(contains(end.err, "numerics.backend = cuda"));
}
