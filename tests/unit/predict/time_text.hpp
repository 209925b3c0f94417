// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/time.hpp"

#include <catch2/catch.hpp>

#include <string>

/// Times in failures of checks: no stream takes numbers of 128 bits.
template <>
struct Catch::StringMaker<trireme::predict::Time> {
  static std::string convert(const trireme::predict::Time& time) {
    return std::to_string(static_cast<double>(time.count())) + " ps";
  }
};
