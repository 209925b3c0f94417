// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/schema.hpp"

#include <limits>
#include <span>

/// Rows of the schema, one function and one file per section. Private to the room.
namespace trireme::schema {

/// Largest count: what an int holds.
inline constexpr double count_max = std::numeric_limits<int>::max();

constexpr Range at_least(double minimum) {
  return {.minimum = minimum, .maximum = {}};
}
/// Whole numbers from `minimum` to the largest int.
constexpr Range counts_from(double minimum) {
  return {.minimum = minimum, .maximum = count_max};
}
constexpr Range between(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum};
}
/// Range of a probability or a decay: with a decay of 1 old values would never fade.
constexpr Range from_0_below_1() {
  return {.minimum = 0, .maximum = 1, .below = true};
}
constexpr Range more_than(double minimum) {
  return {.minimum = minimum, .maximum = {}, .above = true};
}

/// Rule of layouts' settings.
inline constexpr std::string_view chosen_rule =
    "chosen with all others that are auto when a run starts, for plan.machine and the ranks that "
    "there are: the layout with the shortest predicted step";

std::span<const Key> model_keys();
std::span<const Key> parallel_keys();
std::span<const Key> train_keys();
std::span<const Key> optimizer_keys();
std::span<const Key> offload_keys();
std::span<const Key> numerics_keys();
std::span<const Key> data_keys();
std::span<const Key> checkpoint_keys();
std::span<const Key> comm_keys();
std::span<const Key> run_keys();
std::span<const Key> track_keys();
std::span<const Key> plan_keys();

}  // namespace trireme::schema
