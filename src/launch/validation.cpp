// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/validation.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/layout/parallel_rules.hpp"
#include "trireme/schema/arrangement.hpp"
#include "trireme/schema/schema.hpp"

#include "key_settings.hpp"
#include "text.hpp"

#include <algorithm>

namespace trireme::launch {
namespace {

using base::format;

/// "--tensor-parallel = 3", or the variable that set it.
std::string cited(const Setting& setting) {
  const bool by_option = setting.origin.find("--") != std::string::npos;
  return format("{} = {}", by_option ? "--" + std::string(setting.option->name) : setting.origin,
                shown(setting.value));
}

std::string cited_key(const Contract& contract, std::string_view key) {
  const auto* const setting = setting_of(contract, key);
  if (setting == nullptr) return format("{} = 1", key);
  return setting->option->sets_any_key
             ? format("{} = {} (--trireme-set)", key, shown(value_of(setting)))
             : cited(*setting);
}

/// Schema's error for a value of a key; empty when the value is valid.
std::string refusal(std::string_view name, std::string_view value, const std::string& origin) {
  const auto* const key = schema::find_key(name);
  if (key == nullptr) {
    const auto suggestion = schema::key_suggestion(name);
    return format("{}: there is no key '{}' (nothing would read it){}", origin, name,
                  suggestion.empty() ? "; see trireme config reference" : suggestion);
  }
  const auto parsed = schema::parse_value(*key, value);
  return parsed ? std::string() : format("{}: {}", origin, parsed.failure().text);
}

/// Arrangement of ranks in the contract. Degrees that it does not set are 1, except data
/// parallelism; other keys may be set in files that have not been read yet.
layout::ParallelArrangement arrangement_of(const Contract& contract, std::optional<int> tasks) {
  auto arrangement =
      schema::arrangement([&contract](std::string_view key) -> std::optional<schema::Value> {
        const auto* const setting = setting_of(contract, key);
        if (setting == nullptr) return std::nullopt;
        const auto value = schema::parse_value(*schema::find_key(key), value_of(setting));
        return value ? std::optional(*value) : std::nullopt;
      });
  arrangement.world_size = tasks;
  layout::complete_degrees(arrangement);
  return arrangement;
}

/// Checks one request by every rule and gathers the mistakes.
class Validator {
 public:
  Validator(const Contract& contract, const ResourceRequest& request)
      : contract_(contract),
        request_(request),
        tasks_(task_count(request)),
        node_tasks_(tasks_on_a_node(request)),
        node_gpus_(gpus_on_a_node(request)),
        arrangement_(arrangement_of(contract, tasks_)) {}

  std::vector<std::string> validate() {
    check_off();
    if (!mistakes_.empty()) return mistakes_;
    check_schema();
    check_settings();
    check_rules();
    check_node();
    check_gpus();
    check_distribution();
    check_time();
    return std::move(mistakes_);
  }

 private:
  std::int64_t tensor() const { return arrangement_.tensor.value_or(1); }
  std::int64_t pipeline() const { return arrangement_.pipeline.value_or(1); }

  /// "--tensor-parallel = 3 times --pipeline-parallel = 2": the degrees that were given.
  std::string degrees() const {
    std::vector<std::string> parts;
    for (const auto& degree : layout::degree_keys()) {
      if (value_of(setting_of(contract_, degree.key)).find_first_of("0123456789") == 0) {
        parts.push_back(cited_key(contract_, degree.key));
      }
    }
    return format("{}", base::join(parts, " times "));
  }

  template <typename... Arguments>
  void refuse(base::format_string<Arguments...> text, Arguments&&... arguments) {
    mistakes_.push_back(format(text, std::forward<Arguments>(arguments)...));
  }

  void check_off() {
    if (!contract_.off()) return;
    for (const auto& setting : contract_.settings()) {
      if (setting.option->name == "trireme") continue;
      if (setting.origin.find("--") == std::string::npos) continue;
      refuse(
          "--trireme = off and {} contradict each other (off ignores all of them); leave one out",
          cited(setting));
    }
  }

