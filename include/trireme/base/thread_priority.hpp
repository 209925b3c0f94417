// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::base {

/// Gives the calling thread, and threads that it starts, the lowest priority: for work beside
/// training on its cores. Training waits for its thread that has lost its core; a thread of the
/// lowest priority takes 1.5 % of a busy core (the weights of Linux' nice 0 and 19 are 1024 and
/// 15), and all of an idle one. Failure costs speed alone.
void yield_cores_to_training();

}  // namespace trireme::base
