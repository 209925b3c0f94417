// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include <string>
#include <vector>

namespace trireme::apps {

/// Keys of a layout that are `auto`: a search chooses their values.
std::vector<std::string> keys_to_choose(const config::Config& config);

/// Refuses keys to choose, where neither ranks nor a machine are known.
base::Status check_chosen(const config::Config& config);

struct ChosenLayout {
  config::Config config;
  /// "tp=2,pp=1,dp=4,mbs=1 is chosen for plan.machine ...: ...; next ..."; empty where nothing was
  /// to be chosen.
  std::string sentence;
};

/// The configuration with the best layout on so many ranks of the machine of plan.machine, or of
/// `machine`, if that is given. The same on all ranks: it follows from the configuration, the
/// machine file and their number.
base::Result<ChosenLayout> with_chosen_layout(const config::Config& config, int ranks,
                                              const std::string& machine = {}, int threads = 1);

/// The same on the ranks that the launcher has started.
base::Result<ChosenLayout> with_chosen_layout(const config::Config& config,
                                              const base::Environment& environment);

}  // namespace trireme::apps