  void check_schema() {
    for (const auto& setting : contract_.settings()) {
      if (!setting.option->sets_any_key) continue;
      const std::string_view value = setting.value;
      const auto equals = value.find('=');
      auto text = refusal(value.substr(0, equals), value.substr(equals + 1), setting.origin);
      if (!text.empty()) mistakes_.push_back(std::move(text));
    }
  }

  void check_settings() {
    for (const auto& setting : contract_.settings()) {
      if (setting.option->key.empty()) continue;
      const auto* const other = last_of_any_key(contract_, setting.option->key);
      if (other == nullptr || value_of(other) == setting.value) continue;
      refuse("{} and --trireme-set = {} contradict each other (both set the key {}); leave one out",
             cited(setting), other->value, setting.option->key);
    }
  }

  void check_rules();
  /// True if a start chooses degrees so that they fill the tasks with those that are given.
  bool fills_by_choice() const;
  std::string world_text() const;
  void check_node();
  void check_gpus();
  void check_distribution();
  void check_time();

  const Contract& contract_;
  const ResourceRequest& request_;
  const std::optional<int> tasks_;
  const std::optional<int> node_tasks_;
  const std::optional<int> node_gpus_;
  const layout::ParallelArrangement arrangement_;
  std::vector<std::string> mistakes_;
};

std::string tasks_text(int tasks) {
  return format("{} {}", tasks, tasks == 1 ? "task" : "tasks");
}

/// Divisors of the largest size that a degree may have beside the others: "1, 2, 4".
std::string divisors_text(std::int64_t size) {
  return format(
      "{}", base::join(base::divisors(static_cast<int>(std::max<std::int64_t>(size, 1))), ", "));
}

/// Degrees that do not fill the tasks, with what Slurm's options can do about it.
std::string Validator::world_text() const {
  const int started = tasks_.value_or(0);
  const std::int64_t tasks = started;
  const auto mesh = layout::known_ranks(arrangement_);
  if (arrangement_.data) {
    return format(
        "{} makes a mesh of {} ranks, but {} start (every task holds one place of the mesh); "
        "start --ntasks={}, or say --data-parallel=auto",
        degrees(), mesh, tasks_text(started), mesh);
  }
  const std::int64_t below = tasks / mesh * mesh;
  const auto other = below > 0 ? format("{} or {}", below, below + mesh) : format("{}", mesh);
  const bool tensor_alone = contract_.number("tensor-parallel").has_value();
  const std::int64_t rest = tensor_alone ? pipeline() : tensor();
  const auto choices = tasks % rest == 0 ? tasks / rest : tasks;
  return format(
      "{} does not divide the {} that start (every task holds one place of the mesh); try "
      "--ntasks={}, or --{}={}",
      degrees(), tasks_text(started), other, tensor_alone ? "tensor-parallel" : "pipeline-parallel",
      divisors_text(choices));
}

bool Validator::fills_by_choice() const {
  const auto is_auto = [&](std::string_view key) {
    return value_of(setting_of(contract_, key)) == "auto" ||
           (setting_of(contract_, key) == nullptr && contract_.find("parallel") != nullptr);
  };
  return (is_auto("parallel.tensor") || is_auto("parallel.pipeline")) &&
         tasks_.value_or(0) % layout::known_ranks(arrangement_) == 0;
}

void Validator::check_rules() {
  const auto cited_quantity = [&](layout::Quantity quantity) {
    return cited_key(contract_, layout::key_of(quantity));
  };
  const auto named = [](layout::Quantity quantity) {
    const auto key = layout::key_of(quantity);
    for (const auto& option : options()) {
      if (option.key == key) return format("--{}", option.name);
    }
    return format("--trireme-set={}", key);
  };
  for (const auto& violation : layout::violations(arrangement_)) {
    if (violation.rule == layout::ParallelRule::world_not_filled && fills_by_choice()) continue;
    mistakes_.push_back(violation.rule == layout::ParallelRule::world_not_filled
                            ? world_text()
                            : layout::text(violation, cited_quantity, named));
  }
}

void Validator::check_node() {
  const auto* setting = contract_.find("tensor-parallel");
  if (setting == nullptr || !node_tasks_ || *node_tasks_ % tensor() == 0) return;
  refuse(
      "{} does not divide the {} of a node (tensor-parallel ranks talk in every layer and stay "
      "inside a node); try {}, or --ntasks-per-node={}",
      cited(*setting), tasks_text(*node_tasks_), divisors_text(*node_tasks_), setting->value);
}

void Validator::check_gpus() {
  if (!node_gpus_ || *node_gpus_ < 1) return;
  const auto backend = value_of(setting_of(contract_, "comm.backend"));
  const auto numerics = value_of(setting_of(contract_, "numerics.backend"));
  // Ranks that compute on CPUs, or communicate through host memory, may share a GPU or need none.
  if (numerics == "cpu" || numerics == "reference") return;
  if (backend == "mpi" || backend == "shared" || backend == "staged") return;
  const int gpus = *node_gpus_;
  if (node_tasks_) {
    if (*node_tasks_ <= gpus) return;
    refuse(
        "{} a node are more than its {} GPUs (each rank computes on a GPU of its own); try "
        "--ntasks-per-node={}, or --gpus-per-node={}, or --trireme-set=numerics.backend=cpu",
        tasks_text(*node_tasks_), gpus, gpus, *node_tasks_);
    return;
  }
  const auto* given = contract_.find("tensor-parallel");
  if (given != nullptr && gpus % tensor() != 0) {
    refuse(
        "{} does not divide the {} GPUs of a node (tensor-parallel ranks stay inside a node, "
        "one on each GPU); try {}",
        cited(*given), gpus, divisors_text(gpus));
    return;
  }
  if (tasks_ || !request_.nodes) return;
  const std::int64_t all = std::int64_t{gpus} * *request_.nodes;
  const auto mesh = layout::known_ranks(arrangement_);
  if (arrangement_.data ? mesh <= all : all % mesh == 0) return;
  refuse(
      "{} does not fit {} GPUs on {} nodes (one rank computes on each GPU); try a product that "
      "is one of {}",
      degrees(), gpus, *request_.nodes, divisors_text(all));
}

void Validator::check_distribution() {
  const auto& order = request_.distribution;
  const bool spreads = order.starts_with("cyclic") || order.starts_with("plane=1,") ||
                       order == "plane=1" || order.starts_with("arbitrary");
  const auto* setting = contract_.find("tensor-parallel");
  if (!spreads || setting == nullptr || tensor() == 1) return;
  const auto* ordered = contract_.find("trireme-order");
  if (request_.nodes == 1 || (ordered != nullptr && ordered->value != "auto")) return;
  refuse(
      "{} does not go with --distribution = {} (neighbouring ranks, which share every matrix, "
      "would lie on different nodes); use --distribution=block, or --trireme-order=topology",
      cited(*setting), shown(order));
}

/// Lead before the time limit in seconds, at least, by a setting; none for a setting that no key
/// takes.
std::optional<double> lead_of(const Setting& setting) {
  const auto text = value_of(&setting);
  if (text == "auto") return shortest_automatic_lead_seconds;
  const auto value = schema::parse_value(*schema::find_key(lead_key), text);
  if (!value) return std::nullopt;
  return std::get<double>(*value);
}

void Validator::check_time() {
  const auto* const setting = setting_of(contract_, lead_key);
  const auto limit = request_.time_limit_seconds;
  if (setting == nullptr || !limit) return;
  const auto lead = lead_of(*setting);
  if (!lead || *lead < *limit) return;
  refuse(
      "{} is not shorter than the time limit of {} (the job would stop before it has begun); "
      "use less than {}, or ask for more time",
      cited_key(contract_, lead_key), base::duration_text(*limit), *limit);
}

}  // namespace

std::vector<std::string> validate(const Contract& contract, const ResourceRequest& request) {
  return Validator(contract, request).validate();
}

}  // namespace trireme::launch
