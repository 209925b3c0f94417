// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include "support/program.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::tests {

/// `trireme` with these arguments on so many ranks.
ProgramEnd on_ranks(int ranks, const std::vector<std::string>& arguments);
/// The same, which must succeed; what it wrote to standard output.
std::string done_on_ranks(int ranks, const std::vector<std::string>& arguments);

/// --set for each "section.key=value".
std::vector<std::string> with_settings(std::vector<std::string> arguments,
                                       const std::vector<std::string>& settings);

/// A folder of tests/golden/models.
std::filesystem::path golden_model(const std::string& name);

/// PREFIX.bin and PREFIX.idx with one document.
void write_tokens(const std::filesystem::path& prefix, const std::vector<std::int32_t>& tokens);
/// Made-up ids below the vocabulary that follow from one another most of the time.
std::vector<std::int32_t> made_up_tokens(std::int64_t count, std::int32_t vocabulary);

/// Lines of one kind of a run's metrics.jsonl.
std::vector<base::Json> metrics(const std::filesystem::path& run, const std::string& kind);

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace trireme::tests
