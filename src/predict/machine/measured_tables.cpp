// SPDX-License-Identifier: Apache-2.0
#include "measured_tables.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <charconv>
#include <cmath>
#include <optional>

namespace trireme::predict {
namespace {

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc{} || stop != end || !std::isfinite(number) || number <= 0) {
    return std::nullopt;
  }
  return number;
}

/// Rows of numbers; an empty row where one of its entries is none.
std::vector<std::vector<double>> rows_of(std::string_view text) {
  std::vector<std::vector<double>> rows;
  for (const auto row : base::split(text, ';')) {
    auto& numbers = rows.emplace_back();
    for (const auto entry : base::split(row, ',')) {
      const auto number = number_of(base::trimmed(entry));
      if (!number) {
        numbers.clear();
        break;
      }
      numbers.push_back(*number);
    }
  }
  return rows;
}

}  // namespace

base::Status check_table(std::string_view text, std::size_t columns, FirstColumn first) {
  double before = 0;
  std::size_t number = 0;
  for (const auto& row : rows_of(text)) {
    ++number;
    if (row.size() != columns) {
      return base::usage_failure(
          base::format("has the row {} that is not {} numbers above 0", number, columns));
    }
    if (first == FirstColumn::ascending && row.front() <= before) {
      return base::usage_failure(base::format("has the row {} out of order", number));
    }
    before = row.front();
  }
  return {};
}

std::vector<MeasuredProduct> products_of(std::string_view text) {
  std::vector<MeasuredProduct> products;
  for (const auto& row : rows_of(text)) products.push_back({row[0], row[1], row[2], row[3]});
  return products;
}

std::vector<MeasuredMessage> messages_of(std::string_view text) {
  std::vector<MeasuredMessage> messages;
  for (const auto& row : rows_of(text)) messages.push_back({row[0], row[1]});
  return messages;
}

std::string table_text(const std::vector<MeasuredProduct>& products) {
  std::vector<std::string> rows;
  for (const auto& row : products) {
    rows.push_back(base::format("{},{},{},{}", base::number_text(row.m), base::number_text(row.n),
                                base::number_text(row.k), base::number_text(row.rate)));
  }
  return base::format("{}", base::join(rows, "; "));
}

std::string table_text(const std::vector<MeasuredMessage>& messages) {
  std::vector<std::string> rows;
  for (const auto& row : messages) {
    rows.push_back(
        base::format("{},{}", base::number_text(row.bytes), base::number_text(row.seconds)));
  }
  return base::format("{}", base::join(rows, "; "));
}

}  // namespace trireme::predict
