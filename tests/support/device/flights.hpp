// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"
#include "trireme/device/operations.hpp"
#include "trireme/device/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <stdexcept>

namespace trireme::testing {

/// Tensors that collectives, messages and copies under way read or write. Nobody else may write the
/// former, or touch the latter, before the operation was waited for.
class Flights {
 public:
  struct Operand {
    device::Tensor tensor;
    device::Role role = device::Role::input;
  };
  struct Flight {
    const char* operation;
    Operand operand;
  };
  using Place = std::list<Flight>::iterator;

  Place begin(const char* operation, const Operand& operand) {
    return flights_.insert(flights_.end(), {operation, operand});
  }
  void end(Place place) { flights_.erase(place); }

  /// Throws std::logic_error for a use that meets a flight.
  void check(const char* operation, const char* name, const Operand& used) const {
    for (const auto& flight : flights_) {
      const bool reads = used.role == device::Role::input;
      if (reads && flight.operand.role == device::Role::input) continue;
      if (!overlap(used.tensor, flight.operand.tensor)) continue;
      throw std::logic_error(
          base::format("{} {} {} ({}), which {} under way {}", operation,
                       reads ? "reads" : "writes", name, used.tensor.text(), flight.operation,
                       flight.operand.role == device::Role::input ? "reads" : "writes"));
    }
  }

 private:
  /// Address behind the last element.
  static std::uintptr_t end_of(const device::Tensor& tensor) {
    std::int64_t last = 0;
    for (int index = 0; index < tensor.rank(); ++index) {
      last += (tensor.dim(index) - 1) * tensor.stride(index);
    }
    const auto bytes = static_cast<std::size_t>(last + 1) * device::size_of(tensor.dtype());
    return reinterpret_cast<std::uintptr_t>(tensor.raw()) + bytes;
  }
  static bool overlap(const device::Tensor& one, const device::Tensor& other) {
    if (one.element_count() == 0 || other.element_count() == 0) return false;
    return reinterpret_cast<std::uintptr_t>(one.raw()) < end_of(other) &&
           reinterpret_cast<std::uintptr_t>(other.raw()) < end_of(one);
  }

  std::list<Flight> flights_;
};

/// Device that refuses uses of tensors under way.
class WatchesFlights {
 public:
  virtual ~WatchesFlights() = default;
  virtual Flights& flights() = 0;
};

}  // namespace trireme::testing
