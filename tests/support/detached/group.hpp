#pragma once

#include "trireme/comm/process_group.hpp"

#include "support/detached/stream.hpp"

#include <memory>

namespace trireme::testing {

/// A staged group over `host` on a detached device, for tests whose tensors lie in host memory:
/// each operation's tensors are copied to the device before it, and back when it is done.
std::unique_ptr<comm::ProcessGroup> make_detached_group(std::unique_ptr<comm::ProcessGroup> host,
                                                        Haste haste, std::size_t piece_bytes);

}  // namespace trireme::testing
