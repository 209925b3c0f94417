// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/abi.hpp"

#include <span>
#include <string>
#include <vector>

namespace trireme::device::cudnn {

/// Throws base::Error (ExitCode::topology) with the library's words if a call failed.
void check(const Api& api, Status status, const std::string& call);

/// Type tag of the library for a C++ type: a call with another type is refused at run time there,
/// and does not compile here.
template <typename T>
inline constexpr Type type_of = T::no_such_type;
template <>
inline constexpr Type type_of<bool> = Type::boolean;
template <>
inline constexpr Type type_of<std::int64_t> = Type::int64;
template <>
inline constexpr Type type_of<char> = Type::character;
template <>
inline constexpr Type type_of<DataType> = Type::data_type;
template <>
inline constexpr Type type_of<PointwiseMode> = Type::pointwise_mode;
template <>
inline constexpr Type type_of<ReductionMode> = Type::reduction_mode;
template <>
inline constexpr Type type_of<HeuristicsMode> = Type::heuristics_mode;

/// Owner of a backend descriptor: made, given attributes, finalized, then read and referred to.
/// Calls that fail throw base::Error. The api outlives it.
class Descriptor {
 public:
  Descriptor(const Api& api, Kind kind);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  RawDescriptor raw() const { return raw_; }

  template <typename T>
  Descriptor& set(Attribute attribute, const T& value) {
    return set_raw(attribute, type_of<T>, 1, &value);
  }
  template <typename T>
  Descriptor& set_all(Attribute attribute, std::span<const T> values) {
    return set_raw(attribute, type_of<T>, static_cast<std::int64_t>(values.size()), values.data());
  }
  Descriptor& set(Attribute attribute, const Descriptor& value);
  Descriptor& set_all(Attribute attribute, std::span<const Descriptor> values);
  Descriptor& set_handle(Attribute attribute, Handle handle);
  Descriptor& set_pointers(Attribute attribute, std::span<void* const> pointers);
  Descriptor& finalize();

  std::int64_t get_int64(Attribute attribute) const;
  std::vector<NumericalNote> get_notes(Attribute attribute) const;
  /// Descriptors of this kind that the library fills in, as many as it has, at most `most`.
  std::vector<Descriptor> get_descriptors(Attribute attribute, Kind kind, std::int64_t most) const;

 private:
  Descriptor& set_raw(Attribute attribute, Type type, std::int64_t count, const void* values);
  Descriptor& set_addresses(Attribute attribute, Type type, std::span<void* const> addresses);
  void get_raw(Attribute attribute, Type type, std::int64_t most, std::int64_t& count,
               void* values) const;
  void release() noexcept;

  const Api* api_;
  Kind kind_;
  RawDescriptor raw_ = nullptr;
};

}  // namespace trireme::device::cudnn
