// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace trireme::data {

/// Canonical composition (NFC) of well-formed UTF-8, as Hugging Face tokenizers compute it: with
/// the tables of Unicode 9, later combining marks being plain characters. Returns the text itself,
/// or a view of `storage`.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace trireme::data
