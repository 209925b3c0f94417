// SPDX-License-Identifier: Apache-2.0
#include "comm/core/tensor_checks.hpp"

#include "trireme/base/format.hpp"

namespace trireme::comm {

void expect_whole(const device::Tensor& x) {
  TRIREME_EXPECT(x.contiguous(), "collectives take contiguous tensors, not " + x.text());
}

void expect_parts(const device::Tensor& whole, const device::Tensor& part, int parts) {
  expect_whole(whole);
  expect_whole(part);
  TRIREME_EXPECT(
      whole.dtype() == part.dtype() && whole.element_count() == part.element_count() * parts,
      base::format("{} is not {} parts like {}", whole.text(), parts, part.text()));
}

void expect_alike(const device::Tensor& from, const device::Tensor& to, int parts) {
  expect_whole(from);
  expect_whole(to);
  TRIREME_EXPECT(
      from.dtype() == to.dtype() && from.element_count() == to.element_count() &&
          from.element_count() % parts == 0,
      base::format("all_to_all from {} to {} among {} ranks", from.text(), to.text(), parts));
  TRIREME_EXPECT(from.raw() != to.raw() || from.element_count() == 0,
                 "all_to_all needs a second tensor");
}

void expect_position(int position, int size) {
  TRIREME_EXPECT(position >= 0 && position < size,
                 base::format("position {} in a process group of {}", position, size));
}

}  // namespace trireme::comm
