// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include "support/device/operand_kernels.hpp"
#include "support/simt/marks.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace trireme::device::simt {

/// Fault of a kernel that did what it may not; the text names kernel, block, thread and line.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Access { read, write };

/// Bytes that kernels moved between memory and registers, and in how many accesses.
struct Traffic {
  std::int64_t read_bytes = 0;
  std::int64_t reads = 0;
  std::int64_t written_bytes = 0;
  std::int64_t writes = 0;
};

/// Memory that kernels may touch.
class Target {
 public:
  virtual ~Target() = default;
  /// The address of elements [index, index + count) of `bytes` each, seen from `origin`, after all
  /// checks; `origin` lies in this memory.
  virtual void* check(const void* origin, std::int64_t index, int count, std::size_t bytes,
                      Access access, const Place& where) = 0;
};

/// All memory that there is for kernels.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  /// Where the address lies, null for null; throws if nowhere.
  virtual Target* find(const void* address) = 0;
  /// "element 3 of 'dx' (f32 [2, 8])": what lies there.
  virtual std::string describe(const void* address) const = 0;
};

/// One run of elements of equal size, with what is known of each.
class Allocation final : public Target {
 public:
  Allocation(std::byte* base, std::size_t element_bytes, std::size_t count);

  void* check(const void* origin, std::int64_t index, int count, std::size_t bytes, Access access,
              const Place& where) override;

  bool contains(const void* address) const;
  const Traffic& traffic() const { return traffic_; }
  std::byte* base() const { return base_; }
  std::size_t element_bytes() const { return element_bytes_; }
  std::size_t count() const { return states_.size(); }
  void grant(std::size_t index, Role role);
  /// The first element that should have been written and was not; count() if there is none.
  std::size_t first_unwritten() const;

 private:
  enum State : std::uint8_t { inside = 1, written = 2, writable = 4, owed = 8 };

  std::byte* base_;
  std::size_t element_bytes_;
  std::vector<std::uint8_t> states_;
  std::vector<Marks> marks_;
  Traffic traffic_;
};

/// The global memory of one operation: the tensors that it was given, and its workspace. Anything
/// else is out of bounds.
class Memory final : public AddressSpace {
 public:
  /// Before the first find(). Views of the same memory may overlap.
  void declare(std::string name, const Tensor& tensor, Role role);
  /// Memory that nobody has written; lives as long as this.
  void* workspace(std::size_t element_bytes, std::size_t count);

  Target* find(const void* address) override;
  std::string describe(const void* address) const override;
  /// By the tensors' names, of those that share no memory; "workspace" for all of it.
  std::map<std::string, Traffic> traffic() const;
  /// Throws if an output has an element that was never written.
  void expect_written(const std::string& operation);

 private:
  struct Declared {
    std::string name;
    Tensor tensor;
    Role role;
    std::byte* begin;
    std::byte* end;
  };
  void settle();

  std::vector<Declared> declared_;
  std::vector<std::unique_ptr<Allocation>> allocations_;
  std::vector<std::unique_ptr<std::byte[]>> workspaces_;
  bool settled_ = false;
};

}  // namespace trireme::device::simt
