// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/metrics.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;

TEST_CASE("metrics are appended across restarts, and a line that a crash cut off does no harm") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  {
    auto file = telemetry::MetricsFile::open(path).value();
    file.append({{"kind", "event"}, {"event", "start"}});
    file.append({{"kind", "train"}, {"loss", 0.1}});
  }
  std::ofstream(path, std::ios::app) << R"({"kind":"train","los)";
  {
    auto file = telemetry::MetricsFile::open(path).value();
    file.append({{"kind", "event"}, {"event", "start"}});
  }
  CHECK(telemetry::start_count(path) == 2);
  CHECK(base::read_text_file(path).value() ==
        "{\"kind\":\"event\",\"event\":\"start\"}\n{\"kind\":\"train\",\"loss\":0.1}\n"
        "{\"kind\":\"train\",\"los\n{\"kind\":\"event\",\"event\":\"start\"}\n");
}

TEST_CASE("metrics tell the last step that was done, and the last that all ranks could load") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  CHECK(telemetry::recorded_steps(path).done == 0);
  {
    auto file = telemetry::MetricsFile::open(path).value();
    file.append({{"kind", "train"}, {"step", 7}, {"loss", 0.1}});
    file.append({{"kind", "save"}, {"step", 8}, {"tier", "nodes"}});
  }
  CHECK(telemetry::recorded_steps(path).done == 7);
  CHECK(telemetry::recorded_steps(path).saved == 0);
  {
    auto file = telemetry::MetricsFile::open(path).value();
    file.append({{"kind", "save"}, {"step", 8}, {"tier", "shared"}});
    file.append({{"kind", "save"}, {"step", 12}, {"tier", "nodes"}});
    file.append({{"kind", "train"}, {"step", 13}});
  }
  // Cut off in the middle, and behind an object within a line.
  std::ofstream(path, std::ios::app) << R"({"kind":"train","step":14,"los)";
  CHECK(telemetry::recorded_steps(path).done == 13);
  std::ofstream(path, std::ios::app) << "\n"
                                     << R"({"kind":"train","optimizer_phases_ms":{"gather":1})";
  CHECK(telemetry::recorded_steps(path).done == 13);
  std::ofstream(path, std::ios::app) << ",\"run\":\"a{b\",\"step\":15}\n";
  CHECK(telemetry::recorded_steps(path).done == 15);
  std::ofstream(path, std::ios::app) << R"({"kind":"train","step":13})"
                                     << "\n";
  CHECK(telemetry::recorded_steps(path).saved == 8);
  // A start that goes on with these steps, and one that begins anew.
  const auto started = [&path](int step) {
    auto file = telemetry::MetricsFile::open(path).value();
    file.append({{"kind", "event"}, {"event", "start"}, {"step", step}});
  };
  started(9);
  CHECK(telemetry::recorded_steps(path).saved == 8);
  started(1);
  CHECK(telemetry::recorded_steps(path).done == 0);
  CHECK(telemetry::recorded_steps(path).saved == 0);
}

TEST_CASE("numbers in metrics read back as the same numbers") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  const double loss = 2.0 / 3.0;
  telemetry::MetricsFile::open(path).value().append({{"loss", loss}});
  CHECK(base::read_json_file(path).value()["loss"].get<double>() == loss);
}

TEST_CASE("metrics that cannot be opened are a failure with the path") {
  const auto file = telemetry::MetricsFile::open("/proc/metrics.jsonl");
  REQUIRE_FALSE(file.ok());
  CHECK(file.failure().text.find("/proc/metrics.jsonl") != std::string::npos);
}
