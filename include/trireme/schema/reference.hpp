// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/schema.hpp"

#include <string>
#include <string_view>

namespace trireme::schema {

/// docs/configuration.md: how sources are layered and written, then every key.
std::string reference_markdown();

/// "integer", "one of gpt2, llama", with unit, range and auto: the second column of the table.
std::string kind_text(const Key& key);

}  // namespace trireme::schema
