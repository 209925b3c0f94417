// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace trireme::tests {

inline constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// Plan of two sequences of 1024 tokens through 8 heads of 64 that share 2 heads of keys.
inline ProgramEnd run_plan(std::vector<std::string> settings,
                           const std::vector<std::string>& options = {}) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.conf";
  std::ofstream(path) << "[model]\narchitecture = llama\nvocab_size = 1000\nhidden_size = 512\n"
                         "intermediate_size = 1024\nnum_hidden_layers = 2\n"
                         "num_attention_heads = 8\nnum_key_value_heads = 2\nhead_dim = 64\n"
                         "max_position_embeddings = 1024\n"
                         "[train]\nsequence_length = 1024\nmicro_batch = 2\nglobal_batch = 4\n";
  std::vector<std::string> arguments{"plan", path.string(), "--ranks", "2", "--json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (auto& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(std::move(setting));
  }
  return run_trireme(std::move(arguments));
}

inline base::Json plan_with(std::vector<std::string> settings) {
  const auto end = run_plan(std::move(settings));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return base::Json::parse(end.out);
}

}  // namespace trireme::tests
