// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::spank {

/// close_range() came with Linux 5.9; `listed` is what older systems can do.
enum class Closing { by_range, listed };

/// Closes all descriptors of this process. Makes only calls that are safe after fork() in a process
/// with threads; where the system refuses the range, it closes what /proc lists.
void close_all_descriptors(Closing how = Closing::by_range);

}  // namespace trireme::spank
