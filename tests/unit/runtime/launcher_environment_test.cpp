// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/launcher_environment.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using namespace trireme;

namespace {

base::Environment with(const char* name, const std::string& value) {
  return base::Environment(std::map<std::string, std::string, std::less<>>{{name, value}});
}

base::Environment step_of(const std::string& number) {
  return with("SLURM_STEP_ID", number);
}

}  // namespace

TEST_CASE("the number of a step is Slurm's, reserved ones included") {
  CHECK(runtime::step_number(step_of("0")) == 0U);
  CHECK(runtime::step_number(step_of("17")) == 17U);
  // SLURM_INTERACTIVE_STEP, and the largest that 32 bits hold.
  CHECK(runtime::step_number(step_of("4294967290")) == 0xFFFFFFFAU);
  CHECK(runtime::step_number(step_of("4294967295")) == 0xFFFFFFFFU);
}

TEST_CASE("there is no step number outside of a step, nor of what is no number") {
  CHECK_FALSE(runtime::step_number(with("SLURM_JOB_ID", "12")));
  for (const char* text :
       {"", " ", "-1", "+1", "1 ", "0x1", "batch", "1.0", "4294967296", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(runtime::step_number(step_of(text)));
  }
}
