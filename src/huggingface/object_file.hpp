// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <filesystem>

namespace trireme::huggingface {

/// The object in a file; an empty one where there is no such file. Throws Error (checkpoint): a
/// file that is no JSON object.
base::Json object_in(const std::filesystem::path& path);

}  // namespace trireme::huggingface
