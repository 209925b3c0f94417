// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/contract.hpp"

#include "trireme/base/philox.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace trireme;
using launch::Contract;
using launch::Inherit;

namespace {

Contract contract_of(std::initializer_list<std::pair<const char*, const char*>> terms,
                     const std::string& command = "srun") {
  Contract contract;
  for (const auto& [option, value] : terms) {
    contract.put({launch::find_option(option), value, command + " --" + option});
  }
  return contract;
}

base::Environment environment(std::map<std::string, std::string, std::less<>> variables) {
  return base::Environment(std::move(variables));
}

std::string failure_of(std::string_view encoded) {
  const auto decoded = launch::decode(encoded);
  return decoded.ok() ? "accepted" : decoded.failure().text;
}

}  // namespace

TEST_CASE("a contract is handed on without loss") {
  const auto contract = contract_of({{"pipeline-parallel", "4"},
                                     {"tensor-parallel", "2"},
                                     {"trireme-set", "run.name=50% done; a@b"},
                                     {"trireme-set", "data.train=x:1,y=z"}});
  const auto text = launch::encode(contract);
  CHECK(text ==
        "1;tensor-parallel=2@srun%20--tensor-parallel;pipeline-parallel=4@srun%20--pipeline-"
        "parallel;trireme-set=run.name%3D50%25%20done%3B%20a%40b@srun%20--trireme-set;"
        "trireme-set=data.train%3Dx:1%2Cy%3Dz@srun%20--trireme-set");
  const auto decoded = launch::decode(text);
  REQUIRE(decoded.ok());
  CHECK(*decoded == contract);
  CHECK(launch::decode("1").ok());
  CHECK(launch::decode(launch::encode({}))->settings().empty());
}

TEST_CASE("a text that nobody encodes is refused") {
  for (const char* text : {"",
                           ";",
                           "0",
                           "-1",
                           "x",
                           "1;",
                           "1;;",
                           "1;tensor-parallel",
                           "1;tensor-parallel=2",
                           "1;tensor-parallel=2@",
                           "1;tensor-parallel=0@srun",
                           "1;tensor-parallel=02@srun",
                           "1;tensor=2@srun",
                           "1;tensor-parallel=2@srun;tensor-parallel=2@srun",
                           "1;trireme-set=a.b=c@srun",
                           "1;tensor-parallel=%32@srun",
                           "1;tensor-parallel=2@sr%un",
                           "1;tensor-parallel=2@%0A",
                           "1;tensor-parallel=2@a%2",
                           "1;tensor-parallel@=2"}) {
    CAPTURE(text);
    CHECK(failure_of(text) != "accepted");
  }
  CHECK(failure_of("2;whatever").find("reads up to version 1") != std::string::npos);
  CHECK(failure_of("1;" + std::string(70'000, 'x')).find("more than 65536 bytes") !=
        std::string::npos);
  std::string many = "1";
  for (int index = 0; index < 1000; ++index) many += ";trireme-set=a.b%3D1@s";
  CHECK(failure_of(many).find("more than 1000 settings") != std::string::npos);
}

TEST_CASE("random damage never crashes, and what is accepted encodes to what it means") {
  const auto good = launch::encode(contract_of(
      {{"tensor-parallel", "2"}, {"zero-level", "1"}, {"trireme-set", "train.steps=100"}}));
  const std::string letters = "0129;=@%2Dabcxyz-. \n\x80";
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    auto text = good;
    const auto numbers = base::philox(7, 1, round);
    for (const auto number : numbers) {
      text[number % text.size()] = letters[(number >> 16) % letters.size()];
      if (number % 5 == 0) text.erase(number % text.size(), 1 + number % 3);
    }
    const auto decoded = launch::decode(text);
    if (!decoded.ok()) continue;
    const auto again = launch::decode(launch::encode(*decoded));
    REQUIRE(again.ok());
    REQUIRE(*again == *decoded);
  }
}

TEST_CASE("tasks find one variable for each option, settings one a line") {
  const auto variables = launch::variables(contract_of(
      {{"trireme-set", "train.steps=1"}, {"tensor-parallel", "2"}, {"trireme-set", "run.name=x"}}));
  CHECK(variables.size() == 2);
  CHECK(variables.at("TRIREME_TENSOR_PARALLEL") == "2");
  CHECK(variables.at("TRIREME_SET") == "train.steps=1\nrun.name=x");
  const auto off = launch::variables(contract_of({{"trireme", "off"}, {"tensor-parallel", "2"}}));
  CHECK(off.size() == 1);
}

TEST_CASE("what is exported by hand wins over what the submitter handed on") {
  const auto handed = contract_of({{"tensor-parallel", "2"}, {"zero-level", "1"}}, "sbatch");
  auto variables = launch::variables(handed);
  variables["SLURM_TRIREME"] = launch::encode(handed);
  const auto same = launch::read_contract(environment(variables));
  REQUIRE(same.ok());
  CHECK(*same == handed);

  variables["TRIREME_TENSOR_PARALLEL"] = "4";
  variables["TRIREME_SET"] = "\ntrain.steps=5\n";
  const auto changed = launch::read_contract(environment(variables));
  REQUIRE(changed.ok());
  CHECK(changed->find("tensor-parallel")->origin == "TRIREME_TENSOR_PARALLEL");
  CHECK(changed->number("tensor-parallel") == 4);
  CHECK(changed->find("zero-level")->origin == "sbatch --zero-level");
  CHECK(changed->find("trireme-set")->value == "train.steps=5");

  const auto own = launch::read_contract(environment(variables), Inherit::no);
  REQUIRE(own.ok());
  CHECK(own->settings().size() == 2);
  CHECK(own->find("zero-level") == nullptr);

  variables["TRIREME_ZERO_LEVEL"] = "9";
  const auto wrong = launch::read_contract(environment(variables));
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.failure().text.starts_with("TRIREME_ZERO_LEVEL = 9 is not a number from 0 to 3"));
}

