// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <cstring>

/// Preconditions on the arguments of collectives; a breach is a defect of Trireme
/// (ExitCode::internal).
namespace trireme::comm {

void expect_whole(const device::Tensor& x);
/// `parts` equal parts of `whole`, each as long as `part`, of one type.
void expect_parts(const device::Tensor& whole, const device::Tensor& part, int parts);
/// The same for parts of the lengths of `cuts`, of which `part` is number `position`; equal parts
/// where there are none.
void expect_parts(const device::Tensor& whole, const device::Tensor& part, int parts,
                  const Cuts& cuts, int position);
/// Offsets in bytes of `parts` parts of `whole`, and its end.
std::vector<std::size_t> begins_of_parts(const device::Tensor& whole, int parts, const Cuts& cuts);
/// Equal shapes for an all-to-all: `parts` parts each.
void expect_alike(const device::Tensor& from, const device::Tensor& to, int parts);
void expect_position(int position, int size);

inline std::byte* bytes_of(const device::Tensor& x) {
  return static_cast<std::byte*>(x.raw());
}

/// memcpy that accepts zero bytes and skips a copy onto itself.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t count) {
  if (count > 0 && to != from) std::memcpy(to, from, count);
}

}  // namespace trireme::comm
