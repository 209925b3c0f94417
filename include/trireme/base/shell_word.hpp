// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace trireme::base {

/// The text as one word of a POSIX shell, so that a command in a message can be pasted: as it is
/// where every letter is plain, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace trireme::base
