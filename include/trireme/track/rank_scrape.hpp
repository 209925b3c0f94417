// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/rank_times.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace trireme::track {

/// Times of ranks in their last step, as the nodes of a run that goes on answer them
/// (track.prometheus_port), ascending by rank. Empty if there is no list of nodes, its token may
/// not be read, or no node answers; nodes that do not answer in two seconds are left out, and so
/// are those that were not asked in five.
std::vector<telemetry::RankTime> scrape_ranks(const std::filesystem::path& run);

/// Those in one node's answer; lines of other metrics, and what is none of ours, are passed over.
std::vector<telemetry::RankTime> rank_times_in(std::string_view exposition);

}  // namespace trireme::track
