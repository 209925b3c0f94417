// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace trireme::checkpoint {

/// Number of threads: `asked`, or for 0 one per core that this process may use, at most four, which
/// saturate storage.
int thread_count(int asked);

/// Number of threads that read, so that as many as `asked` verify at once: half of them wait for
/// the disk.
int reading_threads(int asked);

/// Calls work(index) for every index below `count` on that many threads, this one among them.
/// The first exception ends the rest and is thrown again here.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace trireme::checkpoint
