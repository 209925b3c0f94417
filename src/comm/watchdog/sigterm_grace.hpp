// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::comm {

/// When one rank dies, launchers ask the others to end (SIGTERM) at once and kill them a second
/// later. From this call on, a request to end is met after that second, so that a rank that
/// waits for the dead one finds out and says so. Leaves alone who handles SIGTERM already.
void defer_sigterm();

}  // namespace trireme::comm
