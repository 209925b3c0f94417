// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"

#include <cstdint>
#include <vector>

namespace trireme::data {

/// Ids around a single text.
struct Surroundings {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
};

/// Tokens around a text, from the field "post_processor": ByteLevel (which moves offsets only),
/// TemplateProcessing and a Sequence of these with one template at most. Others are refused by
/// name.
base::Result<Surroundings> read_post_processor(const base::Json& json);

}  // namespace trireme::data
