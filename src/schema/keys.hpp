// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/schema.hpp"

#include <limits>
#include <vector>

/// The rows of the schema, one function per section or two. Private to the room.
namespace trireme::schema {

/// Largest count: what an int holds.
inline constexpr double count_max = std::numeric_limits<int>::max();

inline Range at_least(double minimum) {
  return {.minimum = minimum, .maximum = {}};
}
/// Whole numbers from `minimum` to the largest int.
inline Range counts_from(double minimum) {
  return {.minimum = minimum, .maximum = count_max};
}
inline Range between(double minimum, double maximum) {
  return {.minimum = minimum, .maximum = maximum};
}
/// Range of a probability or a decay: with a decay of 1 old values would never fade.
inline Range from_0_below_1() {
  return {.minimum = 0, .maximum = 1, .below = true};
}
inline Range more_than(double minimum) {
  return {.minimum = minimum, .maximum = {}, .above = true};
}

std::vector<Key> model_keys();
std::vector<Key> parallel_keys();
std::vector<Key> train_keys();
std::vector<Key> optimizer_keys();
std::vector<Key> numerics_keys();
std::vector<Key> data_keys();
std::vector<Key> checkpoint_keys();
std::vector<Key> comm_keys();
std::vector<Key> run_keys();
std::vector<Key> track_keys();

}  // namespace trireme::schema
