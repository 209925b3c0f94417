// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

/// What the plugin reads in files of the system: pure functions over their texts.
namespace trireme::launch {

/// MpiDefault of a slurm.conf; "none", Slurm's own default, where it says none; empty where an
/// included file could say another.
std::string default_mpi_in(std::string_view slurm_conf);

/// The file that counts kills for lack of memory in the cgroup of a job step, found in the text of
/// /proc/self/cgroup; none outside of such a cgroup.
std::optional<std::string> kill_counter_in(std::string_view cgroups);

/// What is mounted at a path without links, of the text of /proc/self/mountinfo: the source of the
/// last, topmost mount; none where nothing is mounted there.
std::optional<std::string> mount_source_in(std::string_view mounts, std::string_view path);

}  // namespace trireme::launch
