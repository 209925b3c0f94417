// Values of the plugin's options: "OPTION VALUE", read as srun hands them to the plugin.
#include "trireme/launch/terms.hpp"
#include "trireme/launch/vocabulary.hpp"

#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto blank = text.find(' ');
  const auto name = text.substr(0, blank);
  const auto value = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  launch::is_site_argument(text);
  for (const auto& term : launch::terms()) {
    if (!name.empty() && term.option != name) continue;
    const auto parsed = launch::parse_value(term, value, term.option);
    if (!parsed) {
      fuzz::must(!parsed.failure().text.empty(), "a refusal has a text");
      continue;
    }
    const auto again = launch::parse_value(term, *parsed, term.option);
    fuzz::must(again.ok() && *again == *parsed, "what was accepted is in its canonical form");
  }
  return 0;
}
