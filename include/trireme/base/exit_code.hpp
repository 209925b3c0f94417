// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::base {

/// Exit code of a run. These numbers are API: batch scripts and schedulers act on them.
enum class ExitCode : int {
  done = 0,
  usage = 2,       ///< command line, configuration, environment
  launch = 3,      ///< launcher and mesh do not fit together
  topology = 4,    ///< machine or device
  peer = 5,        ///< a peer or a collective failed
  checkpoint = 6,  ///< checkpoint or data
  internal = 70,   ///< a defect of Trireme
  requeue = 75,    ///< stopped in good order; run me again
};

}  // namespace trireme::base
