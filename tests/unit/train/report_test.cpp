// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/report.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/log.hpp"
#include "trireme/inference/evaluate.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <limits>

using namespace trireme;
using train::MemoryRecord;

namespace {

std::vector<base::Json> lines_of(const std::filesystem::path& folder) {
  std::vector<base::Json> lines;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    lines.push_back(base::value_or_throw(base::parse_json(line, "metrics.jsonl")));
  }
  return lines;
}

train::StepRecord record_of(std::int64_t step, std::int64_t tokens, double seconds) {
  train::StepRecord record;
  record.step = step;
  record.step_tokens = tokens;
  record.step_ms = seconds * 1e3;
  record.loss = 0;
  return record;
}

}  // namespace

TEST_CASE("speed and MFU are tokens and operations by time, and a beaten peak is raised") {
  const tests::TemporaryFolder folder;
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.run = "a run";
  settings.steps = 9;
  settings.flops_per_token = 50;
  settings.peak_flops = 200'000;
  settings.peak_may_be_beaten = true;
  settings.speaks = true;
  train::Report report(settings);
  report.step(record_of(1, 1000, 0.5));  // 100,000 FLOP/s
  CHECK_FALSE(report.take_beaten_peak());
  report.step(record_of(2, 1000, 0.125));  // 400,000
  CHECK(report.take_beaten_peak());
  CHECK_FALSE(report.take_beaten_peak());
  report.step(record_of(3, 1000, 0.5));
  report.raise_peak(3, 500'000);
  report.step(record_of(4, 1000, 0.5));
  report.raise_peak(4, 100);  // less than what a step has reached
  report.step(record_of(5, 1000, 0.5));
  const auto lines = lines_of(folder.path());
  REQUIRE(lines.size() == 7);
  CHECK(lines[0].at("tokens_per_second") == 2000);
  CHECK(lines[0].at("mfu") == 0.5);
  CHECK(lines[1].at("tokens_per_second") == 8000);
  CHECK(lines[1].at("mfu") == 1);
  CHECK(lines[2].at("mfu") == 0.25);
  CHECK(lines[3].at("event") == "peak");
  CHECK(lines[3].at("peak_flops") == 500'000);
  CHECK(lines[4].at("mfu") == 0.2);
  CHECK(lines[5].at("peak_flops") == 500'000);
  CHECK(lines[6].at("mfu") == 0.2);
}

TEST_CASE("arenas are told by purpose, as planned and as used") {
  const tests::TemporaryFolder folder;
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.speaks = true;
  train::Report report(settings);
  report.arenas(3, {10, 20, 30, 40, 50, 60, 70}, {1, 2, 3, 4, 5, 6, 7});
  const auto lines = lines_of(folder.path());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("event") == "arenas");
  CHECK(lines[0].at("step") == 3);
  CHECK(lines[0].at("planned_bytes").at("parameters") == 10);
  CHECK(lines[0].at("planned_bytes").at("batch") == 70);
  CHECK(lines[0].at("used_bytes").at("optimizer") == 3);
}

TEST_CASE("waits and the time left are told as they were counted") {
  const tests::TemporaryFolder folder;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  auto log = before;
  log.file = (folder.path() / "log.txt").string();
  base::log::configure(log);
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.run = "a run";
  settings.steps = 40;
  settings.log_every = 10;
  settings.flops_per_token = 50;
  settings.peak_flops = 1e6;
  settings.speaks = true;
  train::Report report(settings);
  for (const std::int64_t step : {9, 10, 40}) {
    auto record = record_of(step, 1000, 2.5);
    record.exposed_comm_ms = 250;
    record.bubble_ms = 500;
    record.data_ms = 125;
    if (step == 9) {
      record.tensor_comm_ms = 750;
      record.parameters_ms = 375;
      record.stage_bubble_seconds = {0.5, 1};
    } else {
      record.stage_bubble_seconds = {0.5};
    }
    report.step(record);
  }
  base::log::configure(before);
  const auto lines = lines_of(folder.path());
  REQUIRE(lines.size() == 3);
  for (const auto& line : lines) {
    CHECK(line.at("step_ms") == 2500);
    CHECK(line.at("exposed_comm_ms") == 250);
    CHECK(line.at("bubble_ms") == 500);
    CHECK(line.at("data_ms") == 125);
  }
  CHECK(lines[0].at("tensor_comm_ms") == 750);
  CHECK(lines[0].at("parameters_ms") == 375);
  CHECK(lines[0].at("stage_bubble_ms") == base::Json::parse("[500, 1000]"));
  // Lines of a device and of a run of one stage.
  CHECK_FALSE(lines[1].contains("tensor_comm_ms"));
  CHECK_FALSE(lines[1].contains("parameters_ms"));
  CHECK_FALSE(lines[1].contains("stage_bubble_ms"));
  const auto said = base::value_or_throw(base::read_text_file(log.file));
  CHECK(said.find("step      9/40") == std::string::npos);
  // Thirty steps of 2.5 s.
  CHECK(said.find("step     10/40  loss 0.0000  400 tok/s  mfu 2.0 %  left 1 min 15 s") !=
        std::string::npos);
  CHECK(said.find("left 0 s") != std::string::npos);
}

TEST_CASE("a peak that somebody has promised stays, and measuring again has an end") {
  const tests::TemporaryFolder folder;
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.run = "a run";
  settings.steps = 99;
  settings.flops_per_token = 50;
  settings.peak_flops = 10'000;
  settings.speaks = true;
  {
    train::Report report(settings);
    report.step(record_of(1, 1000, 0.5));
    CHECK_FALSE(report.take_beaten_peak());
  }
  CHECK(lines_of(folder.path()).back().at("mfu") == 10);
  settings.peak_may_be_beaten = true;
  train::Report report(settings);
  int measurements = 0;
  for (int step = 1; step < 20; ++step) {
    report.step(record_of(step, 1000, 0.5 / step));
    measurements += report.take_beaten_peak() ? 1 : 0;
  }
  CHECK(measurements == 3);
  CHECK(lines_of(folder.path()).back().at("mfu") == 1);
}

TEST_CASE("what a GPU's memory holds is told part by part, and what is left is nobody's plan") {
  MemoryRecord record{.device = "GPU 0000:1b:00.0",
                      .arenas = 6000,
                      .libraries = {{"cuBLASLt", 300}, {"cuDNN", 70}},
                      .graphs = 400,
                      .taken = 7000};
  CHECK(record.rest() == 7000 - 6000 - 300 - 70 - 400);
  // Another figure than the GPU's own may be larger.
  record.taken = 6500;
  CHECK(record.rest() == 0);

  const tests::TemporaryFolder folder;
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.run = "a run";
  settings.speaks = true;
  record.taken = 7000;
  train::Report(settings).memory(3, record);
  std::ifstream file(folder.path() / "metrics.jsonl");
  std::string line;
  REQUIRE(std::getline(file, line));
  const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
  CHECK(json.at("event") == "memory");
  CHECK(json.at("step") == 3);
  CHECK(json.at("arena_bytes") == 6000);
  CHECK(json.at("library_bytes") == base::Json{{"cuBLASLt", 300}, {"cuDNN", 70}});
  CHECK(json.at("graph_bytes") == 400);
  CHECK(json.at("taken_bytes") == 7000);
  CHECK_FALSE(std::getline(file, line));
}

TEST_CASE("what keeps ranks from their cores is recorded each time, and warned of once it lasts") {
  const tests::TemporaryFolder folder;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  auto to_file = before;
  to_file.file = (folder.path() / "log").string();
  base::log::configure(to_file);
  {
    train::Report::Settings settings;
    settings.directory = folder.path();
    settings.speaks = true;
    train::Report report(settings);
    telemetry::CoresUse busy{.node = "n1", .rank_count = 2, .core_count = 4, .seconds = 30};
    busy.others = 0.5;
    auto idle = busy;
    idle.idle = 0.4;
    const auto warnings = [&folder] {
      const auto log = base::read_text_file(folder.path() / "log");
      const auto text = log.ok() ? *log : std::string{};
      std::size_t count = 0;
      for (auto at = text.find("other programs"); at != std::string::npos;
           at = text.find("other programs", at + 1)) {
        ++count;
      }
      return count;
    };
    for (const auto& use : {busy, idle, busy}) report.processors(3, use);
    CHECK(warnings() == 0);
    report.processors(4, busy);
    CHECK(warnings() == 1);
    report.processors(5, busy);
    CHECK(warnings() == 1);
  }
  base::log::configure(before);
  const auto lines = lines_of(folder.path());
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].begin().key() == "kind");
  CHECK(lines[3].at("kind") == "processors");
  CHECK(lines[3].at("step") == 4);
  CHECK(lines[3].at("others") == 0.5);
}

