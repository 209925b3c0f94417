// SPDX-License-Identifier: Apache-2.0
// Lines of JSON as anybody writes them, rewritten as JSON proper, and written again.
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utf8.hpp"

#include "data/documents/strict_json.hpp"
#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto repaired = base::repaired_utf8(text);
  fuzz::must(base::well_formed_prefix(repaired) == repaired.size(), "a repaired text is UTF-8");
  const auto written = base::json_text(std::string(text));
  fuzz::must(base::parse_json(written, "written").value() == base::Json(repaired),
             "JSON repairs a text as all else does");
  for (const auto& line : fuzz::lines_of(text)) {
    const auto strict = data::strict_json(line);
    fuzz::must(!base::first_broken_utf8(strict.text), "a rewritten line is UTF-8");
    const auto parsed = base::parse_json(line, "line");
    const auto again = base::parse_json(strict.text, "rewritten");
    if (parsed) {
      fuzz::must(again.ok() && *again == *parsed, "what is JSON already keeps its meaning");
      fuzz::must(!strict.is_repaired, "what is JSON already needs no repair");
    }
    const auto twice = data::strict_json(strict.text);
    fuzz::must(twice.text == strict.text && !twice.is_repaired, "once is enough");
  }
  return 0;
}
