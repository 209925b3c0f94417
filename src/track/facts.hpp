// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rows.hpp"

namespace trireme::track {

/// The first hexadecimal digits of a text's SHA-256.
std::string short_hash(std::string_view text, std::size_t letters);

/// Reads on in a run's record, and what it says of the run. facts.id is empty until there is
/// anything. Throws Error.
void read_on(const std::filesystem::path& run, telemetry::RecordReader& reader, RunFacts& facts);

}  // namespace trireme::track
