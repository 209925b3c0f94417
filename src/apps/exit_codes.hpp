// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"

#include <array>
#include <string_view>

namespace trireme::apps {

struct ExitMeaning {
  base::ExitCode code;
  std::string_view meaning;
};

/// Exit codes with their meanings, for help and man page.
inline constexpr std::array<ExitMeaning, 8> exit_meanings{{
    {base::ExitCode::done, "done"},
    {base::ExitCode::usage, "usage: command line, configuration, environment"},
    {base::ExitCode::launch, "the launcher and the mesh do not fit together"},
    {base::ExitCode::topology, "topology or device"},
    {base::ExitCode::peer, "a peer or a collective failed, or did not come in time"},
    {base::ExitCode::checkpoint, "checkpoint or data; output could not be written"},
    {base::ExitCode::internal, "a defect of Trireme"},
    {base::ExitCode::requeue, "stopped in good order: run it again to go on"},
}};

}  // namespace trireme::apps
