// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Parsers of the system files that the plugin reads: pure functions over their texts.
namespace trireme::launch {

/// MpiDefault of a slurm.conf; "none", Slurm's own default, where it is not set; empty where an
/// included file could set another.
std::string default_mpi_in(std::string_view slurm_conf);

/// The file that counts kills for lack of memory in the cgroup of a job step, found in the text of
/// /proc/self/cgroup; none outside of such a cgroup.
std::optional<std::string> kill_counter_in(std::string_view cgroups);

/// Source of the last, topmost mount at a path without links, from the text of
/// /proc/self/mountinfo; none where nothing is mounted there.
std::optional<std::string> mount_source_in(std::string_view mounts, std::string_view path);

}  // namespace trireme::launch
