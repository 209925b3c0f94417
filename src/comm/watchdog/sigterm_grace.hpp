// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::comm {

/// Delays the end by SIGTERM from this call on. When one rank dies, launchers send the others
/// SIGTERM at once and kill them a second later; a rank that waits for the dead one uses that
/// second to detect and report the death. Has no effect where SIGTERM is handled or blocked
/// already.
void defer_sigterm();

}  // namespace trireme::comm
