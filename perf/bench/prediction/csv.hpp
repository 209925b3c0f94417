// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::perf {

/// A line of a CSV file with a header, by the names of its columns.
using CsvLine = std::map<std::string, std::string>;

/// RFC 4180: entries in quotes may hold commas and doubled quotes; lines that are short end in
/// empty entries. Throws base::Error if the file cannot be read or has not all of the columns.
std::vector<CsvLine> read_csv(const std::filesystem::path& path,
                              std::span<const std::string_view> columns);

}  // namespace trireme::perf