TEST_CASE("a contract is active when something is asked for and it is not off") {
  CHECK_FALSE(Contract{}.active());
  CHECK(contract_of({{"trireme", "on"}}).active());
  CHECK(contract_of({{"micro-batch", "1"}}).active());
  CHECK_FALSE(contract_of({{"trireme", "off"}, {"micro-batch", "1"}}).active());
}

TEST_CASE("a number is none where the value is a word or is not given") {
  const auto contract = contract_of({{"data-parallel", "auto"}, {"zero-level", "1"}});
  CHECK_FALSE(contract.number("data-parallel"));
  CHECK_FALSE(contract.number("tensor-parallel"));
  CHECK(contract.number("zero-level") == 1);
}

TEST_CASE("a node without the plugin is seen when the submitter had it") {
  const auto encoded = launch::encode(contract_of({{"tensor-parallel", "2"}}));
  CHECK(launch::plugin_is_absent_here(
      environment({{"SLURM_TRIREME", encoded}, {"SLURMD_NODENAME", "n2"}})));
  // The mark of the node on which the batch script ran.
  CHECK(launch::plugin_is_absent_here(environment(
      {{"SLURM_TRIREME", encoded}, {"SLURMD_NODENAME", "n2"}, {"TRIREME_LAUNCH_NODE", "n1"}})));
  CHECK_FALSE(launch::plugin_is_absent_here(environment(
      {{"SLURM_TRIREME", encoded}, {"SLURMD_NODENAME", "n2"}, {"TRIREME_LAUNCH_NODE", "n2"}})));
  CHECK_FALSE(launch::plugin_is_absent_here(environment({{"SLURMD_NODENAME", "n2"}})));
  CHECK_FALSE(launch::plugin_is_absent_here(environment({{"SLURM_TRIREME", encoded}})));
}
