// SPDX-License-Identifier: Apache-2.0
// A machine that is written and read again is the same.
#include "trireme/predict/machine.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using predict::Machine;

namespace {

Machine again(const Machine& machine) {
  const tests::TemporaryFolder scratch;
  const auto path = scratch.write("again.conf", predict::machine_text(machine, "A machine."));
  const auto read = predict::read_machine(path);
  INFO((read ? "" : read.failure().text));
  REQUIRE(read.ok());
  return *read;
}

void check_equal(const Machine& one, const Machine& other) {
  for (const auto& row : predict::machine_keys()) {
    CAPTURE(row.key.full_name());
    CHECK(row.value(one) == row.value(other));
  }
  // Values of tables are texts that are made alike.
  CHECK(one.products == other.products);
  CHECK(one.products_fp32 == other.products_fp32);
  CHECK(one.inside.messages == other.inside.messages);
  CHECK(one.network.messages == other.network.messages);
  CHECK(one.sources == other.sources);
}

}  // namespace

TEST_CASE("each machine file of the repository says the same when it is written again") {
  const auto machines = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs/machines";
  for (const auto& entry : std::filesystem::directory_iterator(machines)) {
    CAPTURE(entry.path().string());
    const auto machine = *predict::read_machine(entry.path());
    check_equal(again(machine), machine);
  }
}

TEST_CASE("measured numbers keep all their digits in a machine file") {
  auto machine = *predict::read_machine(std::filesystem::path(TRIREME_SOURCE_DIR) /
                                        "configs/machines/laptop-2-core.conf");
  const double third = 1.0 / 3;
  machine.node.peak_fp32 = 1e11 * third;
  machine.node.memory = 16852729857;
  machine.node.memory_rate = 1e10 * third;
  machine.node.launch_gap = 1e-6 * third;
  machine.node.disk_write = 1e8 * third;
  machine.share.attention = third;
  machine.products = {{64, 192, 64, 1e11 * third}, {1024, 4096, 1024, 2e11 * third}};
  machine.products_fp32 = {{64, 192, 64, 1e10 * third}};
  machine.inside.messages = {{1024, 1e-6 * third}, {65536, 1e-5 * third}};
  machine.network.messages = {{1024, 1e-4 * third}};
  for (const auto* key : {"node.launch_gap", "node.disk_write", "product.rates",
                          "product.rates_fp32", "link.network.messages"}) {
    machine.sources[key] = "measured by hand: 3 times, \"alone\"";
  }
  check_equal(again(machine), machine);
}

TEST_CASE("a number without a source is not hidden by being written") {
  auto machine = *predict::read_machine(std::filesystem::path(TRIREME_SOURCE_DIR) /
                                        "configs/machines/laptop-2-core.conf");
  machine.node.launch_gap = 1e-6;
  const tests::TemporaryFolder scratch;
  const auto path = scratch.write("m.conf", predict::machine_text(machine, "A machine."));
  const auto read = predict::read_machine(path);
  REQUIRE_FALSE(read.ok());
  CHECK_THAT(read.failure().text, Catch::Contains("node.launch_gap has no source"));
}
