// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/machine.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/text.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace trireme;
using predict::read_machine;

namespace {

const std::filesystem::path folder = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs/machines";

std::string laptop() {
  return *base::read_text_file(folder / "laptop-2-core.conf", base::ExitCode::usage);
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const auto place = text.find(what);
  REQUIRE(place != std::string::npos);
  return text.replace(place, what.size(), by);
}

/// The failure of a file with this text.
std::string refused(const std::string& text) {
  const tests::TemporaryFolder scratch;
  const auto path = scratch.path() / "m.conf";
  std::ofstream(path) << text;
  const auto machine = read_machine(path);
  REQUIRE_FALSE(machine.ok());
  CHECK(machine.failure().code == base::ExitCode::usage);
  return machine.failure().text;
}

}  // namespace

TEST_CASE("each machine file of the repository is read, with a source for every number") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    CAPTURE(entry.path().string());
    const auto machine = read_machine(entry.path());
    INFO((machine ? "" : machine.failure().text));
    REQUIRE(machine.ok());
    CHECK(machine->name == entry.path().stem());
    CHECK(machine->node.peak_bf16 > 0);
    ++files;
  }
  CHECK(files >= 6);
}

TEST_CASE("a machine file's mistakes are named, all at once") {
  CHECK_THAT(refused("[node]\ngpu = 8\n"),
             Catch::Contains("m.conf:2") && Catch::Contains("did you mean 'node.gpus'"));
  const auto two =
      refused(replaced(replaced(laptop(), "cores = 2", "cores = 0"), "gpus = 0", "gpus = many"));
  CHECK_THAT(two, Catch::Contains("node.cores = 0 is too small") &&
                      Catch::Contains("node.gpus = many is not a whole number"));
  const auto wrong_and_missing =
      refused(replaced(replaced(laptop(), "cores = 2", "cores = 0"), "memory_rate = 25.6e9\n", ""));
  CHECK_THAT(wrong_and_missing, Catch::Contains("node.cores = 0 is too small") &&
                                    Catch::Contains("node.memory_rate is not set"));
  CHECK_THAT(refused(replaced(laptop(), "memory_rate = 25.6e9\n", "")),
             Catch::Contains("node.memory_rate is not set"));
  CHECK_THAT(refused(replaced(laptop(), "node.cores = assumed: two cores", "")),
             Catch::Contains("node.cores has no source"));
  CHECK_THAT(refused(replaced(laptop(), "node.cores = assumed: two cores", "node.cores =")),
             Catch::Contains("source.node.cores is empty"));
}

TEST_CASE("machines with GPUs say how these cut products") {
  CHECK_THAT(refused(replaced(laptop(), "gpus = 0", "gpus = 8")),
             Catch::Contains("product.processors is not set"));
}

TEST_CASE("counts and rates of machines have limits") {
  CHECK_THAT(refused(replaced(laptop(), "gpus = 0", "gpus = 4294967296")),
             Catch::Contains("node.gpus = 4294967296 is too large"));
  CHECK_THAT(refused(replaced(laptop(), "cores = 2", "cores = 4294967297")),
             Catch::Contains("node.cores = 4294967297 is too large"));
  CHECK_THAT(refused(replaced(laptop(), "memory_rate = 25.6e9", "memory_rate = 1e-300")),
             Catch::Contains("node.memory_rate = 1e-300 is too small"));
  const auto h100 = *base::read_text_file(folder / "dgx-h100.conf", base::ExitCode::usage);
  CHECK_THAT(refused(replaced(h100, "reserved = 2GiB", "reserved = 80GiB")),
             Catch::Contains("node.reserved = 80.00 GiB is all of node.memory"));
  CHECK_THAT(refused(replaced(h100, "memory = 0.78\n", "memory = 0.78\n[site]\nnode_hour = 0\n")),
             Catch::Contains("site.node_hour = 0 is too small"));
  CHECK_THAT(refused(replaced(h100, "latency = 22e-6", "latency = 1e9")),
             Catch::Contains("link.node.latency = 1e9 is too large"));
  CHECK_THAT(refused(replaced(h100, "for_collectives = 20", "for_collectives = 132")),
             Catch::Contains("product.for_collectives = 132 is too large"));
  CHECK_THAT(refused(replaced(h100, "\nprocessors = 132", "\nprocessors = 0")),
             Catch::Contains("product.processors = 0 is too small"));
}

TEST_CASE("tables of machine files are checked row by row") {
  const auto with = [](std::string_view table) {
    const auto text = laptop();
    const auto begin = text.find("messages = ");
    const auto end = text.find('\n', begin);
    return text.substr(0, begin) + "messages = " + std::string(table) + text.substr(end);
  };
  CHECK_THAT(refused(with("1024,2e-6; 100,1e-5")), Catch::Contains("row 2 out of order"));
  CHECK_THAT(refused(with("1024; 2048,1e-5")), Catch::Contains("row 1 that is not 2 numbers"));
  CHECK_THAT(refused(with("1024,-1")), Catch::Contains("numbers above 0"));
  CHECK_THAT(refused(with("1024,fast")), Catch::Contains("link.node.messages"));
}

TEST_CASE("every key of machine files is explained") {
  const auto reference = predict::machine_reference();
  for (const auto& row : predict::machine_keys()) {
    CHECK_FALSE(row.key.documentation.empty());
    CHECK_THAT(reference, Catch::Contains("`" + row.key.full_name() + "`"));
  }
}
