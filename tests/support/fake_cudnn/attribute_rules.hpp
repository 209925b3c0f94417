// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/abi.hpp"

#include <cstdint>
#include <vector>

namespace trireme::testing {

inline constexpr std::int64_t tensor_dimensions = 4;

/// Values that an attribute takes: their type, how many at most, and whether there must be some.
struct AttributeRule {
  device::cudnn::Attribute attribute;
  device::cudnn::Type type;
  std::int64_t most;
  bool required;
};

/// Rules of the attributes that descriptors of a kind have; none of an unknown kind.
const std::vector<AttributeRule>& rules_of(device::cudnn::Kind kind);

}  // namespace trireme::testing
