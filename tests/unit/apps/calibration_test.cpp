// SPDX-License-Identifier: Apache-2.0
// trireme plan --calibrate, by runs made by hand.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/predict/machine.hpp"

#include "apps/preflight/machine_out.hpp"
#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace trireme;
using namespace trireme::tests;

namespace {

const std::filesystem::path configs_of_calibration =
    std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";

std::string file_text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Two runs of debug-tiny and a machine file.
class Calibrated {
 public:
  explicit Calibrated(const std::string& settings = "") {
    for (const auto& run : runs_) {
      std::filesystem::create_directories(run);
      std::ofstream(run / "config.resolved.conf")
          << file_text_of(configs_of_calibration / "debug-tiny.conf") << settings;
    }
  }

  void start(int number, int steps) {
    for (const auto& run : runs_) {
      std::ofstream metrics(run / "metrics.jsonl", std::ios::app);
      metrics << base::format(
          "{{\"kind\":\"event\",\"event\":\"start\",\"restart\":{},\"step\":{},"
          "\"tokens_per_step\":384}}\n",
          number, steps_ + 1);
      for (int step = 0; step < steps; ++step) {
        metrics << base::format(
            "{{\"kind\":\"train\",\"restart\":{},\"step\":{},\"loss\":2,"
            "\"tokens_per_second\":40000}}\n",
            number, steps_ + step + 1);
      }
    }
    steps_ += steps;
  }

  ProgramEnd on(const std::string& machine, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"plan", "--calibrate", runs_[0].string(), runs_[1].string(),
                               "--machine", machine});
    return run_trireme(std::move(more));
  }

  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_;
  std::vector<std::filesystem::path> runs_{folder_.path() / "one", folder_.path() / "other"};
  int steps_ = 0;
};

std::string machine_for_calibration(const std::string& name) {
  return configs_of_calibration / "machines" / (name + ".conf");
}

}  // namespace

TEST_CASE("a number that runs do not determine is written as it was") {
  Calibrated runs;
  runs.start(0, 10);
  auto text = file_text_of(machine_for_calibration("laptop-2-core"));
  const std::string share = "product = 0.8";
  // More than the peak, without a table of products.
  text.replace(text.find(share), share.size(), "product = 2");
  const auto file = runs.path("fast.conf");
  std::ofstream(file) << text;
  const auto out = runs.path("out.conf");
  const auto end = runs.on(file.string(), {"--machine-out", out.string()});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(contains(end.out, "share.product    2 stays"));
  const auto machine = predict::read_machine(out);
  REQUIRE(machine.ok());
  CHECK(machine->share.product == 2);
}

TEST_CASE("a machine file that was made since the check is not written over") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "m.conf";
  const auto machine =
      base::value_or_throw(predict::read_machine(machine_for_calibration("dgx-h100")));
  CHECK(apps::check_machine_out(file).ok());
  std::ofstream(file) << "# mine\n";
  CHECK_THROWS_WITH(apps::write_machine(machine, "Theirs.", file),
                    Catch::Contains("m.conf is there"));
  CHECK(file_text_of(file) == "# mine\n");
  std::filesystem::remove(file);
  apps::write_machine(machine, "New.", file);
  CHECK(file_text_of(file) == predict::machine_text(machine, "New."));
  // No file of another name is left.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("runs on other processors than the machine's correct nothing") {
  Calibrated of_cores;
  of_cores.start(0, 10);
  const auto on_gpus = of_cores.on(machine_for_calibration("dgx-h100"));
  CHECK(on_gpus.exit_code == 2);
  CHECK(contains(on_gpus.err,
                 "numerics.backend = auto computes on cores, and machine 'dgx-h100' has "
                 "node.gpus = 8"));
  Calibrated of_gpus("\n[numerics]\nbackend = cuda\n");
  of_gpus.start(0, 10);
  const auto on_cores = of_gpus.on(machine_for_calibration("laptop-2-core"));
  CHECK(on_cores.exit_code == 2);
  CHECK(contains(on_cores.err,
                 "numerics.backend = cuda computes on GPUs, and machine 'laptop-2-core' has "
                 "node.gpus = 0"));
  Calibrated of_oracle("\n[numerics]\nbackend = reference\n");
  of_oracle.start(0, 10);
  const auto slow = of_oracle.on(machine_for_calibration("laptop-2-core"));
  CHECK(slow.exit_code == 2);
  CHECK(contains(slow.err, "numerics.backend = reference has no predicted step"));
}

TEST_CASE("a run whose step is not predicted is named") {
  Calibrated runs("\n[parallel]\ndata = 2\nzero_level = 2\n");
  runs.start(0, 10);
  const auto end = runs.on(machine_for_calibration("laptop-2-core"));
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "/one': parallel.zero_level = 2 does not go with a machine file"));
  Calibrated offloaded("\n[offload]\noptimizer = host\n");
  offloaded.start(0, 10);
  CHECK(contains(offloaded.on(machine_for_calibration("laptop-2-core")).err,
                 "/one': offload.optimizer = host does not go with a machine file"));
}

TEST_CASE("runs are measured by their newest start, which needs steps enough") {
  Calibrated runs;
  runs.start(0, 20);
  runs.start(1, 9);
  const auto end = runs.on(machine_for_calibration("laptop-2-core"));
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "has 9 steps of its newest start (a calibration needs 10"));
  runs.start(2, 0);
  const auto begun = runs.on(machine_for_calibration("laptop-2-core"));
  CHECK(begun.exit_code == 2);
  CHECK(contains(begun.err, "has 0 steps of its newest start"));
  runs.start(3, 10);
  CHECK(runs.on(machine_for_calibration("laptop-2-core")).exit_code == 0);
}
