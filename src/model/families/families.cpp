// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "model/families/rows.hpp"

#include <algorithm>

namespace trireme::model {
namespace {

constexpr const Family* rows[] = {&gpt2_family, &llama_family, &qwen3_family};

}  // namespace

const Family& family(Architecture architecture) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const Family* each) {
    return each->architecture == architecture;
  });
  TRIREME_EXPECT(found != std::end(rows), "every architecture has a row");
  return **found;
}

std::span<const Family* const> families() {
  return rows;
}

std::string family_names() {
  std::string names;
  for (const auto* each : rows) {
    if (!names.empty()) names += each == *std::rbegin(rows) ? " or " : ", ";
    names += each->name;
  }
  return names;
}

}  // namespace trireme::model
