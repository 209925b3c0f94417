// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/task_record.hpp"

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include <csignal>
#include <string>

using namespace trireme;
using record::OutOfMemory;
using record::TaskRecord;

namespace {

TaskRecord killed() {
  TaskRecord record;
  record.time_ms = 1'700'000'000'123;
  record.job = 12;
  record.step = 3;
  record.restart = 1;
  record.node = "n2";
  record.rank = 5;
  record.local_rank = 1;
  record.process = 4321;
  record.wait_status = SIGKILL;
  record.out_of_memory = OutOfMemory::likely;
  return record;
}

}  // namespace

TEST_CASE("a record is one line that reads back as it was") {
  const auto line = record::record_line(killed());
  CHECK(
      line ==
      R"({"time_ms":1700000000123,"job":12,"step":3,"restart":1,"node":"n2","rank":5,"local_rank":1,)"
      R"("process":4321,"wait_status":9,"exit_code":null,"signal":"SIGKILL",)"
      R"("out_of_memory":"likely"})");
  const auto parsed = record::parse_record(line);
  REQUIRE(parsed.ok());
  CHECK(*parsed == killed());
  CHECK(record::cause_text(*parsed) == "signal SIGKILL, likely out of memory");
  auto ended = killed();
  ended.wait_status = 75 << 8;
  ended.out_of_memory = OutOfMemory::no;
  CHECK(record::cause_text(*record::parse_record(record::record_line(ended))) == "exit code 75");
}

TEST_CASE("a node's name cannot break the line") {
  auto record = killed();
  record.node = "a\"b\n" + std::string(300, 'x');
  const auto line = record::record_line(record);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(record::parse_record(line).ok());
}

TEST_CASE("lines that nobody writes are refused") {
  const auto good = record::record_line(killed());
  for (const std::string& line : {std::string{}, std::string{"{}"}, std::string{"[]"}, good + " ",
                                  good.substr(0, 60), std::string(5000, ' ') + good}) {
    CHECK_FALSE(record::parse_record(line).ok());
  }
  auto lie = good;
  lie.replace(lie.find("SIGKILL"), 7, "SIGTERM");
  CHECK_FALSE(record::parse_record(lie).ok());
}

TEST_CASE("out of memory is told from an ordinary kill") {
  CHECK(record::memory_kills_in("low 0\noom 3\noom_kill 2\n") == 2);
  CHECK(record::memory_kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n") == 7);
  CHECK_FALSE(record::memory_kills_in("pgfault 12\n"));
  CHECK_FALSE(record::memory_kills_in("oom_kill x\n"));
  CHECK(record::detect_out_of_memory(SIGKILL, {0, 5}, {1, 6}) == OutOfMemory::yes);
  CHECK(record::detect_out_of_memory(SIGKILL, {{}, 5}, {{}, 6}) == OutOfMemory::likely);
  CHECK(record::detect_out_of_memory(SIGKILL, {{}, 5}, {1, 6}) == OutOfMemory::yes);
  CHECK(record::detect_out_of_memory(SIGKILL, {{}, 5}, {0, 6}) == OutOfMemory::likely);
  CHECK(record::detect_out_of_memory(SIGKILL, {0, 5}, {0, 5}) == OutOfMemory::no);
  CHECK(record::detect_out_of_memory(SIGTERM, {0, 5}, {1, 6}) == OutOfMemory::no);
  CHECK(record::detect_out_of_memory(9 << 8, {0, 5}, {1, 6}) == OutOfMemory::no);
}
