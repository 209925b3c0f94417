// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::plan> plan{.concern = Concern::running};

constexpr Key plan_rows[] = {
    plan.key<&PlanOptions::machine>(
        "",
        "File of the machine that the run is on (docs/plan.md): its predicted step is logged and "
        "recorded beside the measured ones, and trireme plan says it without --machine. Empty: "
        "nothing is predicted."),
};

}  // namespace

std::span<const Key> plan_keys() {
  return plan_rows;
}

}  // namespace trireme::schema
