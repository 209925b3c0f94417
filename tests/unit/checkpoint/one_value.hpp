// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/checkpoint/support.hpp"

#include <cstdint>
#include <filesystem>

namespace trireme::tests {

/// Two ranks save one tensor whose every element is `value`.
void save_value(const std::filesystem::path& folder, std::int64_t step, float value,
                checkpoint::FileSystem& files);

/// The same by threads beside the ranks.
void save_value_beside(const std::filesystem::path& folder, std::int64_t step, float value,
                       checkpoint::FileSystem& files);

/// The one value that all elements of a step have.
struct FoundValue {
  std::int64_t step = 0;
  float value = 0;
};
/// Loads the newest loadable step, which must be there, on one rank.
FoundValue load_value(const std::filesystem::path& folder,
                      checkpoint::FileSystem& files = checkpoint::FileSystem::system());

/// Folders of saves that are not committed.
std::size_t temporary_folders(const std::filesystem::path& folder);

}  // namespace trireme::tests
