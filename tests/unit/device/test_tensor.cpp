// SPDX-License-Identifier: Apache-2.0
#include "unit/device/test_tensor.hpp"

#include "trireme/base/philox.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <iostream>
#include <random>

namespace trireme::device::test {
namespace {

/// Quiet NaNs with contents that no instruction makes.
constexpr std::uint32_t poison_word = 0x7FC5BAD5;
constexpr std::uint16_t poison_half = 0x7FD5;
/// The NaN that no rounding makes.
constexpr std::uint8_t poison_byte = 0xFF;

bool is_poison(const Tensor& tensor, std::int64_t offset) {
  const auto* at = static_cast<const std::byte*>(tensor.raw()) +
                   offset * static_cast<std::int64_t>(size_of(tensor.dtype()));
  if (tensor.dtype() == DType::bf16) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return bits == poison_half;
  }
  if (tensor.dtype() == DType::e4m3) return std::to_integer<std::uint8_t>(*at) == poison_byte;
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return bits == poison_word;
}

std::vector<std::int64_t> offsets_of(const Tensor& tensor) {
  std::vector<std::int64_t> offsets{0};
  for (int index = 0; index < tensor.rank(); ++index) {
    std::vector<std::int64_t> next;
    for (const auto offset : offsets) {
      for (std::int64_t i = 0; i < tensor.dim(index); ++i) {
        next.push_back(offset + i * tensor.stride(index));
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

Tensor whole_of(void* data, DType dtype, const std::vector<std::int64_t>& shape) {
  switch (shape.size()) {
    case 1:
      return {data, dtype, {shape[0]}};
    case 2:
      return {data, dtype, {shape[0], shape[1]}};
    case 3:
      return {data, dtype, {shape[0], shape[1], shape[2]}};
    default:
      return {data, dtype, {shape.at(0), shape.at(1), shape.at(2), shape.at(3)}};
  }
}

}  // namespace

TestTensor::TestTensor(DType dtype, std::initializer_list<std::int64_t> shape, Spread spread) {
  // A contiguous tensor lies inside one run of memory, a strided one inside a larger tensor.
  constexpr std::int64_t guard = 32;
  constexpr std::int64_t before = 3;
  constexpr std::int64_t after = 5;
  std::vector<std::int64_t> outer;
  if (spread == Spread::contiguous) {
    std::int64_t count = 1;
    for (const auto length : shape) count *= length;
    outer = {count + 2 * guard};
  } else {
    for (const auto length : shape) outer.push_back(length + before + after);
  }
  memory_elements_ = 1;
  for (const auto length : outer) memory_elements_ *= static_cast<std::size_t>(length);
  memory_.resize(memory_elements_ * size_of(dtype));
  whole_ = whole_of(memory_.data(), dtype, outer);
  if (spread == Spread::contiguous) {
    view_ = Tensor(whole_.slice(0, guard, outer[0] - 2 * guard).raw(), dtype, shape);
  } else {
    view_ = whole_;
    int index = 0;
    for (const auto length : shape) {
      view_ = view_.slice(index++, before, length);
    }
  }
  offsets_ = offsets_of(view_);
  poison();
}

TestTensor& TestTensor::poison() {
  for (std::size_t i = 0; i < memory_elements_; ++i) {
    if (whole_.dtype() == DType::bf16) {
      std::memcpy(memory_.data() + i * 2, &poison_half, 2);
    } else if (whole_.dtype() == DType::e4m3) {
      std::memcpy(memory_.data() + i, &poison_byte, 1);
    } else {
      std::memcpy(memory_.data() + i * 4, &poison_word, 4);
    }
  }
  return *this;
}

TestTensor& TestTensor::randomise(std::uint64_t stream, float scale) {
  std::vector<float> values(offsets_.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = base::philox_normal(run_seed(), stream, i) * scale;
  }
  return set(values);
}

TestTensor& TestTensor::set(const std::vector<float>& values) {
  REQUIRE(values.size() == offsets_.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (view_.dtype() == DType::bf16) {
      view_.bf16()[offsets_[i]] = to_bf16(values[i]);
    } else if (view_.dtype() == DType::e4m3) {
      view_.e4m3()[offsets_[i]] = to_e4m3(values[i]);
    } else {
      view_.f32()[offsets_[i]] = values[i];
    }
  }
  return *this;
}

TestTensor& TestTensor::set_integers(const std::vector<std::int32_t>& values) {
  REQUIRE(values.size() == offsets_.size());
  for (std::size_t i = 0; i < values.size(); ++i) view_.i32()[offsets_[i]] = values[i];
  return *this;
}

std::vector<float> TestTensor::values() const {
  std::vector<float> values;
  values.reserve(offsets_.size());
  for (const auto offset : offsets_) {
    switch (view_.dtype()) {
      case DType::bf16:
        values.push_back(to_float(view_.bf16()[offset]));
        break;
      case DType::e4m3:
        values.push_back(to_float(view_.e4m3()[offset]));
        break;
      case DType::f32:
      case DType::i32:
        values.push_back(view_.f32()[offset]);
        break;
    }
  }
  return values;
}

bool TestTensor::fully_written() const {
  for (const auto offset : offsets_) {
    if (is_poison(view_, offset)) return false;
  }
  return true;
}

bool TestTensor::untouched_outside() const {
  const auto bytes = static_cast<std::byte*>(view_.raw()) - memory_.data();
  const auto first = bytes / static_cast<std::int64_t>(size_of(view_.dtype()));
  std::vector<bool> inside(memory_elements_);
  for (const auto offset : offsets_) inside[static_cast<std::size_t>(first + offset)] = true;
  for (std::size_t i = 0; i < memory_elements_; ++i) {
    if (!inside[i] && !is_poison(whole_, static_cast<std::int64_t>(i))) return false;
  }
  return true;
}

std::uint64_t run_seed() {
  static const std::uint64_t seed = [] {
    const auto asked = Catch::rngSeed();
    const std::uint64_t chosen = asked != 0 ? asked : std::random_device{}();
    std::cerr << "seed of the random inputs: --rng-seed " << chosen << '\n';
    return chosen;
  }();
  return seed;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

double gradient_error(TestTensor& x, const std::vector<float>& gradient,
                      const std::function<double()>& loss, float step) {
  std::vector<float> numeric(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    auto& element = x.f32_at(static_cast<std::int64_t>(i));
    const float kept = element;
    element = kept + step;
    const double above = loss();
    // The step as rounded: what was stored, not what was asked.
    const double width = static_cast<double>(element) - static_cast<double>(kept - step);
    element = kept - step;
    const double below = loss();
    element = kept;
    numeric[i] = static_cast<float>((above - below) / width);
  }
  return relative_error(gradient, numeric);
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

}  // namespace trireme::device::test
