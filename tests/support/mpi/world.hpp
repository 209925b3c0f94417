// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"

#include <string>

namespace trireme::testing {

/// The MPI of this test's process, started before the first test case.
comm::MpiRuntime& mpi();

/// Tells the watchdog that a long test case has come to its next part.
void still_going(const std::string& part);

}  // namespace trireme::testing
