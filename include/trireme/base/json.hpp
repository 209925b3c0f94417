// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace trireme::base {

/// JSON whose objects keep the order in which keys were written.
using Json = nlohmann::ordered_json;

/// Parses untrusted text. Failures name `source` and the position; nesting is limited.
Result<Json> parse_json(std::string_view text, std::string_view source,
                        ExitCode code = ExitCode::usage);

/// Reads and parses a file of at most `max_bytes`.
Result<Json> read_json_file(const std::filesystem::path& path, ExitCode code = ExitCode::usage,
                            std::size_t max_bytes = std::size_t{256} << 20);

}  // namespace trireme::base
