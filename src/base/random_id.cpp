// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/random_id.hpp"

#include "trireme/base/format.hpp"

#include <random>

namespace trireme::base {

std::string random_id() {
  std::random_device source;
  std::string text;
  for (int word = 0; word < 4; ++word) text += format("{:08x}", source());
  return text;
}

}  // namespace trireme::base
