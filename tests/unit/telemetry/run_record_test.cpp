// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/run_record.hpp"

#include "trireme/base/format.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

using namespace trireme;
using telemetry::RecordReader;
using telemetry::RunRecord;

namespace {

std::string step_line(int step, double loss, int restart = 0) {
  return base::format("{{\"kind\":\"train\",\"step\":{},\"loss\":{},\"restart\":{}}}\n", step, loss,
                      restart);
}

std::string start_line(int step) {
  return base::format("{{\"kind\":\"event\",\"event\":\"start\",\"step\":{}}}\n", step);
}

/// A metrics.jsonl that grows.
class GrowingFile {
 public:
  std::filesystem::path path() const { return telemetry::record_of_run(folder_.path()); }
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  RunRecord read() const {
    auto record = telemetry::read_record(folder_.path());
    REQUIRE(record.ok());
    return std::move(record).value();
  }

 private:
  tests::TemporaryFolder folder_;
};

std::vector<std::int64_t> steps_of(const RunRecord& record) {
  std::vector<std::int64_t> steps;
  for (const auto& line : record.steps) steps.push_back(line.step);
  return steps;
}

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("every number of a step is read, and those that a line lacks are absent") {
  const GrowingFile file;
  file.append(
      R"({"kind":"train","step":7,"loss":1.5,"grad_norm":2.5,"learning_rate":3e-4,"tokens":640,)"
      R"("step_ms":12.5,"tokens_per_second":51200,"mfu":0.25,"exposed_comm_ms":1,"reduction_ms":1.5,"bubble_ms":2,)"
      R"("tensor_comm_ms":3,"data_ms":4,"optimizer_ms":5,"stage_bubble_ms":[2,0.5],"run":"a","restart":2,)"
      R"("time":"2026-11-21T09:37:34.250Z"})"
      "\n"
      R"({"kind":"train","step":8,"loss":null})"
      "\n");
  const auto record = file.read();
  REQUIRE(record.steps.size() == 2);
  const auto& full = record.steps[0];
  CHECK(full.step == 7);
  CHECK(full.restart == 2);
  CHECK(full.time_ms == 1795253854250);
  CHECK(full.loss == 1.5);
  CHECK(full.grad_norm == 2.5);
  CHECK(full.learning_rate == 3e-4);
  CHECK(full.tokens == 640);
  CHECK(full.step_ms == 12.5);
  CHECK(full.tokens_per_second == 51200);
  CHECK(full.mfu == 0.25);
  CHECK(full.exposed_comm_ms == 1);
  CHECK(full.reduction_ms == 1.5);
  CHECK(full.bubble_ms == 2);
  CHECK(full.tensor_comm_ms == 3);
  CHECK(full.data_ms == 4);
  CHECK(full.optimizer_ms == 5);
  CHECK(full.stage_bubble_ms == std::vector<float>{2, 0.5F});
  CHECK(record.run == "a");
  CHECK(record.last_time_ms == 1795253854250);
  const auto& older = record.steps[1];
  CHECK(std::isnan(older.loss));
  CHECK(std::isnan(older.step_ms));
  CHECK(older.time_ms == 0);
}

TEST_CASE("steps that a later start makes again count once, with its numbers") {
  const GrowingFile file;
  file.append(start_line(1));
  for (int step = 1; step <= 6; ++step) file.append(step_line(step, step));
  file.append(
      "{\"kind\":\"eval\",\"step\":2,\"loss\":9}\n{\"kind\":\"eval\",\"step\":6,\"loss\":8}\n");
  file.append("{\"kind\":\"save\",\"step\":4,\"bytes\":10,\"stall_ms\":1,\"write_ms\":2}\n");
  file.append(start_line(5) + step_line(5, 50, 1));
  const auto record = file.read();
  // Step 6 was made from a state that is no more.
  CHECK(steps_of(record) == Steps{1, 2, 3, 4, 5});
  CHECK(record.steps.back().loss == 50);
  CHECK(record.repeated_steps == 2);
  CHECK(record.start_count == 2);
  REQUIRE(record.evaluations.size() == 1);
  CHECK(record.evaluations.front().step == 2);
  REQUIRE(record.saves.size() == 1);
  CHECK(record.saves.front().write_ms == 2);
}

TEST_CASE("a start whose steps are still to come has taken back the later ones already") {
  const GrowingFile file;
  for (int step = 1; step <= 6; ++step) file.append(step_line(step, step));
  file.append(start_line(4));
  CHECK(steps_of(file.read()) == Steps{1, 2, 3});
}

TEST_CASE("a run that went back to an earlier step has lost those after it") {
  const GrowingFile file;
  for (int step = 1; step <= 6; ++step) file.append(step_line(step, step));
  file.append(
      "{\"kind\":\"event\",\"event\":\"went back\",\"step\":6,\"to\":4,\"why\":\"bits\"}\n");
  CHECK(steps_of(file.read()) == Steps{1, 2, 3, 4});
  file.append(step_line(5, 55));
  const auto record = file.read();
  CHECK(steps_of(record) == Steps{1, 2, 3, 4, 5});
  CHECK(record.steps.back().loss == 55);
  CHECK(record.last_event == "went back");
}

TEST_CASE("an older record without starts has one line a step, the last one") {
  const GrowingFile file;
  for (const int step : {1, 2, 3, 4, 3, 4}) file.append(step_line(step, step));
  const auto record = file.read();
  CHECK(steps_of(record) == Steps{1, 2, 3, 4});
  CHECK(record.repeated_steps == 2);
}

TEST_CASE("samples stand with their evaluation, and go back with it") {
  const GrowingFile file;
  file.append(step_line(5, 1));
  file.append("{\"kind\":\"eval\",\"step\":5,\"loss\":2,\"seconds\":3}\n");
  file.append(
      R"({"kind":"sample","step":5,"seed":1,"temperature":0.5,"seconds":0.25,"samples":[)"
      R"({"prompt":"a","text":" b","ending":"length"},{"prompt":"c","text":"","ending":"stop"},7]})"
      "\n");
  auto record = file.read();
  REQUIRE(record.samples.size() == 1);
  CHECK(record.samples[0].step == 5);
  CHECK(record.samples[0].temperature == 0.5);
  REQUIRE(record.samples[0].samples.size() == 2);
  CHECK(record.samples[0].samples[0].prompt == "a");
  CHECK(record.samples[0].samples[0].text == " b");
  CHECK(record.samples[0].samples[0].is_cut);
  CHECK_FALSE(record.samples[0].samples[1].is_cut);
  CHECK(record.evaluations[0].sample_seconds == 0.25);
  file.append(start_line(4));
  CHECK(file.read().samples.empty());
}

TEST_CASE("of very many samples some are kept, evenly, the newest always") {
  const GrowingFile file;
  std::string lines;
  for (int step = 1; step <= 1000; ++step) {
    lines += base::format("{{\"kind\":\"sample\",\"step\":{},\"samples\":[]}}\n", step);
  }
  file.append(lines);
  const auto record = file.read();
  REQUIRE(record.samples.size() <= RunRecord::most_samples);
  REQUIRE(record.samples.size() > RunRecord::most_samples / 2);
  CHECK(record.samples.back().step == 1000);
  CHECK(record.samples.front().step < 250);
}

TEST_CASE("gaps in the steps stay gaps") {
  const GrowingFile file;
  for (const int step : {1, 2, 5}) file.append(step_line(step, step));
  CHECK(steps_of(file.read()) == Steps{1, 2, 5});
}

TEST_CASE("torn lines and junk are passed over, and counted") {
  const GrowingFile file;
  file.append(step_line(1, 1) + "{\"kind\":\"train\",\"st\n" + "[1,2]\n\n" + "{\"step\":1}\n" +
              std::string(200, '[') + "\n" + step_line(2, 2));
  const auto record = file.read();
  CHECK(steps_of(record) == Steps{1, 2});
  CHECK(record.passed_over == 4);
}

TEST_CASE("numbers that no run counts to are taken as absent") {
  const GrowingFile file;
  file.append(
      "{\"kind\":\"event\",\"event\":\"went back\",\"to\":9223372036854775807}\n"
      "{\"kind\":\"train\",\"step\":-9223372036854775808,\"loss\":1}\n"
      "{\"kind\":\"train\",\"step\":1e300,\"loss\":\"nan\"}\n");
  const auto record = file.read();
  CHECK(steps_of(record) == Steps{0});
  CHECK(std::isnan(record.steps.front().loss));
}

TEST_CASE("a line is taken once its end stands, and each line once") {
  const GrowingFile file;
  RecordReader reader(file.path());
  REQUIRE(reader.advance().ok());
  CHECK(reader.record().steps.empty());
  const auto second = step_line(2, 2);
  file.append(step_line(1, 1) + second.substr(0, 10));
  REQUIRE(reader.advance().ok());
  CHECK(steps_of(reader.record()) == Steps{1});
  REQUIRE(reader.advance().ok());
  file.append(second.substr(10));
  REQUIRE(reader.advance().ok());
  CHECK(steps_of(reader.record()) == Steps{1, 2});
  CHECK(reader.record().passed_over == 0);
  CHECK(reader.record().repeated_steps == 0);
}

TEST_CASE("another file in the place of a record is read from its begin") {
  const GrowingFile file;
  RecordReader reader(file.path());
  file.append(step_line(1, 1) + step_line(2, 2) + "{\"half");
  REQUIRE(reader.advance().ok());
  std::filesystem::resize_file(file.path(), 0);
  file.append(step_line(9, 9));
  REQUIRE(reader.advance().ok());
  CHECK(steps_of(reader.record()) == Steps{9});
  CHECK(reader.record().repeated_steps == 0);
}

TEST_CASE("steps that a reader is done with take no memory") {
  const GrowingFile file;
  std::string text;
  for (int step = 1; step <= 20'000; ++step) text += step_line(step, step);
  file.append(text);
  RecordReader reader(file.path());
  REQUIRE(reader.advance().ok());
  CHECK(reader.record().steps.size() == 20'000);
  reader.forget_steps(15'000);
  REQUIRE(reader.record().steps.size() == 5'000);
  CHECK(reader.record().steps.front().step == 15'001);
  // The last ones stay, for what is yet to come to them.
  reader.forget_steps(20'000);
  CHECK(reader.record().steps.size() == RunRecord::kept_steps);
  CHECK(reader.record().steps.back().step == 20'000);
  // Those that a later start makes again are steps of the record, and are forgotten likewise.
  file.append(start_line(101) + step_line(101, 7, 1));
  REQUIRE(reader.advance().ok());
  CHECK(steps_of(reader.record()) == Steps{101});
}

TEST_CASE("the end of a record says where the run is") {
  const GrowingFile file;
  for (int step = 1; step <= 5000; ++step) file.append(step_line(step, step));
  RecordReader reader(file.path(), RecordReader::From::end);
  REQUIRE(reader.advance().ok());
  const auto& steps = reader.record().steps;
  REQUIRE_FALSE(steps.empty());
  CHECK(steps.back().step == 5000);
  CHECK(steps.size() < 500);
  CHECK(reader.record().passed_over == 0);
  file.append(step_line(5001, 1));
  REQUIRE(reader.advance().ok());
  CHECK(steps.back().step == 5001);
}

TEST_CASE("the end of a record reaches back to a step, and no further than some mebibytes") {
  for (const auto kib : std::initializer_list<std::size_t>{15, 17, 100, 3000, 5000}) {
    CAPTURE(kib);
    const GrowingFile file;
    for (int step = 1; step <= 5000; ++step) file.append(step_line(step, step));
    std::string lines;
    for (std::size_t size = 0; size < kib; size += 5) {
      lines += R"({"kind":"sample","step":5000,"samples":[{"text":")" + std::string(5 << 10, 'x') +
               "\"}]}\n";
    }
    file.append(lines);
    RecordReader reader(file.path(), RecordReader::From::end);
    REQUIRE(reader.advance().ok());
    CHECK(reader.record().step == 5000);
    CHECK(reader.record().steps.empty() == (kib == 5000));
    file.append(step_line(5001, 1));
    REQUIRE(reader.advance().ok());
    CHECK(reader.record().steps.back().step == 5001);
    CHECK(reader.record().passed_over == 0);
  }
}

TEST_CASE("lines longer than any of ours take no memory") {
  const GrowingFile file;
  file.append(step_line(1, 1) + "{\"kind\":\"train\",\"step\":2,\"text\":\"" +
              std::string(3 << 20, 'x') + "\"}\n" + step_line(3, 3));
  const auto record = file.read();
  CHECK(steps_of(record) == Steps{1, 3});
  CHECK(record.passed_over == 1);
}

TEST_CASE("events are kept up to a limit, and the last one is known beyond it") {
  const GrowingFile file;
  std::string lines;
  for (std::size_t count = 0; count < RunRecord::most_events + 5; ++count) {
    lines += "{\"kind\":\"event\",\"event\":\"skipped\",\"step\":1}\n";
  }
  file.append(lines + "{\"kind\":\"event\",\"event\":\"done\",\"step\":1}\n");
  const auto record = file.read();
  CHECK(record.events.size() == RunRecord::most_events);
  CHECK(record.dropped_events == 6);
  CHECK(record.last_event == "done");
  // Which layout and machine the steps have says the newest start.
  file.append(start_line(8));
  CHECK(file.read().events.size() == RunRecord::most_events);
  CHECK(file.read().events.back().step == 8);
}

TEST_CASE("a record that is no file of lines is a failure with its path") {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(telemetry::record_of_run(folder.path()));
  const auto record = telemetry::read_record(folder.path());
  REQUIRE_FALSE(record.ok());
  CHECK_THAT(record.failure().text, Catch::Contains("metrics.jsonl' is no regular file"));
}
