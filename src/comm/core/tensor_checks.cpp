// SPDX-License-Identifier: Apache-2.0
#include "comm/core/tensor_checks.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

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

void expect_parts(const device::Tensor& whole, const device::Tensor& part, int parts,
                  const Cuts& cuts, int position) {
  if (cuts.empty()) return expect_parts(whole, part, parts);
  expect_whole(whole);
  expect_whole(part);
  const auto index = static_cast<std::size_t>(position);
  const bool cover = std::ssize(cuts) == parts + 1 && cuts.front() == 0 &&
                     cuts.back() == whole.element_count() &&
                     std::is_sorted(cuts.begin(), cuts.end());
  TRIREME_EXPECT(cover, base::format("{} cuts are not those of {} into {} parts", cuts.size(),
                                     whole.text(), parts));
  TRIREME_EXPECT(
      whole.dtype() == part.dtype() && part.element_count() == cuts[index + 1] - cuts[index],
      base::format("{} is not part {} of {}", part.text(), position, whole.text()));
}

std::vector<std::size_t> begins_of_parts(const device::Tensor& whole, int parts, const Cuts& cuts) {
  const auto count = static_cast<std::size_t>(parts);
  const auto elements = static_cast<std::size_t>(whole.element_count());
  std::vector<std::size_t> begins;
  for (std::size_t part = 0; part <= count; ++part) {
    const auto begin =
        cuts.empty() ? part * elements / count : static_cast<std::size_t>(cuts[part]);
    begins.push_back(begin * device::size_of(whole.dtype()));
  }
  return begins;
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
