// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/cpu_set.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace trireme::topology {
namespace {

constexpr int highest_number = (1 << 20) - 1;

std::optional<int> number_of(std::string_view text) {
  const auto number = base::number_in<int>(text);
  return number && *number >= 0 && *number <= highest_number ? number : std::nullopt;
}

}  // namespace

CpuSet::CpuSet(std::vector<int> pus) : pus_(std::move(pus)) {
  std::sort(pus_.begin(), pus_.end());
  pus_.erase(std::unique(pus_.begin(), pus_.end()), pus_.end());
}

base::Result<CpuSet> CpuSet::parse(std::string_view text) {
  std::vector<int> pus;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = rest.find(',');
    const auto range = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const auto dash = range.find('-');
    const auto low = number_of(range.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : number_of(range.substr(dash + 1));
    if (!low || !high || *low > *high) {
      return base::usage_failure(base::format(
          "'{}' is not a list of CPUs (part '{}'); write numbers and ranges up to {}, like 0-3,8",
          text, range, highest_number));
    }
    for (int pu = *low; pu <= *high; ++pu) pus.push_back(pu);
    if (pus.size() > 2 * static_cast<std::size_t>(highest_number)) {
      return base::usage_failure("a list of CPUs names the same ones over and over");
    }
  }
  return CpuSet(std::move(pus));
}

int CpuSet::first() const {
  TRIREME_EXPECT(!pus_.empty(), "first() of an empty set of CPUs");
  return pus_.front();
}

bool CpuSet::contains(int pu) const {
  return std::binary_search(pus_.begin(), pus_.end(), pu);
}

bool CpuSet::contains(const CpuSet& other) const {
  return std::includes(pus_.begin(), pus_.end(), other.pus_.begin(), other.pus_.end());
}

bool CpuSet::intersects(const CpuSet& other) const {
  return std::any_of(other.pus_.begin(), other.pus_.end(), [this](int pu) { return contains(pu); });
}

CpuSet CpuSet::united(const CpuSet& other) const {
  CpuSet result;
  std::set_union(pus_.begin(), pus_.end(), other.pus_.begin(), other.pus_.end(),
                 std::back_inserter(result.pus_));
  return result;
}

CpuSet CpuSet::intersected(const CpuSet& other) const {
  CpuSet result;
  std::set_intersection(pus_.begin(), pus_.end(), other.pus_.begin(), other.pus_.end(),
                        std::back_inserter(result.pus_));
  return result;
}

std::string CpuSet::text() const {
  return ranges_text(pus_);
}

std::string ranges_text(std::span<const int> ascending) {
  if (ascending.empty()) return "none";
  std::string text;
  for (std::size_t begin = 0; begin < ascending.size();) {
    std::size_t end = begin + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += base::format("{}", ascending[begin]);
    if (end - begin > 1) text += base::format("-{}", ascending[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace trireme::topology
