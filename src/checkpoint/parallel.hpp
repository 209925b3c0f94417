// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

namespace trireme::checkpoint {

/// Number of threads: `asked`, or for 0 one per core that this process may use, at most four, which
/// saturate storage.
int thread_count(int asked);

/// Identity of the cores that this process may use: that of all ranks that share them.
std::uint64_t id_of_cores();
/// One per core of this rank's part, where so many ranks share the cores; at most four.
int threads_of_part(int ranks);

/// Number of threads that read a file, so that as many as `asked` verify at once: half of them wait
/// for the disk; of those that read an object more do, for the server.
int reading_threads(const std::filesystem::path& path, int asked);
/// The same of threads that write; of an object fewer, as each may have a part of an upload in
/// memory.
int writing_threads(const std::filesystem::path& path, int asked);

/// Calls work(index) for every index below `count` on that many threads, this one among them.
/// The first exception ends the rest and is thrown again here; `on_failure` is called before that
/// waits for the other threads, which may wait for work that will not be done.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work,
                  const std::function<void()>& on_failure = nullptr);

}  // namespace trireme::checkpoint
