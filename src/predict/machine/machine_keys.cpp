// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/schema/reference.hpp"

#include "measured_tables.hpp"

#include <array>
#include <string_view>

namespace trireme::predict {
namespace {

using schema::Key;
using schema::Range;
using schema::Type;
using schema::Value;
using Need = MachineKey::Need;

/// Counts of processors, rows and interfaces: more is a mistake, and products of them stay numbers.
constexpr double most = 1 << 20;
constexpr Range some{.minimum = 1, .maximum = most};
constexpr Range some_or_none{.minimum = 0, .maximum = most};
/// FLOP/s or bytes/s, of one slow part and of a node that is still to be built.
constexpr Range rate{.minimum = 1, .maximum = 1e21};
/// Seconds of one latency.
constexpr Range seconds{.minimum = 0, .maximum = 1000};
constexpr Range above_zero{.minimum = 0, .above = true};
constexpr Range watts{.minimum = 0, .maximum = 1e9};
constexpr Range price{.minimum = 0, .maximum = 1e9, .above = true};
/// Parts of what a data sheet says; of what was measured or lies in caches it may be more.
constexpr Range part_of_one{.minimum = 0, .maximum = 10, .above = true};

/// Puts a number into a member of a part of the machine.
template <auto Part, auto Member>
void store(Machine& machine, const Value& value) {
  auto& to = machine.*Part.*Member;
  using Number = std::remove_reference_t<decltype(to)>;
  to = std::holds_alternative<double>(value) ? static_cast<Number>(std::get<double>(value))
                                             : static_cast<Number>(std::get<std::int64_t>(value));
}

template <auto Part, auto Member>
Value value(const Machine& machine) {
  const auto& from = machine.*Part.*Member;
  using Number = std::remove_cvref_t<decltype(from)>;
  if constexpr (std::is_integral_v<Number>) {
    return Value(static_cast<std::int64_t>(from));
  } else {
    return Value(from);
  }
}

constexpr auto of_node = &Machine::node;
constexpr auto of_shares = &Machine::share;
constexpr auto of_tiles = &Machine::tiles;
constexpr auto of_inside = &Machine::inside;
constexpr auto of_network = &Machine::network;

constexpr Key real(std::string_view section, std::string_view name, std::string_view unit,
                   Range range, std::string_view documentation) {
  return {.section = section,
          .name = name,
          .type = Type::real,
          .unit = unit,
          .range = range,
          .documentation = documentation};
}

constexpr Key whole(std::string_view section, std::string_view name, Range range,
                    std::string_view documentation) {
  return {.section = section,
          .name = name,
          .type = Type::integer,
          .range = range,
          .documentation = documentation};
}

constexpr Key measured(std::string_view section, std::string_view name, std::string_view unit,
                       std::string_view documentation) {
  return {.section = section, .name = name, .unit = unit, .documentation = documentation};
}

template <auto Member>
constexpr MachineKey site_key(std::string_view name, std::string_view unit, Range range,
                              std::string_view documentation) {
  return {real("site", name, unit, range, documentation), Need::optional,
          store<&Machine::site, Member>, value<&Machine::site, Member>};
}

constexpr std::array key_rows{
    MachineKey{whole("node", "gpus", some_or_none,
                     "GPUs that fast links join; 0: the node's cores compute. Of a rack whose GPUs "
                     "one switch joins, all of them."),
               Need::always, store<of_node, &Node::gpus>, value<of_node, &Node::gpus>},
    MachineKey{whole("node", "cores", some, "Cores of the node."), Need::always,
               store<of_node, &Node::cores>, value<of_node, &Node::cores>},
    MachineKey{real("node", "peak.fp32", "FLOP/s", rate,
                    "Peak of products in fp32, of a GPU or of all cores."),
               Need::always, store<of_node, &Node::peak_fp32>, value<of_node, &Node::peak_fp32>},
    MachineKey{real("node", "peak.bf16", "FLOP/s", rate, "Peak in bf16, without sparsity."),
               Need::always, store<of_node, &Node::peak_bf16>, value<of_node, &Node::peak_bf16>},
    MachineKey{real("node", "peak.fp8", "FLOP/s", rate,
                    "Peak in fp8, without sparsity; bf16's where there is none."),
               Need::optional, store<of_node, &Node::peak_fp8>, value<of_node, &Node::peak_fp8>},
    MachineKey{{.section = "node",
                .name = "memory",
                .type = Type::bytes,
                .unit = "bytes",
                .range = above_zero,
                .documentation = "Memory of a GPU, or of the node."},
               Need::always,
               store<of_node, &Node::memory>,
               value<of_node, &Node::memory>},
    MachineKey{real("node", "memory_rate", "bytes/s", rate,
                    "Rate of that memory, reads and writes together."),
               Need::always, store<of_node, &Node::memory_rate>,
               value<of_node, &Node::memory_rate>},
    MachineKey{{.section = "node",
                .name = "reserved",
                .type = Type::bytes,
                .unit = "bytes",
                .range = {.minimum = 0},
                .documentation = "What the driver, NCCL and the system take of that memory, beside "
                                 "arrays and the libraries of kernels; 0 where it is missing."},
               Need::optional,
               store<of_node, &Node::reserved>,
               value<of_node, &Node::reserved>},
    MachineKey{
        real("node", "launch_gap", "seconds", Range{.minimum = 0, .maximum = 1, .above = true},
             "Time in which the host issues one operation; a program's own where it is "
             "missing."),
        Need::optional, store<of_node, &Node::launch_gap>, value<of_node, &Node::launch_gap>},
    MachineKey{real("node", "disk_write", "bytes/s", rate,
                    "Rate at which a node's ranks together write files of a run."),
               Need::optional, store<of_node, &Node::disk_write>,
               value<of_node, &Node::disk_write>},
    MachineKey{real("node", "host_copy", "bytes/s", rate,
                    "Rate at which a node's GPUs together copy to its own memory."),
               Need::optional, store<of_node, &Node::host_copy>, value<of_node, &Node::host_copy>},
    MachineKey{real("share", "product", "", part_of_one,
                    "Part of the peak that large products reach (with a table of products: factor "
                    "on its rates)."),
               Need::always, store<of_shares, &Shares::product>,
               value<of_shares, &Shares::product>},
    MachineKey{real("share", "attention", "", part_of_one,
                    "Part of the peak that fused attention reaches."),
               Need::always, store<of_shares, &Shares::attention>,
               value<of_shares, &Shares::attention>},
    MachineKey{
        real("share", "memory", "", part_of_one, "Part of the memory's rate that kernels reach."),
        Need::always, store<of_shares, &Shares::memory>, value<of_shares, &Shares::memory>},
    MachineKey{
        real("share", "link", "", part_of_one, "Part of the links' rates that collectives reach."),
        Need::always, store<of_shares, &Shares::link>, value<of_shares, &Shares::link>},
    MachineKey{whole("product", "processors", some_or_none, "Streaming multiprocessors of a GPU."),
               Need::with_gpus, store<of_tiles, &Tiles::processors>,
               value<of_tiles, &Tiles::processors>},
    MachineKey{whole("product", "tile_rows", some,
                     "Rows of the result that one of them computes at a time."),
               Need::with_gpus, store<of_tiles, &Tiles::rows>, value<of_tiles, &Tiles::rows>},
    MachineKey{whole("product", "tile_columns", some, "Columns of that tile."), Need::with_gpus,
               store<of_tiles, &Tiles::columns>, value<of_tiles, &Tiles::columns>},
    MachineKey{real("product", "half_rate_terms", "", some_or_none,
                    "Terms of a result's sum at which a tile has half of its rate."),
               Need::with_gpus, store<of_tiles, &Tiles::half_rate_terms>,
               value<of_tiles, &Tiles::half_rate_terms>},
    MachineKey{whole("product", "for_collectives", some_or_none,
                     "Multiprocessors that a collective takes from products beside it."),
               Need::with_gpus, store<of_tiles, &Tiles::for_collectives>,
               value<of_tiles, &Tiles::for_collectives>},
    MachineKey{measured("product", "rates", "m,n,k,FLOP/s; ...",
                        "Measured products of an [m, k] and a [k, n] matrix; other shapes take the "
                        "formula's rate times what those nearest to them have over it."),
               Need::optional,
               [](Machine& machine, const Value& value) {
                 machine.products = products_of(std::get<std::string>(value));
               },
               [](const Machine& machine) { return Value(table_text(machine.products)); }},
    MachineKey{measured("product", "rates_fp32", "m,n,k,FLOP/s; ...",
                        "The same in fp32; those of rates, over that peak, where there are none."),
               Need::optional,
               [](Machine& machine, const Value& value) {
                 machine.products_fp32 = products_of(std::get<std::string>(value));
               },
               [](const Machine& machine) { return Value(table_text(machine.products_fp32)); }},
    MachineKey{
        real("link.node", "rate", "bytes/s", rate, "Rate of a GPU's links in the node, one way."),
        Need::always, store<of_inside, &Link::rate>, value<of_inside, &Link::rate>},
    MachineKey{real("link.node", "latency", "seconds", seconds,
                    "Time that any collective in the node takes."),
               Need::always, store<of_inside, &Link::latency>, value<of_inside, &Link::latency>},
    MachineKey{real("link.node", "hop", "seconds", seconds, "Time of each of its steps."),
               Need::always, store<of_inside, &Link::hop>, value<of_inside, &Link::hop>},
    MachineKey{
        measured("link.node", "messages", "bytes,seconds; ...",
                 "Measured messages in the node, in ascending order; they stand for rate and "
                 "latency."),
        Need::optional,
        [](Machine& machine, const Value& value) {
          machine.inside.messages = messages_of(std::get<std::string>(value));
        },
        [](const Machine& machine) { return Value(table_text(machine.inside.messages)); }},
    MachineKey{whole("link.network", "nics", some, "Network interfaces of the node."), Need::always,
               [](Machine& machine, const Value& value) {
                 machine.nics = static_cast<int>(std::get<std::int64_t>(value));
               },
               [](const Machine& machine) { return Value(std::int64_t{machine.nics}); }},
    MachineKey{
        real("link.network", "rate", "bytes/s", rate, "Rate of one network interface, one way."),
        Need::always, store<of_network, &Link::rate>, value<of_network, &Link::rate>},
    MachineKey{real("link.network", "latency", "seconds", seconds,
                    "Time that any collective between nodes takes."),
               Need::always, store<of_network, &Link::latency>, value<of_network, &Link::latency>},
    MachineKey{real("link.network", "hop", "seconds", seconds, "Time of each of its steps."),
               Need::always, store<of_network, &Link::hop>, value<of_network, &Link::hop>},
    MachineKey{measured("link.network", "messages", "bytes,seconds; ...",
                        "Measured messages between nodes, as in the node."),
               Need::optional,
               [](Machine& machine, const Value& value) {
                 machine.network.messages = messages_of(std::get<std::string>(value));
               },
               [](const Machine& machine) { return Value(table_text(machine.network.messages)); }},
    MachineKey{real("link.network", "oversubscription", "", some,
                    "By how much the network above the nodes is narrower than their interfaces."),
               Need::always,
               [](Machine& machine, const Value& value) {
                 machine.oversubscription = std::get<double>(value);
               },
               [](const Machine& machine) { return Value(machine.oversubscription); }},
    site_key<&Site::node_hour>("node_hour", "an hour", price,
                               "Price of a node, in any currency: what `--objective cost` counts."),
    site_key<&Site::spot_hour>("spot_hour", "an hour", price,
                               "Price of one that may be taken away."),
    site_key<&Site::busy_watts>("busy_watts", "watts", watts, "Power of a node that computes."),
    site_key<&Site::idle_watts>("idle_watts", "watts", watts, "Power of a node that waits."),
    site_key<&Site::pue>("pue", "", {.minimum = 1, .maximum = 10},
                         "Energy of the site for that of its nodes."),
    site_key<&Site::grams_per_kwh>("grams_per_kwh", "grams", watts, "CO2 for a kilowatt-hour."),
    site_key<&Site::mtbf_node_days>("mtbf_node_days", "days", price,
                                    "Time of one node between two failures of it."),
    site_key<&Site::spot_mtbf_node_days>("spot_mtbf_node_days", "days", price,
                                         "The same until it is taken away, or fails."),
    site_key<&Site::restart_seconds>("restart_seconds", "seconds", watts,
                                     "From a failure to the first step again."),
    MachineKey{measured("site", "allows", "tag, ...", "Data that may be there: `--data TAG`."),
               Need::optional,
               [](Machine& machine, const Value& value) {
                 machine.site.allows = std::get<std::string>(value);
               },
               [](const Machine& machine) { return Value(machine.site.allows); }},
};

std::string_view need_text(Need need) {
  switch (need) {
    case Need::always:
      return "always";
    case Need::with_gpus:
      return "with GPUs";
    case Need::optional:
      return "may be missing";
  }
  return "";
}

}  // namespace

std::span<const MachineKey> machine_keys() {
  return key_rows;
}

std::string machine_reference() {
  std::string text = "| key | value | needed | what it is |\n|---|---|---|---|\n";
  for (const auto& row : key_rows) {
    const auto kind =
        row.key.type == Type::text ? std::string(row.key.unit) : schema::kind_text(row.key);
    text += base::format("| `{}` | {} | {} | {} |\n", row.key.full_name(), kind,
                         need_text(row.need), row.key.documentation);
  }
  return text +
         "| `source.KEY` | text | for each key of the file | Where the value is from: a page, "
         "a data sheet, a command; `assumed: ...` where it is from none. |\n";
}

}  // namespace trireme::predict