TEST_CASE("people read nan, whatever sign the machine gave it") {
  const double minus_nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  const tests::TemporaryFolder folder;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  auto log = before;
  log.file = (folder.path() / "log.txt").string();
  base::log::configure(log);
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.steps = 3;
  settings.speaks = true;
  train::Report(settings).evaluated(3, {.loss = minus_nan, .tokens = 100}, 1.0);
  base::log::configure(before);
  const auto said = base::value_or_throw(base::read_text_file(log.file));
  CHECK(said.find("held-out loss nan  perplexity nan  (100 tokens") != std::string::npos);
}

TEST_CASE("a start records what was predicted for it, and each of its steps the predicted time") {
  const tests::TemporaryFolder folder;
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.run = "a run";
  settings.peak_flops = 1e12;
  settings.speaks = true;
  settings.predicted = telemetry::PredictedStep{.machine = "m",
                                                .step_ms = 12,
                                                .tensor_comm_ms = 1,
                                                .bubble_ms = 2,
                                                .exposed_comm_ms = 3,
                                                .optimizer_ms = 4};
  CHECK(settings.predicted->compute_ms() == 2);
  train::Report report(settings);
  report.started({});
  report.step(record_of(1, 1000, 0.5));
  telemetry::RunRecord record;
  std::ifstream file(folder.path() / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) record.take(line);
  CHECK(telemetry::predicted_step_of(record) == settings.predicted);
  REQUIRE(record.steps.size() == 1);
  CHECK(record.steps.front().predicted_ms == 12);
}

TEST_CASE("measured steps have a mean by the parts that are predicted, behind those that warm up") {
  telemetry::MeasuredStep measured;
  for (int step = 1; step <= 7; ++step) {
    telemetry::StepLine line;
    line.step_ms = step <= 5 ? 1000 : 10.0 * step;
    line.bubble_ms = 20;
    measured.take(line);
  }
  CHECK(measured.count() == 2);
  const auto mean = measured.mean();
  CHECK(mean.step_ms == 65);
  CHECK(mean.bubble_ms == 20);
  CHECK(mean.tensor_comm_ms == 0);
  CHECK(mean.compute_ms() == 45);
}
