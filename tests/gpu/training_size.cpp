// SPDX-License-Identifier: Apache-2.0
#include "gpu/training_size.hpp"

namespace trireme::testing {

TrainingSize training_size() {
  return {20, 4, 32, 8};
}

}  // namespace trireme::testing
