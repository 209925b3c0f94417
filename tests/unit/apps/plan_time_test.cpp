// SPDX-License-Identifier: Apache-2.0
// trireme plan --machine
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <numeric>

using namespace trireme::tests;
using trireme::base::Json;

namespace {

const std::filesystem::path configs = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";

std::string machine(const std::string& name) {
  return configs / "machines" / (name + ".conf");
}

Json predicted(const std::string& config, const std::string& ranks, const std::string& on,
               std::vector<std::string> settings = {}) {
  std::vector<std::string> arguments{"plan",      configs / config, "--ranks", ranks,
                                     "--machine", machine(on),      "--json"};
  for (auto& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(std::move(setting));
  }
  const auto end = run_trireme(std::move(arguments));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return Json::parse(end.out)["prediction"];
}

}  // namespace

TEST_CASE("a plan with a machine predicts the step, by part, on every machine file") {
  for (const auto* name :
       {"dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "laptop-2-core"}) {
    CAPTURE(name);
    const auto prediction = predicted("llama3-8b.conf", "64", name);
    CHECK(prediction["machine"] == name);
    const auto& parts = prediction["parts"];
    const double sum = std::accumulate(
        parts.begin(), parts.end(), 0.0,
        [](double so_far, const Json& part) { return so_far + part.get<double>(); });
    CHECK(sum == Approx(prediction["seconds"].get<double>()));
    CHECK(parts["compute"] > 0);
    CHECK(parts["bubble"] > 0);
    CHECK(prediction["memory_bytes"].size() == 64);
  }
}

TEST_CASE("newer machines are predicted to be faster") {
  const auto seconds = [](const std::string& name) {
    return predicted("llama3-8b.conf", "64", name)["seconds"].get<double>();
  };
  CHECK(seconds("dgx-b200") < seconds("dgx-h100"));
  CHECK(seconds("dgx-h200") < seconds("dgx-h100"));
  CHECK(seconds("dgx-h100") < seconds("dgx-a100"));
}

TEST_CASE("ranks that share two cores take longer than two, for the same batch a rank") {
  const auto seconds = [](const std::string& ranks) {
    return predicted("debug-tiny.conf", ranks, "laptop-2-core",
                     {"train.global_batch=auto"})["seconds"]
        .get<double>();
  };
  CHECK(seconds("8") > 2 * seconds("2"));
}

TEST_CASE("a plan says what does not fit into the machine's memory") {
  const auto end =
      run_trireme({"plan", configs / "llama3-8b.conf", "--ranks", "1", "--set", "parallel.tensor=1",
                   "--set", "parallel.pipeline=1", "--set", "parallel.schedule=1f1b", "--set",
                   "parallel.virtual_stages=1", "--machine", machine("dgx-a100")});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "predicted on dgx-a100: step "));
  CHECK(contains(end.out, "that does not fit"));
}

TEST_CASE("ranks of a node of cores share its memory") {
  // Layers are on some ranks alone: what fits is the sum of all ranks, not so many times the
  // largest.
  const auto prediction = predicted("debug-tiny.conf", "2", "laptop-2-core");
  const auto& bytes = prediction["memory_bytes"];
  const auto sum =
      std::accumulate(bytes.begin(), bytes.end(), 0.0,
                      [](double total, const Json& of) { return total + of.get<double>(); });
  CHECK(prediction["fits"] == (sum <= 16e9));
}

TEST_CASE("a prediction is of all ranks") {
  const auto end = run_trireme({"plan", configs / "debug-tiny.conf", "--ranks", "2", "--rank", "0",
                                "--machine", machine("laptop-2-core")});
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "--machine does not go with --rank"));
}

TEST_CASE("no step is predicted of documents that attend to themselves, whose memory is") {
  const auto planned = [](std::vector<std::string> more) {
    std::vector<std::string> all{"plan",  configs / "debug-tiny.conf", "--ranks", "2",
                                 "--set", "train.document_mask=true"};
    all.insert(all.end(), more.begin(), more.end());
    return run_trireme(all);
  };
  CHECK(planned({}).exit_code == 0);
  const auto end = planned({"--machine", machine("laptop-2-core")});
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "train.document_mask = true does not go with a machine file"));
  // A machine that the run asks for, which may need it for other things, costs no plan of memory.
  const auto of_run = planned({"--set", "plan.machine=" + machine("laptop-2-core")});
  CHECK(of_run.exit_code == 0);
  CHECK(contains(of_run.err, "no step is predicted: train.document_mask = true"));
}

TEST_CASE("a step is predicted of ranks that divide parameters, by the order in which it runs") {
  const auto end =
      run_trireme({"plan", configs / "debug-tiny.conf", "--ranks", "2", "--set",
                   "parallel.zero_level=3", "--machine", machine("dgx-h100"), "--json"});
  REQUIRE(end.exit_code == 0);
  const auto json = Json::parse(end.out);
  CHECK(json["schedule"] == "breadth-first");
  CHECK(json["prediction"]["parts"]["data"] > 0);
}

TEST_CASE("a step that lasts for months is refused") {
  const auto end = run_trireme({"plan", configs / "llama3-8b.conf", "--ranks", "64", "--set",
                                "train.global_batch=4096", "--machine", machine("laptop-2-core")});
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "longer than 100"));
}

TEST_CASE("a machine file that cannot be read is refused by its name") {
  const auto missing = run_trireme(
      {"plan", configs / "debug-tiny.conf", "--ranks", "1", "--machine", "/nowhere/m.conf"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "/nowhere/m.conf"));
  const TemporaryFolder folder;
  const auto path = folder.write("m.conf", "[node]\ngpus = -1\n");
  const auto wrong = run_trireme(
      {"plan", configs / "debug-tiny.conf", "--ranks", "1", "--machine", path.string()});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "node.gpus = -1 is too small"));
}
