// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_nccl/fake_nccl.hpp"

#include <array>
#include <cstddef>
#include <cstring>

namespace trireme::testing {

/// Functions of C know no object: each table has functions of its own, and its object here.
inline constexpr std::size_t fake_slots = 8;
extern std::array<FakeNccl*, fake_slots> fakes;

/// Words that an id of FakeNccl holds.
struct IdWords {
  std::int32_t maker = -1;
  std::int32_t number = -1;
};
inline IdWords words_of(const comm::nccl::UniqueId& id) {
  IdWords words;
  std::memcpy(&words, id.bytes.data(), sizeof words);
  return words;
}

}  // namespace trireme::testing
