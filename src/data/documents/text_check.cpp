// SPDX-License-Identifier: Apache-2.0
#include "data/documents/text_check.hpp"

#include "trireme/base/format.hpp"

namespace trireme::data {
namespace {

using namespace std::string_view_literals;

struct BinaryFormat {
  std::string_view magic;
  std::string_view name;
  std::string_view fix;
};

constexpr auto as_json_lines =
    "write it as JSON lines first (in Python: "
    "datasets.load_dataset(...).to_json(\"data.jsonl\"))"sv;
constexpr auto decompress = "decompress it, or compress it with gzip or zstd instead"sv;
constexpr auto unpack = "unpack it, and name the folder of its files"sv;
constexpr auto to_utf8 = "convert it: iconv -f UTF-16 -t UTF-8"sv;
constexpr auto extract = "extract its text first"sv;

constexpr BinaryFormat binary_formats[] = {
    {"PAR1"sv, "Parquet"sv, as_json_lines},
    {"ARROW1"sv, "Arrow"sv, as_json_lines},
    {"\xFF\xFF\xFF\xFF"sv, "an Arrow stream"sv, as_json_lines},
    {"Obj\x01"sv, "Avro"sv, as_json_lines},
    {"\x93NUMPY"sv, "NumPy"sv, as_json_lines},
    {"\x89HDF\r\n\x1A\n"sv, "HDF5"sv, as_json_lines},
    {"SQLite format 3\0"sv, "SQLite"sv, as_json_lines},
    {"BZh"sv, "bzip2"sv, decompress},
    {"\xFD"
     "7zXZ\0"sv,
     "xz"sv, decompress},
    {"\x04\x22\x4D\x18"sv, "lz4"sv, decompress},
    {"PK\x03\x04"sv, "a zip archive"sv, unpack},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7-Zip archive"sv, unpack},
    {"Rar!\x1A\x07"sv, "a RAR archive"sv, unpack},
    {"%PDF-"sv, "PDF"sv, extract},
    {"\xFF\xFE"sv, "UTF-16"sv, to_utf8},
    {"\xFE\xFF"sv, "UTF-16"sv, to_utf8},
};

/// bzip2's three letters may begin a text: a digit and the number of a block follow them.
bool is_of(const BinaryFormat& format, std::string_view text) {
  if (!text.starts_with(format.magic)) return false;
  return format.magic != "BZh"sv || (text.size() > 9 && text.substr(4, 6) == "1AY&SY"sv) ||
         (text.size() > 9 && text.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv);
}

}  // namespace

base::Status check_format(std::string_view beginning, const std::string& source) {
  for (const auto& format : binary_formats) {
    if (!is_of(format, beginning)) continue;
    return base::Failure{
        base::ExitCode::checkpoint,
        base::format("'{}' is {} (inputs are text or JSON lines, plain or compressed with gzip or "
                     "zstd); {}",
                     source, format.name, format.fix)};
  }
  return {};
}

base::Status check_plain_text(std::string_view text, std::uint64_t begins_at,
                              const std::string& source) {
  const auto zero = text.find('\0');
  if (zero == std::string_view::npos) return {};
  return base::Failure{
      base::ExitCode::checkpoint,
      base::format("'{}' has a NUL at byte {} (it is no text: inputs are text or JSON lines, plain "
                   "or compressed with gzip or zstd); leave it out, or extract its text first",
                   source, begins_at + zero)};
}

}  // namespace trireme::data
