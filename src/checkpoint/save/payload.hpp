// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/contents.hpp"
#include "trireme/device/device.hpp"

#include "checkpoint/hdf5/structure.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// Contiguous values and the byte of the file at which they begin.
struct PayloadPart {
  std::uint64_t byte;
  std::span<const std::byte> values;
  std::uint64_t end() const { return byte + values.size(); }
};

/// Bytes of a step's file but for the sums at its end: values of tensors, and HDF5's structure
/// around them.
class Payload {
 public:
  /// `parts` ascend by byte; what they do not cover is taken from the structure.
  Payload(hdf5::Structure structure, std::vector<PayloadPart> parts);

  std::uint64_t bytes() const { return structure_.bytes; }
  /// True if parts hold every byte of the range.
  bool covers(std::uint64_t begin, std::uint64_t end) const;
  /// The values of a range, where one part has them at an address from which files are written
  /// directly.
  std::optional<std::span<const std::byte>> in_place(std::uint64_t begin, std::uint64_t end) const;
  /// Puts the bytes from `begin` on together in `memory`.
  void copy(std::uint64_t begin, std::span<std::byte> memory) const;
  /// The same of parts that lie on a device. Host-blocking: yes.
  void copy_from(device::Device& device, std::uint64_t begin, std::span<std::byte> memory) const;

 private:
  template <typename Copy>
  void gather(std::uint64_t begin, std::span<std::byte> memory, const Copy& copy) const;
  std::vector<PayloadPart>::const_iterator first_meeting(std::uint64_t begin) const;

  hdf5::Structure structure_;
  std::vector<PayloadPart> parts_;
};

/// Parts of a rank's file by its shards, neighbours in file and memory as one.
std::vector<PayloadPart> payload_parts(const Contents& contents, std::size_t rank,
                                       std::span<const device::Tensor> shards);

}  // namespace trireme::checkpoint
