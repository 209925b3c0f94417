// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/machine.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/base/text.hpp"
#include "trireme/config/file.hpp"

#include "measured_tables.hpp"

#include <algorithm>
#include <set>

namespace trireme::predict {
namespace {

using base::format;
using Need = MachineKey::Need;

constexpr std::string_view source_section = "source.";
constexpr std::size_t product_columns = 4;
constexpr std::size_t message_columns = 2;

const MachineKey* find(std::string_view name) {
  const auto keys = machine_keys();
  const auto found = std::find_if(
      keys.begin(), keys.end(), [&](const MachineKey& row) { return row.key.full_name() == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& row : machine_keys()) {
    names.push_back(row.key.full_name());
    names.push_back(std::string(source_section) + names.back());
  }
  return names;
}

/// Tables are texts to the parser of values.
base::Status check_form(const schema::Key& key, const std::string& text) {
  if (key.type != schema::Type::text || key.section == "site") return {};
  const bool of_messages = key.name == "messages";
  const auto status = check_table(text, of_messages ? message_columns : product_columns,
                                  of_messages ? FirstColumn::ascending : FirstColumn::any);
  if (status.ok()) return {};
  return base::usage_failure(
      format("{} {} (it is a table); write {}", key.full_name(), status.failure().text, key.unit));
}

/// Reads assignments into a machine, and collects what is wrong with them.
class MachineReader {
 public:
  void read(const std::filesystem::path& path) {
    auto contents = config::read_file(path);
    mistakes_ = std::move(contents.mistakes);
    machine_.name = path.stem().string();
    // Keys that could not be read are not missing, too.
    const bool is_whole = mistakes_.empty();
    for (const auto& assignment : contents.assignments) assign(assignment);
    if (!is_whole) return;
    for (const auto& row : machine_keys()) require(row, path);
    if (!mistakes_.empty()) return;
    check_processors(path);
    if (machine_.node.room() > 0) return;
    mistakes_.push_back(
        format("{}: node.reserved = {} is all of node.memory (arrays need some of it); give less",
               base::printable(path.string()),
               base::bytes_text(static_cast<std::uint64_t>(machine_.node.reserved))));
  }

  base::Result<Machine> finish() && {
    if (mistakes_.empty()) return std::move(machine_);
    return base::usage_failure(format("{}", base::join(mistakes_, "\n")));
  }

 private:
  void assign(const config::Assignment& assignment) {
    const auto place = assignment.origin.text();
    const auto& name = assignment.name;
    if (name.starts_with(source_section)) {
      const auto key = name.substr(source_section.size());
      if (find(key) == nullptr) return unknown(place, name);
      if (assignment.text.empty()) {
        mistakes_.push_back(
            format("{}: {} is empty (every number has a source); give a page, a "
                   "data sheet or a command, or 'assumed: WHY'",
                   place, name));
      }
      machine_.sources[key] = assignment.text;
      return;
    }
    const auto* row = find(name);
    if (row == nullptr) return unknown(place, name);
    named_.insert(name);
    const auto value = schema::parse_value(row->key, assignment.text);
    const auto form = check_form(row->key, assignment.text);
    if (!value || !form) {
      mistakes_.push_back(format("{}: {}", place, (value ? form.failure() : value.failure()).text));
      return;
    }
    row->store(machine_, *value);
  }

  void unknown(const std::string& place, const std::string& name) {
    const auto near = base::did_you_mean(name, all_names());
    mistakes_.push_back(format("{}: machine files have no key '{}' (nothing would read it){}",
                               place, base::printable(name),
                               near.empty() ? "; see docs/plan.md" : near));
  }

  void require(const MachineKey& row, const std::filesystem::path& path) {
    const auto name = row.key.full_name();
    const bool needed = row.need == Need::always ||
                        (row.need == Need::with_gpus && !machine_.node.computes_on_cores());
    if (named_.count(name) == 0) {
      if (!needed) return;
      mistakes_.push_back(
          format("{}: {} is not set (the prediction needs it); add it, with "
                 "source.{}",
                 base::printable(path.string()), name, name));
    } else if (machine_.sources.count(name) == 0) {
      mistakes_.push_back(format("{}: {} has no source (every number has one); add source.{}",
                                 base::printable(path.string()), name, name));
    }
  }

  void check_processors(const std::filesystem::path& path) {
    const auto& tiles = machine_.tiles;
    const auto place = base::printable(path.string());
    if (!machine_.node.computes_on_cores() && tiles.processors == 0) {
      mistakes_.push_back(format(
          "{}: product.processors = 0 is too small (a GPU computes on some); give their number",
          place));
    } else if (tiles.for_collectives >= std::max(tiles.processors, 1)) {
      mistakes_.push_back(
          format("{}: product.for_collectives = {} is too large (of {} processors some compute "
                 "beside a collective); give fewer",
                 place, tiles.for_collectives, tiles.processors));
    }
  }

  Machine machine_;
  /// Keys that the file has, with right values or wrong ones.
  std::set<std::string> named_;
  std::vector<std::string> mistakes_;
};

}  // namespace

base::Result<Machine> read_machine(const std::filesystem::path& path) {
  MachineReader reader;
  reader.read(path);
  return std::move(reader).finish();
}

}  // namespace trireme::predict
