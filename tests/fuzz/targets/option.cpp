// SPDX-License-Identifier: Apache-2.0
// Values of the plugin's options: "OPTION VALUE", read as srun hands them to the plugin.
#include "trireme/launch/options.hpp"
#include "trireme/launch/plugstack_arguments.hpp"

#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto blank = text.find(' ');
  const auto name = text.substr(0, blank);
  const auto value = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  launch::is_plugstack_argument(text);
  for (const auto& option : launch::options()) {
    if (!name.empty() && option.name != name) continue;
    const auto parsed = launch::parse_value(option, value, option.name);
    if (!parsed) {
      fuzz::must(!parsed.failure().text.empty(), "a refusal has a text");
      continue;
    }
    const auto again = launch::parse_value(option, *parsed, option.name);
    fuzz::must(again.ok() && *again == *parsed, "what was accepted is in its canonical form");
  }
  return 0;
}
