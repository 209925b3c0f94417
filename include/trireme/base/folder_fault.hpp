// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace trireme::base {

/// Why a folder can neither be written to nor be made, "'/a': Permission denied"; empty where it
/// can. Makes nothing.
std::string folder_fault(const std::filesystem::path& folder);

}  // namespace trireme::base
