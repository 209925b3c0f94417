// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace trireme::testing {

/// How a child process ends, and what it says on stderr.
struct End {
  int signal = 0;
  std::string words;
};

/// End of a child that does this, with nobody to catch its faults.
End end_of(const std::function<void()>& deed);

}  // namespace trireme::testing
