#pragma once

#include "trireme/comm/mpi_runtime.hpp"

namespace trireme::testing {

/// The MPI of this test's process, started before the first test case.
comm::MpiRuntime& mpi();

}  // namespace trireme::testing
