// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::topology {

/// A set of hardware threads by the operating system's numbers, ascending and without repeats.
class CpuSet {
 public:
  CpuSet() = default;
  CpuSet(std::initializer_list<int> pus) : CpuSet(std::vector<int>(pus)) {}
  explicit CpuSet(std::vector<int> pus);

  /// Set of the kernel's list form, "0-3,8". Refuses anything else and numbers above 1,048,575.
  static base::Result<CpuSet> parse(std::string_view text);

  bool empty() const { return pus_.empty(); }
  int size() const { return static_cast<int>(pus_.size()); }
  /// The lowest number; the set must not be empty.
  int first() const;
  bool contains(int pu) const;
  bool contains(const CpuSet& other) const;
  bool intersects(const CpuSet& other) const;
  const std::vector<int>& pus() const { return pus_; }

  CpuSet united(const CpuSet& other) const;
  CpuSet intersected(const CpuSet& other) const;

  /// The kernel's list form; "none" when empty.
  std::string text() const;

  bool operator==(const CpuSet&) const = default;

 private:
  std::vector<int> pus_;
};

/// "0-3,8" of ascending numbers; "none" when there are none.
std::string ranges_text(std::span<const int> ascending);

}  // namespace trireme::topology
