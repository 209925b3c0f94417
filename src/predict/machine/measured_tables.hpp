// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/predict/machine.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Tables in machine files: rows apart by ';', their numbers by ','. Private to the room.
namespace trireme::predict {

/// A phrase for "key = text PROBLEM (...); fix" where the text is no table of so many columns of
/// numbers above 0, the first ascending if asked.
enum class FirstColumn { any, ascending };
base::Status check_table(std::string_view text, std::size_t columns, FirstColumn first);

/// Rows of texts that check_table() accepts.
std::vector<MeasuredProduct> products_of(std::string_view text);
std::vector<MeasuredMessage> messages_of(std::string_view text);

/// The inverse of both; empty without rows.
std::string table_text(const std::vector<MeasuredProduct>& products);
std::string table_text(const std::vector<MeasuredMessage>& messages);

}  // namespace trireme::predict
