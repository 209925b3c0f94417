// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/save.hpp"

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::tests {

/// A run with steps 1 to `steps` of one small tensor, or of several in the last of them.
inline std::filesystem::path run_with_steps(const TemporaryFolder& folder, int steps,
                                            int tensors = 1) {
  const auto world = comm::make_local_group("world", base::Rank(0));
  std::vector<float> numbers(1000, 0.5F);
  const device::Tensor data(numbers.data(), device::DType::f32, {10, 100});
  const layout::Shape shape{10, 100};
  for (int step = 1; step <= steps; ++step) {
    checkpoint::ContentsBuilder builder;
    checkpoint::SaveRequest request{checkpoint::checkpoints_of_run(folder.path()),
                                    step,
                                    1000,
                                    "trireme test",
                                    {{"seed", 7}},
                                    {},
                                    {}};
    for (int index = 0; index < (step == steps ? tensors : 1); ++index) {
      const auto name =
          index == 0 ? "model/w" : "model/" + std::string(100, 'w') + std::to_string(index);
      const auto bucket = builder.add_bucket(data.dtype(), {0, 1, 1}, data.element_count());
      builder.add_part(name, shape, layout::whole(shape), bucket, 0);
      request.shards.push_back(data);
    }
    request.contents = builder.take();
    checkpoint::save(request, *world);
  }
  return folder.path();
}

}  // namespace trireme::tests
