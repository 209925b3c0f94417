// SPDX-License-Identifier: Apache-2.0
// Sections of the page on machines: memory, layout, versions.
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"
#include "trireme/layout/picture.hpp"

#include "report/run_schedule.hpp"
#include "sections.hpp"

#include <algorithm>

namespace trireme::report {
namespace {

using base::Json;

/// Bytes of an object's member; 0 where it has none.
double bytes_in(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<double>() : 0;
}

std::string bytes_text(double bytes) {
  return base::bytes_text(static_cast<std::uint64_t>(bytes));
}

const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

/// The newest event of a name; null if there is none.
const Json* newest_event(const telemetry::RunRecord& record, std::string_view name) {
  const auto found = std::find_if(record.events.rbegin(), record.events.rend(),
                                  [name](const auto& event) { return event.name == name; });
  return found == record.events.rend() ? nullptr : &found->line;
}

Html bar(double share, double used_share) {
  return markup(
      "<span class=\"bar\" aria-hidden=\"true\"><span style=\"width:{:.1f}%\"><b "
      "style=\"width:{:.1f}%\"></b></span></span>",
      100 * share, 100 * used_share);
}

Html arenas_table(const Json& planned, const Json& used) {
  double largest = 1;
  double planned_sum = 0;
  double used_sum = 0;
  for (const auto& [purpose, bytes] : planned.items()) {
    largest = std::max(largest, bytes_in(planned, purpose));
    planned_sum += bytes_in(planned, purpose);
    used_sum += bytes_in(used, purpose);
  }
  std::vector<std::vector<Html>> rows;
  for (const auto& [purpose, bytes] : planned.items()) {
    const double plan = bytes_in(planned, purpose);
    const double use = bytes_in(used, purpose);
    rows.push_back({text(purpose), text(bytes_text(plan)), text(bytes_text(use)),
                    bar(plan / largest, plan > 0 ? std::min(use / plan, 1.0) : 0)});
  }
  rows.push_back({text("all"), text(bytes_text(planned_sum)), text(bytes_text(used_sum)), Html{}});
  return table({"arena of rank 0", "predicted", "used at most", ""}, rows, Cells::of_numbers);
}

Html device_table(const Json& memory) {
  std::vector<std::vector<Html>> rows;
  const auto add = [&rows](std::string_view what, double bytes) {
    if (bytes > 0) rows.push_back({text(what), text(bytes_text(bytes))});
  };
  add("arenas", bytes_in(memory, "arena_bytes"));
  if (const auto* libraries = member(memory, "library_bytes")) {
    for (const auto& [library, bytes] : libraries->items()) {
      add(library, bytes_in(*libraries, library));
    }
  }
  add("CUDA graphs", bytes_in(memory, "graph_bytes"));
  add("taken on the device, by all programs", bytes_in(memory, "taken_bytes"));
  return table({"GPU of rank 0", "bytes"}, rows);
}

/// The picture as an image of its own, so that its style stays its own.
Html image(std::string_view svg, std::string_view description) {
  std::string address = "data:image/svg+xml,";
  for (const char letter : svg) {
    constexpr std::string_view special = "%#<>\"'&\n";
    if (special.find(letter) == std::string_view::npos) {
      address += letter;
    } else {
      address += base::format("%{:02X}", static_cast<int>(letter));
    }
  }
  return markup("<img alt=\"{}\" src=\"{}\">", description, address);
}

/// A sentence, and below it columns of letters: as small as the page asks for, down to 7 pixels.
Html picture_of(std::string_view text) {
  const auto sentence = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.find_first_not_of('\n', sentence.size()), text.size()));
  std::size_t longest = 1;
  for (const auto& line : base::split(text, '\n')) longest = std::max(longest, line.size());
  // A letter of the monospaced font is 0.61 of its size wide.
  return markup(
      "<p>{}</p>\n<div class=\"wide\"><pre style=\"font-size:clamp(7px,calc(100cqw/{:.1f}),13px)\">"
      "{}</pre></div>\n",
      sentence, 0.61 * static_cast<double>(longest), text);
}

Html layout_of(const RunView& run) {
  Html content;
  if (const auto mesh = mesh_of(run); mesh && mesh->world_size() > 1) {
    content += picture_of(layout::mesh_text(*mesh, 16));
  }
  if (const auto drawn = schedule_of(run)) {
    content += markup(
        "<figure class=\"picture\">{}<figcaption>The schedule of a step, stages of equal work and "
        "a backward of two forwards supposed.</figcaption></figure>\n",
        image(layout::timeline_svg(drawn->schedule, drawn->simulation),
              base::format("Timeline of {} micro-batches over {} stages",
                           drawn->schedule.micro_batches, drawn->schedule.stages)));
  }
  return content;
}

/// Every member of nested objects as a row "built_with.MPI".
void flatten(const Json& json, const std::string& prefix, std::vector<std::vector<Html>>& rows) {
  for (const auto& [name, value] : json.items()) {
    const auto full_name = prefix.empty() ? name : base::format("{}.{}", prefix, name);
    if (value.is_object()) {
      flatten(value, full_name, rows);
    } else if (value.is_string()) {
      rows.push_back({text(full_name), text(value.get_ref<const std::string&>())});
    } else {
      rows.push_back({text(full_name), text(base::json_text(value))});
    }
  }
}

}  // namespace

Html memory_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) {
    Html tables;
    if (const auto* arenas = newest_event(run.record, "arenas")) {
      const auto* planned = member(*arenas, "planned_bytes");
      const auto* used = member(*arenas, "used_bytes");
      if (planned != nullptr && used != nullptr) tables += arenas_table(*planned, *used);
    }
    if (const auto* memory = newest_event(run.record, "memory")) tables += device_table(*memory);
    content += part_of_run(runs, run, tables);
  }
  return section("memory", "Memory", content);
}

Html layout_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) content += part_of_run(runs, run, layout_of(run));
  return section("layout", "Layout", content);
}

Html versions_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) {
    if (!run.versions.is_object()) continue;
    std::vector<std::vector<Html>> rows;
    flatten(run.versions, "", rows);
    content += part_of_run(
        runs, run,
        markup("<details><summary>trireme {}</summary>\n{}</details>\n",
               run.versions.value("version", std::string("?")), table({"part", "version"}, rows)));
  }
  return section("versions", "Versions", content);
}

}  // namespace trireme::report
