// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/postmortem/postmortem.hpp"

namespace trireme::apps {

/// Checkpoints of a run for its postmortem: manifests are read, and the sizes of files.
postmortem::Checkpoints checkpoints_in(const std::filesystem::path& run);

}  // namespace trireme::apps
