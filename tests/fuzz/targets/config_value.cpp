// SPDX-License-Identifier: Apache-2.0
// Lines "name = value # comment" of configuration files, and their values in quotes.
#include "trireme/base/text.hpp"
#include "trireme/config/resolved_text.hpp"
#include "trireme/schema/quoted.hpp"
#include "trireme/schema/schema.hpp"
#include "trireme/schema/value.hpp"

#include "input.hpp"

using namespace trireme;

namespace {

void check_value(const schema::Key& key, std::string_view text) {
  const auto value = schema::parse_value(key, text);
  if (!value) {
    fuzz::must(!value.failure().text.empty(), "a refusal has a text");
    return;
  }
  const auto written = schema::value_text(key, *value);
  fuzz::must(!base::first_broken_utf8(written), "what is written is UTF-8");
  const auto again = schema::parse_value(key, written);
  fuzz::must(again.ok() && *again == *value, "a written value comes back");
  fuzz::must(schema::value_text(key, *again) == written, "equal values have equal texts");
  const auto line = std::string(key.name) + " = " + written + " # a.conf:3";
  const auto end = schema::statement_end(line);
  fuzz::must(!end.has_open_quotes && line.substr(end.at) == "# a.conf:3", "a comment is found");
  const auto recorded =
      config::resolved_value("[" + std::string(key.section) + "]\n" + line, key.full_name());
  fuzz::must(recorded == written, "a recorded value is what was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto part = schema::read_quoted(schema::quoted(text));
  fuzz::must(part.ok() && part->text == text, "quotes keep all bytes");
  fuzz::must(schema::from_recorded(schema::recorded(text)) == text, "a record keeps all bytes");
  for (const auto& line : fuzz::lines_of(text)) {
    const auto end = schema::statement_end(line);
    fuzz::must(end.at <= line.size(), "a statement ends in its line");
    for (const auto* name : {"run.name", "run.directory", "run.tags", "data.train"}) {
      check_value(*schema::find_key(name), line);
    }
  }
  return 0;
}
