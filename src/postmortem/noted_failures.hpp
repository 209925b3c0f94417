// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/postmortem/postmortem.hpp"

/// RUN/failure.json and those of earlier starts. Private to the room.
namespace trireme::postmortem {

/// Nothing where there is no such file; fails where it is no failure's.
base::Result<std::optional<NotedFailure>> read_failure(const std::filesystem::path& path);

}  // namespace trireme::postmortem
