// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <map>
#include <string>
#include <string_view>

namespace trireme::layers {

struct StageContext;

/// When FP8 copies of weights are made.
enum class WeightCopies {
  for_each_use,  ///< in the workspace, while a product runs
  kept           ///< once for all products until parameters change: one more byte an element
};

/// FP8 copies of the matrices that layers' products read, with one scale a matrix.
class KeptCopies {
 public:
  KeptCopies(const model::StageParameters& stage, device::Arena& arena);

  /// Collective over the tensor-parallel group, joined: the device's next kernel finds copies of
  /// what the weights are now, and the host has not waited.
  void renew(const StageContext& context) const;
  /// The copy of the fused parameter with this name.
  const device::Quantised& of(std::string_view name) const;

 private:
  struct Copy {
    device::Tensor weight;
    device::Quantised copy;
  };
  std::map<std::string, Copy, std::less<>> copies_;
};

}  // namespace trireme::layers
