// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/payload.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/file.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trireme::checkpoint {
namespace {

/// The same parts ascending, neighbours in file and memory as one.
std::vector<PayloadPart> joined(std::vector<PayloadPart> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const PayloadPart& a, const PayloadPart& b) { return a.byte < b.byte; });
  std::vector<PayloadPart> result;
  for (const auto& part : parts) {
    const bool continues =
        !result.empty() && result.back().end() == part.byte &&
        result.back().values.data() + result.back().values.size() == part.values.data();
    if (continues) {
      auto& values = result.back().values;
      values = {values.data(), values.size() + part.values.size()};
    } else {
      result.push_back(part);
    }
  }
  return result;
}

}  // namespace

Payload::Payload(hdf5::Structure structure, std::vector<PayloadPart> parts)
    : structure_(std::move(structure)), parts_(std::move(parts)) {}

std::vector<PayloadPart>::const_iterator Payload::first_meeting(std::uint64_t begin) const {
  return std::partition_point(parts_.begin(), parts_.end(),
                              [begin](const PayloadPart& each) { return each.end() <= begin; });
}

bool Payload::covers(std::uint64_t begin, std::uint64_t end) const {
  for (auto part = first_meeting(begin); begin < end; ++part) {
    if (part == parts_.end() || part->byte > begin) return false;
    begin = part->end();
  }
  return true;
}

std::optional<std::span<const std::byte>> Payload::in_place(std::uint64_t begin,
                                                            std::uint64_t end) const {
  const auto part = first_meeting(begin);
  if (part == parts_.end() || part->byte > begin || end > part->end()) return std::nullopt;
  const auto values = part->values.subspan(begin - part->byte, end - begin);
  const auto address = reinterpret_cast<std::uintptr_t>(values.data());
  if (address % OutputFile::direct_alignment != 0) return std::nullopt;
  return values;
}

template <typename Copy>
void Payload::gather(std::uint64_t begin, std::span<std::byte> memory, const Copy& copy) const {
  const auto end = begin + memory.size();
  auto part = first_meeting(begin);
  if (!covers(begin, end)) {
    base::read_at(structure_.file, memory, begin, "HDF5's structure");
  }
  for (; part != parts_.end() && part->byte < end; ++part) {
    const auto from = std::max(begin, part->byte);
    const auto to = std::min(end, part->end());
    copy(part->values.subspan(from - part->byte, to - from), &memory[from - begin]);
  }
}

void Payload::copy(std::uint64_t begin, std::span<std::byte> memory) const {
  gather(begin, memory, [](std::span<const std::byte> from, std::byte* to) {
    std::memcpy(to, from.data(), from.size());
  });
}

void Payload::copy_from(device::Device& device, std::uint64_t begin,
                        std::span<std::byte> memory) const {
  gather(begin, memory, [&device](std::span<const std::byte> from, std::byte* to) {
    // Any type of one byte.
    const auto bytes = static_cast<std::int64_t>(from.size());
    device.copy_out({const_cast<std::byte*>(from.data()), device::DType::e4m3, {bytes}}, to);
  });
  device.synchronize();
}

std::vector<PayloadPart> payload_parts(const Contents& contents, std::size_t rank,
                                       std::span<const device::Tensor> shards) {
  std::vector<PayloadPart> parts;
  for (const auto& bucket : contents.buckets) {
    if (!bucket.files.position_of(rank)) continue;
    // A shard may come in several runs of memory.
    std::uint64_t written = 0;
    while (written < bucket.shard_bytes()) {
      TRIREME_EXPECT(parts.size() < shards.size(), "a rank has the shard of each of its buckets");
      const auto& values = shards[parts.size()];
      TRIREME_EXPECT(values.dtype() == bucket.dtype && values.contiguous() &&
                         values.element_count() > 0 &&
                         written + values.byte_count() <= bucket.shard_bytes(),
                     "a shard has its bucket's type and length");
      parts.push_back({bucket.byte + written,
                       {static_cast<const std::byte*>(values.raw()), values.byte_count()}});
      written += values.byte_count();
    }
  }
  TRIREME_EXPECT(parts.size() == shards.size(), "a rank has the shards of its buckets alone");
  return joined(std::move(parts));
}

}  // namespace trireme::checkpoint
