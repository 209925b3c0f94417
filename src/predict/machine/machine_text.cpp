// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/predict/machine.hpp"

namespace trireme::predict {
namespace {

/// Whether the machine says nothing of a key that may be missing.
bool is_missing(const MachineKey& row, const schema::Value& value) {
  if (row.need != MachineKey::Need::optional) return false;
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty();
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number == 0;
  return std::get<double>(value) == 0;
}

}  // namespace

std::string machine_text(const Machine& machine, std::string_view heading) {
  auto text = base::format("# {}\n", heading);
  std::string sources = "\n[source]\n";
  std::string_view section;
  for (const auto& row : machine_keys()) {
    const bool cuts_products = row.need == MachineKey::Need::with_gpus;
    if (cuts_products && machine.node.computes_on_cores()) continue;
    const auto value = row.value(machine);
    if (is_missing(row, value)) continue;
    if (row.key.section != section) {
      section = row.key.section;
      text += base::format("\n[{}]\n", section);
    }
    text += base::format("{} = {}\n", row.key.name, schema::value_text(row.key, value));
    const auto name = row.key.full_name();
    const auto source = machine.sources.find(name);
    if (source == machine.sources.end()) continue;
    sources += base::format("{} = {}\n", name, source->second);
  }
  return text + sources;
}

}  // namespace trireme::predict
