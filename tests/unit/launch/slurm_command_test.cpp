// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/slurm_command.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme;
using namespace std::chrono_literals;

namespace {

std::optional<launch::CommandAnswer> run(const std::vector<std::string>& words,
                                         std::chrono::milliseconds patience = 10s) {
  return launch::run_slurm_command(words, patience);
}

}  // namespace

TEST_CASE("a command's words are handed over as they are, by no shell") {
  const auto answer = run({"printf", "%s", "$(touch /); 'a b'"});
  REQUIRE(answer);
  CHECK(answer->output == "$(touch /); 'a b'");
  CHECK(answer->exit_code == 0);
  CHECK(run({"false"})->exit_code == 1);
}

TEST_CASE("a command that is not there, dies, hangs or floods is no answer") {
  CHECK_FALSE(run({"no-such-command-of-slurm"}).has_value());
  CHECK_FALSE(run({"sh", "-c", "kill -9 $$"}).has_value());
  CHECK_FALSE(run({"sleep", "60"}, 50ms).has_value());
  CHECK_FALSE(run({"yes"}).has_value());
  CHECK_FALSE(run({}).has_value());
}
