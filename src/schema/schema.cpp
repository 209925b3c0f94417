// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/schema.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/schema/layout_keys.hpp"
#include "trireme/schema/names.hpp"

#include "keys.hpp"

#include <array>
#include <cctype>
#include <map>

namespace trireme::schema {
namespace {

constexpr std::array<Section, 12> section_table{{
    {"model",
     "What is trained. Every key is `auto` unless given, so that `model.from` can "
     "speak for all of them."},
    {"parallel",
     "How the work is split over ranks: world size = tensor x context x pipeline x data."},
    {"train", "How much is trained, and on what batches. Batches count sequences."},
    {"optimizer", "The update rule and its learning rate."},
    {"offload", "What lies outside of the devices' memory while nothing uses it."},
    {"numerics", "With what precision, on what."},
    {"data", "Text, already turned to tokens by `trireme data prepare`."},
    {"checkpoint", "When state is saved, and what is loaded."},
    {"comm", "How ranks talk."},
    {"run", "What the run is called and where it is kept."},
    {"track", "Trackers that the run's record is sent to while it goes on."},
    {"plan", "What the time of a step is predicted for."},
}};

/// Names that other trainers give to the same thing. They are only suggested, never accepted.
constexpr std::array<std::pair<std::string_view, std::string_view>, 38> foreign_names{{
    {"tp", "parallel.tensor"},
    {"tensor_parallel", "parallel.tensor"},
    {"tensor_model_parallel_size", "parallel.tensor"},
    {"cp", "parallel.context"},
    {"context_parallel", "parallel.context"},
    {"context_parallel_size", "parallel.context"},
    {"pp", "parallel.pipeline"},
    {"pipeline_parallel", "parallel.pipeline"},
    {"pipeline_model_parallel_size", "parallel.pipeline"},
    {"dp", "parallel.data"},
    {"data_parallel", "parallel.data"},
    {"sequence_parallel", "parallel.sequence"},
    {"zero", "parallel.zero_level"},
    {"zero_stage", "parallel.zero_level"},
    {"offload_optimizer", "offload.optimizer"},
    {"lr", "optimizer.learning_rate"},
    {"min_lr", "optimizer.min_learning_rate"},
    {"lr_scheduler", "optimizer.curve"},
    {"lr_decay_style", "optimizer.curve"},
    {"warmup", "optimizer.warmup_steps"},
    {"grad_clip", "optimizer.clip_norm"},
    {"clip_grad", "optimizer.clip_norm"},
    {"max_grad_norm", "optimizer.clip_norm"},
    {"max_steps", "train.steps"},
    {"train_iters", "train.steps"},
    {"seq_len", "train.sequence_length"},
    {"seq_length", "train.sequence_length"},
    {"batch_size", "train.global_batch"},
    {"micro_batch_size", "train.micro_batch"},
    {"global_batch_size", "train.global_batch"},
    {"recompute", "train.activation_checkpointing"},
    {"n_layer", "model.num_hidden_layers"},
    {"num_layers", "model.num_hidden_layers"},
    {"n_embd", "model.hidden_size"},
    {"n_head", "model.num_attention_heads"},
    {"ffn_hidden_size", "model.intermediate_size"},
    {"dtype", "numerics.precision"},
    {"save_interval", "checkpoint.every_steps"},
}};

std::vector<Key> all_keys() {
  std::vector<Key> keys;
  for (const auto rows : {model_keys(), parallel_keys(), train_keys(), optimizer_keys(),
                          offload_keys(), numerics_keys(), data_keys(), checkpoint_keys(),
                          comm_keys(), run_keys(), track_keys(), plan_keys()}) {
    keys.insert(keys.end(), rows.begin(), rows.end());
  }
  return keys;
}

const std::map<std::string, const Key*, std::less<>>& keys_by_name() {
  static const auto index = [] {
    std::map<std::string, const Key*, std::less<>> names;
    for (const auto& key : keys()) {
      TRIREME_ENSURE(names.emplace(key.full_name(), &key).second, key.full_name());
    }
    return names;
  }();
  return index;
}

std::string_view without_section(std::string_view name) {
  const auto first_dot = name.find('.');
  return first_dot == std::string_view::npos ? name : name.substr(first_dot + 1);
}

/// Keys of other sections that end with the same name ("steps" of "trian.steps").
std::vector<std::string> same_last_name(std::string_view name) {
  std::vector<std::string> found;
  for (const auto& key : keys()) {
    if (key.name == name) found.push_back(key.full_name());
  }
  return found;
}

}  // namespace

std::string Key::full_name() const {
  return base::format("{}.{}", section, name);
}

std::string Key::environment_name() const {
  std::string text = "TRIREME_";
  for (const char letter : full_name()) {
    if (letter == '.') {
      text += "__";
    } else {
      text += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    }
  }
  return text;
}

std::string_view name(Type type) {
  switch (type) {
    case Type::integer:
      return "integer";
    case Type::real:
      return "number";
    case Type::text:
      return "text";
    case Type::flag:
      return "true or false";
    case Type::choice:
      return "choice";
    case Type::bytes:
      return "size";
    case Type::seconds:
      return "time";
    case Type::integers:
      return "list of integers";
    case Type::texts:
      return "list of texts";
    case Type::weighted_texts:
      return "list of texts with weights";
  }
  return "";
}

std::string_view name(Concern concern) {
  switch (concern) {
    case Concern::model:
      return "model";
    case Concern::training:
      return "training";
    case Concern::layout:
      return "layout";
    case Concern::running:
      return "running";
  }
  return "";
}

std::span<const Section> sections() {
  return section_table;
}

std::span<const Key> keys() {
  static const std::vector<Key> keys = all_keys();
  return keys;
}

const Key* find_key(std::string_view full_name) {
  const auto found = keys_by_name().find(full_name);
  return found == keys_by_name().end() ? nullptr : found->second;
}

std::vector<std::string> keys_called(std::string_view name) {
  if (find_key(name) != nullptr) return {std::string(name)};
  const auto last_name = without_section(name);
  if (auto same = same_last_name(last_name); !same.empty()) return same;
  for (const auto& [foreign, ours] : foreign_names) {
    if (foreign == last_name) return {std::string(ours)};
  }
  return {};
}

std::span<const std::string> layout_keys() {
  static const auto chosen = [] {
    std::vector<std::string> names;
    for (const auto& key : keys()) {
      if (key.auto_rule == chosen_rule) names.push_back(key.full_name());
    }
    return names;
  }();
  return chosen;
}

std::string key_suggestion(std::string_view full_name) {
  const auto last_name = without_section(full_name);
  if (const auto same = keys_called(full_name); !same.empty()) {
    return base::format("; did you mean '{}'?", base::join(same, "' or '"));
  }
  std::vector<std::string> names;
  for (const auto& [name, key] : keys_by_name()) names.push_back(name);
  if (auto text = base::did_you_mean(full_name, names); !text.empty()) return text;
  // A wrong section makes the whole far from its neighbour: compare last names alone.
  std::vector<std::string> last_names;
  for (const auto& key : keys()) last_names.emplace_back(key.name);
  if (const auto near = base::nearest_word(last_name, last_names)) {
    return base::format("; did you mean '{}'?", base::join(same_last_name(*near), "' or '"));
  }
  return {};
}

std::string permitted_text(const Key& key) {
  const auto unit = key.unit.empty() ? "" : base::format(" {}", key.unit);
  const auto shown = [](double end) {
    return end >= 1e6 && end < 1e15 ? base::format("{:.0f}", end) : base::number_text(end);
  };
  const auto& [minimum, maximum, above, below] = key.range;
  std::string text(name(key.type));
  if (key.type == Type::choice) {
    text = base::format("one of {}", base::join(key.choices, ", "));
  } else if (minimum && maximum && below) {
    text = base::format("{} or more and below {}{}", shown(*minimum), shown(*maximum), unit);
  } else if (minimum && maximum && *maximum != count_max) {
    text = base::format("{} to {}{}", shown(*minimum), shown(*maximum), unit);
  } else if (minimum) {
    text = above ? base::format("more than {}{}", shown(*minimum), unit)
                 : base::format("{} or more{}", shown(*minimum), unit);
  }
  return key.allows_auto() ? text + ", or auto" : text;
}

}  // namespace trireme::schema
