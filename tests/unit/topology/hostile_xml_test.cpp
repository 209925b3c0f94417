// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/topology/describe.hpp"

#include "support/load_machine.hpp"

#include <unistd.h>

#include <fstream>

using namespace trireme;
using namespace trireme::tests;

namespace {

void check_refused(const std::string& xml, std::string_view because) {
  const auto machine = topology::from_xml_text(xml, "bad.xml");
  REQUIRE_FALSE(machine.ok());
  CHECK(machine.failure().code == base::ExitCode::topology);
  CHECK(machine.failure().text.find("bad.xml") == 0);
  INFO(machine.failure().text);
  CHECK(machine.failure().text.find(because) != std::string::npos);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("files that are no machines are refused with the topology exit code") {
  const auto good = machine_xml(laptop());
  check_refused("", "no XML elements");
  check_refused("hello", "no XML elements");
  check_refused("<topology", "ends inside an element");
  check_refused("<html><body/></html>", "hwloc cannot load it");
  check_refused("<topology version=\"2.0\"></topology>", "hwloc cannot load it");
  check_refused(good.substr(0, good.size() / 2), "");
  check_refused(good + std::string(1, '\0'), "zero bytes");
  check_refused("<!DOCTYPE a [<!ENTITY b \"c\">]>" + good, "entities");
}

TEST_CASE("numbers, depths and sizes that no machine has are refused before hwloc sees them") {
  const auto good = machine_xml(laptop());
  check_refused(replaced(good, "type=\"PU\" os_index=\"0\"", "type=\"PU\" os_index=\"4294967295\""),
                "'os_index=\"4294967295\"' is not below 65536");
  check_refused(replaced(good, "cpuset=\"", "cpuset=\"" + std::string(40000, '0')),
                "larger than any machine");
  std::string deep;
  for (int depth = 0; depth < 200; ++depth) deep += "<object>";
  check_refused(deep, "nested deeper than 128");
  std::string many = "<topology>";
  for (int element = 0; element < 300'000; ++element) many += "<a/>";
  check_refused(many, "more than 262144 elements");
  check_refused(std::string(topology::max_xml_bytes + 1, '<'), "larger than 16.00 MiB");
}

TEST_CASE("a file that is too large or missing is named without being read") {
  const auto missing = topology::from_xml("/nonexistent/machine.xml");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.failure().code == base::ExitCode::topology);
  CHECK(missing.failure().text.find("/nonexistent/machine.xml") != std::string::npos);

  const auto path =
      std::filesystem::temp_directory_path() / base::format("trireme-huge-{}.xml", ::getpid());
  std::ofstream(path) << "<";
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  const auto huge = topology::from_xml(path);
  std::filesystem::remove(path);
  REQUIRE_FALSE(huge.ok());
  CHECK(huge.failure().code == base::ExitCode::topology);
}

TEST_CASE("an input that crashes hwloc's own parser is a refusal here") {
  // hwloc 2.9.0 follows a null pointer when an object lacks its complete_cpuset.
  const auto xml = replaced(machine_xml(laptop()), " complete_cpuset=", " other_cpuset=");
  const auto machine = topology::from_xml_text(xml, "bad.xml");
  if (!machine.ok()) CHECK(machine.failure().code == base::ExitCode::topology);
  CHECK(topology::from_xml_text(machine_xml(laptop()), "good.xml").ok());
}

TEST_CASE("damaged descriptions give a machine or a refusal, never a crash") {
  const std::string good = machine_xml(shared_switches());
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 150; ++trial) {
    auto text = good;
    for (std::uint64_t damage = 0; damage < 4; ++damage) {
      const auto random = base::philox(20, trial, damage);
      const auto at = random[0] % text.size();
      switch (random[1] % 4) {
        case 0:
          text[at] = static_cast<char>(random[2] % 255 + 1);
          break;
        case 1:
          text.erase(at, random[2] % 300);
          break;
        case 2:
          text.insert(at, text.substr(random[2] % text.size(), random[3] % 300));
          break;
        default:
          text[at] = static_cast<char>('0' + random[2] % 10);
          break;
      }
    }
    const auto machine = topology::from_xml_text(text, "damaged.xml");
    if (machine.ok()) {
      // A machine that is read can be described and planned on.
      CHECK_FALSE(topology::tree_text(*machine).empty());
      static_cast<void>(topology::plan_binding(*machine, 3));
    } else {
      ++refused;
      CHECK(machine.failure().code == base::ExitCode::topology);
    }
  }
  CHECK(refused > 0);
  CHECK(refused < 150);
}
