// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::offload> offload{.concern = Concern::layout};

constexpr Key offload_rows[] = {
    offload.key<&OffloadOptions::optimizer>(
        "none",
        "Memory that masters and the optimizer's state lie in between updates: `none`: the "
        "device's; `host`: host memory, pinned for GPUs, from which an update fetches them in "
        "chunks, beside its work on the chunk before, and stores them behind it. Changes no "
        "number. Not for rules that update whole matrices. On CPUs it moves what is in host "
        "memory anyway, for tests."),
    offload.key<&OffloadOptions::chunk_bytes>(
        "64MiB", {.type = Type::bytes, .unit = "bytes", .range = between(4096, 17179869184)},
        "Most device memory of a chunk, of which three are under way."),
};

}  // namespace

std::span<const Key> offload_keys() {
  return offload_rows;
}

}  // namespace trireme::schema
