// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace trireme::data {

/// Refuses (exit code 6) what is no text, by its first 64 KiB: magic numbers of formats that people
/// keep data sets in, UTF-16, and NUL bytes.
base::Status check_text(std::span<const std::byte> beginning, const std::string& source);

}  // namespace trireme::data
