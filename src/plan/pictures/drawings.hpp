// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/plan/pictures.hpp"

#include <string>
#include <string_view>

/// Drawings of a plan's numbers. Private to the room.
namespace trireme::plan {

std::string timeline_drawing(const Pictures& pictures);
std::string memory_drawing(const Pictures& pictures);
std::string strong_drawing(const Pictures& pictures);
std::string weak_drawing(const Pictures& pictures);
std::string pareto_drawing(const Pictures& pictures);

/// Words of metrics and of legends for a span.
std::string_view name(predict::TimelineSpan::Kind kind);

/// The points that no other one is cheaper and faster than, in ascending order of hours; indices.
std::vector<std::size_t> pareto_front(const std::vector<ScaledStep>& steps);

}  // namespace trireme::plan
