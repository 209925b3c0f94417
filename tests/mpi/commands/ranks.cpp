// SPDX-License-Identifier: Apache-2.0
#include "mpi/commands/ranks.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include <catch2/catch.hpp>

#include <fstream>

namespace trireme::tests {

ProgramEnd on_ranks(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{std::to_string(ranks), TRIREME_EXECUTABLE};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program({.program = TRIREME_SOURCE_DIR "/tests/support/mpirun",
                      .arguments = all,
                      .timeout_seconds = 120});
}

std::string done_on_ranks(int ranks, const std::vector<std::string>& arguments) {
  const auto end = on_ranks(ranks, arguments);
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return end.out;
}

std::vector<std::string> with_settings(std::vector<std::string> arguments,
                                       const std::vector<std::string>& settings) {
  for (const auto& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

std::filesystem::path golden_model(const std::string& name) {
  return std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/models" / name;
}

void write_tokens(const std::filesystem::path& prefix, const std::vector<std::int32_t>& tokens) {
  auto writer =
      base::value_or_throw(data::IndexedTokensWriter::create(prefix, data::TokenType::int32));
  writer.append_document(tokens);
  writer.finish();
}

std::vector<std::int32_t> made_up_tokens(std::int64_t count, std::int32_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t at = 0; at < count; ++at) {
    const auto bits = base::philox(5, static_cast<std::uint64_t>(at), 0);
    const auto next = tokens.empty() ? 0 : (3 * tokens.back() + 1) % vocabulary;
    const auto noise = static_cast<std::int32_t>(bits[1] % static_cast<std::uint32_t>(vocabulary));
    tokens.push_back(bits[0] % 3 == 0 ? noise : next);
  }
  return tokens;
}

std::vector<base::Json> metrics(const std::filesystem::path& run, const std::string& kind) {
  std::vector<base::Json> lines;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json["kind"] == kind) lines.push_back(std::move(json));
  }
  return lines;
}

}  // namespace trireme::tests
