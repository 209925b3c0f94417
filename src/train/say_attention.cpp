// SPDX-License-Identifier: Apache-2.0
#include "say_attention.hpp"

#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"

namespace trireme::train {

void say_attention(const device::Kernels& kernels, const device::AttentionSize& size,
                   comm::ProcessGroup& world) {
  const auto text = comm::agree(world, kernels.attention_text(size));
  if (text.sentence.empty()) return;
  switch (text.kind) {
    case device::AttentionText::Kind::as_wished:
      return base::log::info("train", "{}", text.sentence);
    case device::AttentionText::Kind::slower:
      break;
  }
  base::log::warning("train", "{}", text.sentence);
}

}  // namespace trireme::train
