// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/postmortem/postmortem.hpp"

/// RUN/failure.json as a postmortem tells it. Private to the room.
namespace trireme::postmortem {

/// Nothing where there is no such file; fails where it is no failure's.
base::Result<std::optional<NotedFailure>> noted_failure(const std::filesystem::path& run);

}  // namespace trireme::postmortem
