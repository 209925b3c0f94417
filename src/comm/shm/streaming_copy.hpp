// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace trireme::comm {

/// Which stores a copy is made of.
enum class Storing { ordinary, streaming };

/// stream_bytes(), or an ordinary copy.
void store_bytes(Storing how, std::byte* to, const std::byte* from, std::size_t count);

/// Copies what a peer will read next, past this core's caches: a core that shares no cache with
/// this one reads memory several times faster than lines which this one has modified. Short
/// copies stay in the cache. What follows (a counter that peers look at) is seen after the data.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t count);

namespace avx512 {
/// Whole lines of 64 bytes; `to` at the begin of one. A third faster than in parts of a line.
void stream_lines(std::byte* to, const std::byte* from, std::size_t count);
}  // namespace avx512

}  // namespace trireme::comm
