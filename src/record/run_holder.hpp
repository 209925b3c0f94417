// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/record/run_lock.hpp"

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

/// The text of RUN/lock. Private to the room.
namespace trireme::record {

/// Largest difference between the clocks of two nodes and of their file server, generously.
inline constexpr std::chrono::minutes largest_skew{2};
inline constexpr int beats_of_a_dead_holder = 3;

/// Boot id of the running kernel; its host name where it has none.
std::string boot_of_this_node();

std::string text_of(const RunHolder& holder);

/// Holder in the file, none if it was given back or is being written. Opens the file anew, because
/// network file systems show others' changes only after an open.
std::optional<RunHolder> read_holder(const std::filesystem::path& path);

std::optional<timespec> time_of_change(const std::filesystem::path& path);

}  // namespace trireme::record
