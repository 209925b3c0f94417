// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include <string>
#include <vector>

namespace trireme::config {

/// Checks that the values fit together. Only what needs no machine and no file is checked here:
/// shapes of the model are checked where the model is made, degrees against the world size where
/// the mesh is made. The failure lists every mistake, one a line. Config::resolve() has called it.
base::Status check(const Config& config);

/// Rule of a llama3 scaling: wavelengths between the two factors are blended.
constexpr bool can_blend(double low_freq_factor, double high_freq_factor) {
  return low_freq_factor < high_freq_factor;
}

/// Values that a run takes though it cannot follow them to their end, with what it does instead,
/// one sentence each: a short trial of a configuration need not change them.
std::vector<std::string> notes(const Config& config);

}  // namespace trireme::config
