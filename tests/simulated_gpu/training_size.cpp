// SPDX-License-Identifier: Apache-2.0
#include "gpu/training_size.hpp"

namespace trireme::testing {

TrainingSize training_size() {
  return {3, 2, 8, 2};
}

}  // namespace trireme::testing
