// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace trireme::base {

/// Why a folder can neither be written to nor be made, "'/a': Permission denied"; empty where it
/// can. Makes nothing.
std::string folder_fault(const std::filesystem::path& folder);

/// True if fsync of a folder failed because the file system does not support it (SMB, some FUSE).
/// Nothing more can be done there, and files themselves are synced.
bool lacks_folder_sync(int error_number);

}  // namespace trireme::base
