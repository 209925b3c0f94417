// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace trireme::comm {

/// "rank 3", "ranks 0, 1", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 9992 more".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace trireme::comm
