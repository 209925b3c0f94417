// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace trireme::comm {

/// Kind of stores that a copy uses.
enum class Storing { ordinary, streaming };

/// stream_bytes(), or an ordinary copy.
void store_bytes(Storing how, std::byte* to, const std::byte* from, std::size_t count);

/// Copies data that a peer reads next with non-temporal stores: a core that shares no cache with
/// this one reads memory several times faster than lines which this one has modified. Short copies
/// stay in the cache. Later stores (a counter that peers poll) become visible after the data.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t count);

constexpr std::size_t cache_line = 64;
/// The same of whole lines; `to` at the begin of one. In a file for each architecture.
void stream_lines(std::byte* to, const std::byte* from, std::size_t count);

namespace avx512 {
/// stream_lines() with stores of a whole line: a third faster than in parts of one.
void stream_lines(std::byte* to, const std::byte* from, std::size_t count);
}  // namespace avx512

}  // namespace trireme::comm
